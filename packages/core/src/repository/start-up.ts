import { TritonError } from "../errors/triton-error.js";
import type { ModelRepository } from "./model-repository.js";
import type { RepositoryOptions } from "./repository-options.js";

/** Loading the models of the repository at the start, in the background. */
export class StartUp {
  /** True until it is over, one way or the other. */
  underWay = true;
  /** True when it was over before any model could be looked at: the server runs, and is never ready. */
  failed = false;
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #exitOnError: boolean;
  #error: TritonError | undefined;

  constructor(repository: ModelRepository, { exitOnError = true }: RepositoryOptions) {
    this.#exitOnError = exitOnError;
    this.over = this.#run(repository);
  }

  /** Resolves when the start went well, or need not. @throws TritonError that names all that failed. */
  async succeeded(): Promise<void> {
    await this.over;
    if (this.#error !== undefined && this.#exitOnError) throw this.#error;
  }

  async #run(repository: ModelRepository): Promise<void> {
    try {
      // Models that the program binds next may be part of ensembles of the repository.
      await Promise.resolve();
      const failures = await repository.start();
      if (failures.length > 0) {
        this.#error = new TritonError("INTERNAL", `failed to load all models\n${failures.join("\n")}`);
      }
    } catch (error) {
      this.#error = TritonError.from(error);
      this.failed = true;
    } finally {
      this.underWay = false;
    }
  }
}
