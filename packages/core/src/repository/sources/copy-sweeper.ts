import type { ModelCopy } from "../cloud/model-copy.js";
import type { RepositorySource } from "./repository-source.js";

/** Removes obsolete copies of models while no change that might use them is in flight. */
export class CopySweeper {
  #changes = 0;

  /** @param known copies of models that the last poll found */
  constructor(
    private readonly sources: readonly RepositorySource[],
    private readonly known: () => ReadonlySet<ModelCopy>,
  ) {}

  /** Runs a change. */
  async during<T>(change: () => Promise<T>): Promise<T> {
    this.#changes++;
    try {
      return await change();
    } finally {
      this.#changes--;
      if (this.#changes === 0) for (const source of this.sources) source.sweep(this.known());
    }
  }
}
