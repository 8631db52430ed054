import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { Log } from "../observe/log/log.js";
import type { RepositorySource } from "./sources/repository-source.js";

/** Time between two checks of the directories, so that readiness probes cost nothing. */
const LOOK_EVERY_MS = 10_000;

/**
 * Warns once when the directory of a repository is missing. The loaded models stay in service, but a restart or a load
 * would fail.
 */
export class RepositoryPresence {
  readonly #repositories: readonly RepositorySource[];
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #gone = new Set<RepositorySource>();
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(repositories: readonly RepositorySource[], log: Log, clock: Clock) {
    this.#repositories = repositories.filter(({ isRemote }) => !isRemote);
    this.#log = log;
    this.#clock = clock;
  }

  /** Checks in the background, unless a recent check is still valid. */
  look(): void {
    const now = this.#clock.now();
    if (this.#repositories.length === 0 || now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    for (const repository of this.#repositories) void this.#lookAt(repository);
  }

  async #lookAt(repository: RepositorySource): Promise<void> {
    try {
      await repository.check();
      this.#gone.delete(repository);
    } catch (error) {
      if (this.#gone.has(repository)) return;
      this.#gone.add(repository);
      const { message } = TritonError.from(error);
      this.#log.warning(
        `${message}: its loaded models stay in service, but none of its models can be loaded`,
      );
    }
  }
}
