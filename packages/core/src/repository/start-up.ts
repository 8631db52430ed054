import { statusText, TritonError } from "@tritonjs/protocol";

import type { Log } from "../observe/log/log.js";
import type { ModelRepository } from "./model-repository.js";
import type { RepositoryOptions } from "./repository-options.js";

/** The reasons are already in the log, one line for each model. */
const NOT_ALL = "failed to load all models";

/** Loads the models of the repository at the start, in the background. */
export class StartUp {
  /** True until the start has ended, with success or not. */
  underWay = true;
  /** Whether the start failed before any model could be polled. The server then runs, but is never ready. */
  failed = false;
  /** Resolves when the start has ended. */
  readonly over: Promise<void>;
  readonly #exitOnError: boolean;
  readonly #log: Log;
  #awaited = false;
  #error: TritonError | undefined;

  constructor(repository: ModelRepository, { exitOnError = true }: RepositoryOptions, log: Log) {
    this.#exitOnError = exitOnError;
    this.#log = log;
    this.over = this.#run(repository);
  }

  /** Resolves when the start succeeds, or when its failure is allowed. @throws TritonError that names all failures */
  async succeeded(): Promise<void> {
    this.#awaited = true;
    await this.over;
    if (this.#error !== undefined && this.#exitOnError) throw this.#error;
  }

  async #run(repository: ModelRepository): Promise<void> {
    try {
      // The program may bind models next that are members of ensembles in the repository.
      await Promise.resolve();
      const failures = await repository.start();
      if (failures.length > 0) {
        const text = `${NOT_ALL}\n${failures.join("\n")}`;
        this.#error = new TritonError("INTERNAL", text, { reason: "STARTUP_FAILED" });
        // As in Triton, a server that continues says so.
        if (!this.#exitOnError) this.#log.error(`Internal: ${NOT_ALL}`);
      }
    } catch (error) {
      this.#error = TritonError.from(error);
      this.failed = true;
      // Callers that wait get the error. A program that closes during the start has no interest in it.
      const isTold = this.#exitOnError && this.#awaited;
      if (!isTold && this.#error.reason !== "SERVER_STOPPING") this.#log.error(statusText(error));
    } finally {
      this.underWay = false;
    }
  }
}
