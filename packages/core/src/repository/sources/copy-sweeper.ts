import type { ModelCopy } from "../cloud/model-copy.js";
import type { RepositorySource } from "./repository-source.js";

/** Removes copies of models that nobody will look at again, while no change is under way that might. */
export class CopySweeper {
  #changes = 0;

  /** @param known copies that models were found in the last time */
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
