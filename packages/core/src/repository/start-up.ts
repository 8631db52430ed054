import { statusText, TritonError } from "@tritonjs/protocol";

import type { Log } from "../observe/log/log.js";
import type { ModelRepository } from "./model-repository.js";
import type { RepositoryOptions } from "./repository-options.js";

/** The reasons have been logged before, one line for each model. */
const NOT_ALL = "failed to load all models";

/** Loading the models of the repository at the start, in the background. */
export class StartUp {
  /** True until it is over, one way or the other. */
  underWay = true;
  /** True when it was over before any model could be looked at: the server runs, and is never ready. */
  failed = false;
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #exitOnError: boolean;
  readonly #log: Log;
  #error: TritonError | undefined;

  constructor(repository: ModelRepository, { exitOnError = true }: RepositoryOptions, log: Log) {
    this.#exitOnError = exitOnError;
    this.#log = log;
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
        this.#fail(
          new TritonError("INTERNAL", `${NOT_ALL}\n${failures.join("\n")}`, { reason: "STARTUP_FAILED" }),
        );
      }
    } catch (error) {
      this.#fail(TritonError.from(error));
      this.failed = true;
    } finally {
      this.underWay = false;
    }
  }

  /** Keeps the error for the caller; a server that goes on in spite of it logs its first line. */
  #fail(error: TritonError): void {
    this.#error = error;
    if (!this.#exitOnError) this.#log.error(statusText(error).split("\n", 1)[0]!);
  }
}
