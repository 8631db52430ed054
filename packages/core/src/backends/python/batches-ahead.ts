import { type InstanceHosting, isDecoupled, type ModelConfig } from "@tritonjs/protocol";

/** The process may hold about this much work, in microseconds, besides the running batch. */
const MOST_MICROSECONDS = 2000;
const MOST_BATCHES = 16;
/** The estimate grows or shrinks by this factor with each batch. So it is near the median, whatever one batch took. */
const STEP = 1.1;

/**
 * How many batches a process gets while it runs one. Waking a process costs more than a short batch, so it gets several
 * at once. Long batches wait in the queue of the server, where they can still be cancelled or grow.
 */
export class BatchesAhead {
  /** Microseconds of a batch. */
  #estimate: number | undefined;
  readonly #isPossible: boolean;

  constructor(config: ModelConfig, hosting: InstanceHosting) {
    // A batch of a sequence may depend on the answer before it. A worn process gets no more batches.
    this.#isPossible =
      config.sequenceBatching === undefined && !isDecoupled(config) && hosting.recycle === undefined;
  }

  /** Records how long a batch took. */
  took(microseconds: number): void {
    if (this.#estimate === undefined) this.#estimate = Math.max(1, microseconds);
    else if (microseconds > this.#estimate) this.#estimate *= STEP;
    else if (microseconds < this.#estimate) this.#estimate /= STEP;
  }

  get count(): number {
    if (!this.#isPossible || this.#estimate === undefined) return 0;
    return Math.min(MOST_BATCHES, Math.floor(MOST_MICROSECONDS / this.#estimate));
  }
}
