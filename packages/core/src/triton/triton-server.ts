import { errorFor, TritonError } from "@tritonjs/protocol";
import { changedGroups } from "../bind/plan-executors.js";
import type { Gpus } from "../config/gpus.js";
import { AttachedExtensions } from "../extension/attached-extensions.js";
import type { ExtensionPage, ManagementRoute } from "../extension/extension.js";
import type { ModelSource, StartUp } from "../extension/model-source.js";
import type { Frontend, FrontendServer, FrontendThreads, MountedFrontend } from "../frontend/frontend.js";
import { loadDefaultFrontends, openFrontends, type ServeResult } from "../frontend/serve-frontends.js";
import type { ModelVersion } from "../model/model-version.js";
import { saysReady } from "../model/readiness.js";
import { ModelRegistry } from "../model/registry.js";
import { createLog, type OpenLog } from "../observe/create-log.js";
import type { Log } from "../observe/log.js";
import { MetricsPage } from "../observe/metrics-page.js";
import type { CacheUsage } from "../observe/model-families.js";
import type { Tracing } from "../observe/tracing.js";
import { realClock, settledWithin, sleep } from "../system/clock.js";
import { machineOf, ServerModels, schedulingOf } from "./server-models.js";
import { DEFAULT_SERVE_OPTIONS, type TritonOptions } from "./triton-options.js";

/** A server: makes its parts, opens its frontends, and closes everything in order. */
export class TritonServer implements FrontendServer {
  readonly registry: ModelRegistry;
  readonly models: ServerModels;
  /** The GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** Models that load and unload while the server runs. */
  readonly source: ModelSource;
  readonly metrics: MetricsPage;
  readonly routes: readonly ManagementRoute[];
  readonly pages: ReadonlyMap<string, ExtensionPage>;
  readonly drainTimeoutMs: number;
  readonly #log: OpenLog;
  readonly #extensions: AttachedExtensions;
  #frontends: readonly Frontend[] = [];
  readonly #mounted: MountedFrontend[] = [];
  #state: "open" | "leaving" | "stopping" = "open";
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  /** Its extensions start. */
  constructor(readonly options: TritonOptions) {
    this.drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.#log = createLog(options);
    const { log } = this.#log;
    const registry = new ModelRegistry(() => this.source.namespacing);
    this.registry = registry;
    const clock = options.clock ?? realClock;
    const modelLog = log.of("model_lifecycle");
    const machine = machineOf(options, log);
    this.gpus = machine.gpus;
    const scheduling = schedulingOf(options);
    const extensions = new AttachedExtensions(options.extensions ?? [], {
      clock,
      registry,
      ...machine,
      scheduling,
      parameters: () => this.#extensions.parameters,
      log: (part) => log.of(part),
      route: (name, namespace, router) => registry.setRouter(name, namespace, router),
      create: (plan) => this.models.create(plan),
      startsOnDisk: (config) => this.#extensions.startsOnDisk(config),
    });
    this.#extensions = extensions;
    const models = new ServerModels(options, {
      clock,
      registry,
      log: modelLog,
      machine,
      scheduling,
      extensions,
      control: {
        // A model does not wait for removed instances, because it may run on one of them.
        load: async (name, given) => void (await this.source.load(name, given)),
        unload: async (name, given) => void (await this.source.unload(name, given)),
        isReady: async (name, version) => {
          const ready = registry
            .ready(name)
            .filter((one) => version === "" || String(one.version) === version);
          const latest = ready.at(-1);
          return latest !== undefined && saysReady(latest, log, true);
        },
      },
      metrics: () => this.metrics.registry,
    });
    this.models = models;
    this.source = extensions.source;
    this.metrics = new MetricsPage(
      {
        models: () => models.metered(),
        allowCpuMetrics: options.allowCpuMetrics,
        gpus: machine.gpus,
        metricsConfig: options.metricsConfig,
        tracing: models.tracing,
        cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
        cacheGuard: models.responseCache,
        extensions: () => extensions.families(),
      },
      options.metrics,
    );
    // The rest throws no error, so the registry of the program keeps no metrics of a server that failed.
    this.metrics.open();
    this.routes = extensions.routes;
    this.pages = extensions.pages;
    extensions.start();
  }

