import { Triton, type TritonOptions } from "@tritonjs/core";
import { type Rollout, type RolloutOptions, type Rollouts, rollouts } from "@tritonjs/operations/rollout";

/** A Triton with rollouts. */
export class RollingTriton extends Triton {
  readonly #updates: Rollouts;

  constructor({ directory, ...options }: TritonOptions & { readonly directory?: string } = {}) {
    const updates = rollouts(directory === undefined ? {} : { directory });
    super({ ...options, extensions: [updates, ...(options.extensions ?? [])] });
    this.#updates = updates;
  }

  rollout(model: string, options: RolloutOptions): Promise<Rollout> {
    return this.#updates.start(model, options);
  }
}
