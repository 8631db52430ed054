import { findGpus } from "./find-gpus.js";

/** The GPUs on which instances may be placed. */
export interface Gpus {
  /** Numbers of the GPUs. Undefined if no instance can run on a GPU. */
  readonly numbers: readonly number[] | undefined;
}

/** The GPUs that a program lists. An empty list means no GPU. */
export function listedGpus(numbers: readonly number[]): Gpus {
  return { numbers: numbers.length === 0 ? undefined : numbers };
}

/** Receives messages about the GPUs of a machine. */
export interface GpuLog {
  info(message: string): void;
  warning(message: string): void;
}

/** The GPUs of this machine. They are looked up at the first access, which starts a program of the driver. */
export class MachineGpus implements Gpus {
  readonly #log: GpuLog | undefined;
  #found: { readonly numbers: readonly number[] | undefined } | undefined;

  /** @param log gets one message: the GPUs that were found, or why none was found */
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
