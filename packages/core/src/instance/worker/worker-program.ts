import type { InstanceHosting } from "@tritonjs/protocol";

/** The program of a worker, and how it may be interrupted. */
export interface WorkerProgram {
  /** Module that exports `load(data, info)`. */
  readonly entry: URL;
  /** Argument of `load`; must survive structured cloning. */
  readonly data: unknown;
  /** False for native code: ending its thread would abort this process. */
  readonly interruptible: boolean;
  /**
   * True if it joins requests itself, unless they are joined by rows: a callback may want them one by one.
   * @default false: it gets them joined
   */
  readonly joins?: boolean;
  /**
   * True for a program that computes with tensors alone. It gets no properties of the requests but their rows, and gets
   * its next batch while it runs one.
   */
  readonly tensorsOnly?: boolean;
  /** True for a program that does not use the inputs of a batch once it has answered. @default false */
  readonly returnsInputs?: boolean;
  /** True for a program that leaves no state in its thread after it has closed a model. @default false */
  readonly reusesThread?: boolean;
  /** Time limit for loading in milliseconds, for programs that can be interrupted. @default no limit */
  readonly loadTimeoutMs?: number | undefined;
}

/** Where a worker runs. */
export interface WorkerPlace {
  /** `isolation` "process" for a child process, anything else for a thread. */
  readonly hosting?: InstanceHosting;
  /** Priority of a child process. */
  readonly nice?: number | undefined;
}
