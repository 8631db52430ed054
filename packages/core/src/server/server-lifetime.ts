import { TritonError } from "@tritonjs/protocol";
import { elapsed, settledWithin } from "../clock/bounded-wait.js";
import type { Clock } from "../clock/clock.js";
import type { Frontend, ServeOptions } from "../frontend/frontend.js";
import type { ModelVersion } from "../model/model-version.js";
import { loadDefaultFrontends } from "./default-frontends.js";
import { type FrontendThreads, placeFrontends } from "./frontend-threads.js";
import { openFrontends, type ServeResult } from "./open-frontends.js";
import type { ServerParts } from "./server-parts.js";

/** Opens the frontends of a server, and closes the whole server in order. */
export class ServerLifetime {
  readonly #parts: ServerParts;
  readonly #options: ServeOptions;
  readonly #drainTimeoutMs: number;
  readonly #exitDelayMs: number;
  #frontends: readonly Frontend[] = [];
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  /**
   * @param options options of the default frontends
   * @param exitDelayMs time before the drain, in which the server is not ready and still accepts requests
   */
  constructor(parts: ServerParts, options: ServeOptions, drainTimeoutMs: number, exitDelayMs: number) {
    this.#parts = parts;
    this.#options = options;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#exitDelayMs = exitDelayMs;
  }

  /** @throws TritonError UNAVAILABLE after `close` */
  assertOpen(): void {
    if (this.#closing !== undefined)
      throw new TritonError("UNAVAILABLE", "cannot use this Triton: it has been closed", {
        reason: "SERVER_STOPPING",
      });
  }

  /** Waits for all models, then opens the given frontends, or those of the installed packages. */
  async serve(
    given: readonly Frontend[] | undefined,
    threads: FrontendThreads,
    modelsReady: () => Promise<void>,
  ): Promise<ServeResult> {
    this.assertOpen();
    if (this.#serving !== undefined) {
      throw new TritonError("ALREADY_EXISTS", "serve() has already been called");
    }
    const serving = this.#open(given, threads, modelsReady);
    this.#serving = serving;
    serving.catch(() => {
      this.#serving = undefined;
    });
    return serving;
  }

  /** Drains the server and releases its resources. A second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(
    given: readonly Frontend[] | undefined,
    threads: FrontendThreads,
    modelsReady: () => Promise<void>,
  ): Promise<ServeResult> {
    await modelsReady();
    const chosen = given ?? (await loadDefaultFrontends(this.#options));
    const frontends = await placeFrontends(chosen, threads, this.#parts.log.log);
    this.#frontends = frontends;
    const { addresses } = await openFrontends(frontends, this.#parts.service);
    // Those in threads are opened last.
    return { addresses: Object.fromEntries(chosen.map(({ name }) => [name, addresses[name]!])) };
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    const { service, repository, registry, models, metrics, log } = this.#parts;
    if (this.#exitDelayMs > 0) {
      service.leave();
      for (const frontend of this.#frontends) frontend.leave?.();
      await elapsed(models.clock, this.#exitDelayMs);
      await Promise.all(this.#frontends.map((frontend) => frontend.settle?.()));
    }
    service.drain();
    await settledWithin(models.clock, this.#drainTimeoutMs, repository.close());
    await windDown(registry.models(), this.#frontends, models.clock, this.#drainTimeoutMs);
    service.end();
    await settledWithin(models.clock, this.#drainTimeoutMs, repository.ended());
    await models.close();
    if (models.tracing !== undefined) {
      await settledWithin(models.clock, this.#drainTimeoutMs, models.tracing.close());
    }
    service.sharedMemory.close();
    metrics.close();
    log.close();
  }
}

/** Drains models and frontends within a time limit, and then unloads the models. */
async function windDown(
  models: readonly ModelVersion[],
  frontends: readonly Frontend[],
  clock: Clock,
  drainTimeoutMs: number,
): Promise<void> {
  const deadline = clock.now() + drainTimeoutMs;
  // Waits for all models at the same time, because the requests of one may call another.
  const finished = Promise.all(models.map((model) => model.finish()));
  await Promise.all([
    ...frontends.map((frontend) => frontend.stop(drainTimeoutMs)),
    settledWithin(clock, drainTimeoutMs, finished),
  ]);
  const leftMs = Math.max(0, deadline - clock.now());
  await Promise.all(models.map((model) => model.unload(leftMs)));
}
