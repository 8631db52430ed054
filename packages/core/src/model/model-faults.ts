import { statusText, TritonError } from "@tritonjs/protocol";
import type { Log } from "../observe/log/log.js";

/** The version whose failures {@link ModelFaults} logs. */
export interface FaultyModel {
  readonly name: string;
  readonly version: number;
  /** Directory of a version of a repository, whose loader logs its failed loads. */
  readonly directory?: string | undefined;
  readonly log: Log;
}

/**
 * Logs why a model version, or an instance of it, cannot serve: one line at error level for each failure. No caller needs
 * to wait for the load. Without a logger each line is a warning of the process.
 */
export class ModelFaults {
  /** Set when the version is stopped while it loads: the end of that load is not a failure. */
  stopping = false;
  readonly #model: FaultyModel;

  constructor(model: FaultyModel) {
    this.#model = model;
  }

  /** Logs a failed load. @returns its reason for the repository index */
  loadFailed(error: unknown): string {
    const { name, version, directory, log } = this.#model;
    if (directory !== undefined) return statusText(error);
    if (!this.stopping) log.error(`failed to load '${name}' version ${version}: ${statusText(error)}`);
    return TritonError.from(error).message;
  }

  /** Logs that an ensemble of the program does not fit its members. The repository logs the same of its own ensembles. */
  unfit(reason: string): void {
    const { name, version, directory, log } = this.#model;
    if (directory !== undefined) return;
    log.error(`failed to load '${name}' version ${version}: Invalid argument: ${reason}`);
  }

  /** Logs that an instance has crashed and cannot be restarted. The attempts continue. */
  restartFailed(instance: string, error: TritonError): void {
    this.#instanceFailed(instance, "restarted", error);
  }

  /** Logs that an instance cannot be replaced by a new one. It continues to serve. */
  replacementFailed(instance: string, error: unknown): void {
    this.#instanceFailed(instance, "replaced", error);
  }

  #instanceFailed(instance: string, change: string, error: unknown): void {
    const { name, version, log } = this.#model;
    const { message } = TritonError.from(error);
    log.error(
      `instance '${instance}' of model '${name}' version ${version} could not be ${change}: ${message}`,
    );
  }
}
