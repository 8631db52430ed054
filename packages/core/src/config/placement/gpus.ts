import { findGpus } from "./find-gpus.js";

/** The GPUs that instances may be placed on. */
export interface Gpus {
  /** Their numbers; undefined where nothing can run on any. */
  readonly numbers: readonly number[] | undefined;
}

/** The GPUs that a program names; none for an empty list. */
export function listedGpus(numbers: readonly number[]): Gpus {
  return { numbers: numbers.length === 0 ? undefined : numbers };
}

/** Takes what there is to say about the GPUs of a machine. */
export interface GpuLog {
  info(message: string): void;
  warning(message: string): void;
}

/** The GPUs of this machine, looked for when they are first asked for: that starts a program of the driver. */
export class MachineGpus implements Gpus {
  readonly #log: GpuLog | undefined;
  #found: { readonly numbers: readonly number[] | undefined } | undefined;

  /** @param log is told once what was found, or why nothing was */
  constructor(log?: GpuLog) {
    this.#log = log;
  }

  get numbers(): readonly number[] | undefined {
    if (this.#found === undefined) {
      const { numbers, reason } = findGpus();
      this.#found = { numbers };
      if (reason === undefined) this.#log?.info(`GPUs for instances: ${numbers!.join(", ")}`);
      else this.#log?.warning(`no GPU can be used for instances: ${reason}`);
    }
    return this.#found.numbers;
  }
}
