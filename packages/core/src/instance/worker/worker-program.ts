import type { InstanceHosting } from "@tritonjs/protocol";

/** What a worker runs, and how it may be ended. */
export interface WorkerProgram {
  /** Module that exports `load(data, info)`. */
  readonly entry: URL;
  /** Handed to `load`; must survive structured cloning. */
  readonly data: unknown;
  /** False for native code: ending the thread that it runs on would abort this process. */
  readonly interruptible: boolean;
  /**
   * Whether it joins requests itself where that is not by rows: a callback may want them one by one.
   * @default false: it gets them joined
   */
  readonly joins?: boolean;
  /**
   * True for a program that computes with tensors alone: it is told nothing of the requests but their rows, and gets its
   * next batch while it runs one.
   */
  readonly tensorsOnly?: boolean;
  /** True for a program that leaves nothing behind in its thread when it has closed a model. @default false */
  readonly reusesThread?: boolean;
  /** Milliseconds that loading may take, for what can be interrupted. @default any time */
  readonly loadTimeoutMs?: number | undefined;
}

/** Where a worker runs. */
export interface WorkerPlace {
  /** `isolation` "process" for a child process, anything else for a thread. */
  readonly hosting?: InstanceHosting;
  /** Priority of a child process. */
  readonly nice?: number | undefined;
}