  get log(): Log {
    return this.#log.log;
  }

  get tracing(): Tracing | undefined {
    return this.models.tracing;
  }

  /** True once the server refuses requests, because it closes. */
  get stopping(): boolean {
    return this.#state === "stopping";
  }

  cacheUsage(): CacheUsage | undefined {
    return this.models.cacheUsage();
  }

  async changeInstances(model: ModelVersion, count: number): Promise<void> {
    const check = model.plan.instanceProblems ?? (() => []);
    await model.updateInstances(changedGroups(count, model.config, this.gpus, check));
  }

  mount(part: MountedFrontend): void {
    this.#mounted.push(part);
    if (this.#state === "leaving") part.leave?.();
    else if (this.#state === "stopping") part.drain();
  }

  get startUp(): StartUp {
    return this.source.startUp;
  }

  /** @throws TritonError UNAVAILABLE after `close` */
  assertOpen(): void {
    if (this.#closing !== undefined)
      throw errorFor("SERVER_STOPPING", "cannot use this Triton: it has been closed");
  }

  /** Resolves when all bound models, and all models that load at the start, are in service. */
  async ready(): Promise<void> {
    await Promise.all([this.#extensions.started(), this.startUp.succeeded()]);
    await this.registry.allReady();
  }

  async serve(given: readonly Frontend[] | undefined, threads: FrontendThreads): Promise<ServeResult> {
    this.assertOpen();
    if (this.#serving !== undefined) {
      throw new TritonError("ALREADY_EXISTS", "serve() has already been called");
    }
    const serving = this.#open(given, threads);
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

  async #open(given: readonly Frontend[] | undefined, threads: FrontendThreads): Promise<ServeResult> {
    await this.ready();
    const chosen = given ?? (await loadDefaultFrontends({ ...DEFAULT_SERVE_OPTIONS, ...this.options }));
    this.#frontends = threads === 0 ? chosen : await this.#place(chosen, threads);
    const { addresses } = await openFrontends(this.#frontends, this);
    // Those in threads are opened last.
    return { addresses: Object.fromEntries(chosen.map(({ name }) => [name, addresses[name]!])) };
  }

  async #place(chosen: readonly Frontend[], threads: FrontendThreads): Promise<readonly Frontend[]> {
    const placing = chosen.find(({ place }) => place !== undefined);
    return placing?.place?.(chosen, threads, this.log.of("frontend_threads")) ?? chosen;
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    const { models, metrics, drainTimeoutMs } = this;
    const { clock, tracing } = models;
    // The server is not ready in this time, and still accepts requests.
    const exitDelayMs = (this.options.exitDelaySecs ?? 0) * 1000;
    if (exitDelayMs > 0) {
      this.#state = "leaving";
      for (const part of this.#mounted) part.leave?.();
      for (const frontend of this.#frontends) frontend.leave?.();
      await sleep(clock, exitDelayMs);
      await Promise.all(this.#frontends.map((frontend) => frontend.settle?.()));
    }
    this.#state = "stopping";
    for (const part of this.#mounted) part.drain();
    await this.#extensions.drain(drainTimeoutMs);
    await this.#drainAndUnload();
    for (const part of this.#mounted) part.end();
    await models.close();
    await this.#extensions.close(drainTimeoutMs);
    if (tracing !== undefined) await settledWithin(clock, drainTimeoutMs, tracing.close());
    for (const part of this.#mounted) part.close?.();
    metrics.close();
    this.#log.close();
  }

  async #drainAndUnload(): Promise<void> {
    const { clock } = this.models;
    const models = this.registry.models();
    const deadline = clock.now() + this.drainTimeoutMs;
    // Waits for all models at the same time, because the requests of one may call another.
    const finished = Promise.all(models.map((model) => model.finish()));
    await Promise.all([
      ...this.#frontends.map((frontend) => frontend.stop(this.drainTimeoutMs)),
      settledWithin(clock, this.drainTimeoutMs, finished),
    ]);
    const leftMs = Math.max(0, deadline - clock.now());
    await Promise.all(models.map((model) => model.unload(leftMs)));
  }
}
