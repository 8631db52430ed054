import { errorFor, TritonError } from "@tritonjs/protocol";
import { changedGroups } from "../bind/plan-executors.js";
import type { Gpus } from "../config/gpus.js";
import { AttachedExtensions } from "../extension/attached-extensions.js";
import type { ModelSource, StartUp } from "../extension/model-source.js";
import { resolveSecurity } from "../frontend/security.js";
import {
  type Frontend,
  type FrontendThreads,
  loadDefaultFrontends,
  openFrontends,
  placeFrontends,
  type ServeResult,
} from "../frontend/serve-frontends.js";
import { ModelRegistry } from "../model/registry.js";
import { createLog, type OpenLog } from "../observe/create-log.js";
import { MetricsPage } from "../observe/metrics-page.js";
import { repository } from "../repository/model-repository.js";
import { RequestMemory } from "../request/request-memory.js";
import { createAuthentication } from "../service/access-control.js";
import { LocalService } from "../service/local-service.js";
import { saysReady } from "../service/model-reports.js";
import { meteredModels, ServerInspector } from "../service/server-inspector.js";
import { realClock, settledWithin, sleep } from "../system/clock.js";
import { machineOf, ServerModels, schedulingOf } from "./server-models.js";
import { DEFAULT_SERVE_OPTIONS, type TritonOptions } from "./triton-options.js";

/** A server: makes its parts, opens its frontends, and closes everything in order. */
export class TritonServer {
  readonly registry: ModelRegistry;
  readonly models: ServerModels;
  /** The GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** Models that load and unload while the server runs. */
  readonly source: ModelSource;
  readonly service: LocalService;
  readonly metrics: MetricsPage;
  /** Token that clients send to use restricted endpoints. */
  readonly accessToken: string | undefined;
  readonly drainTimeoutMs: number;
  readonly #log: OpenLog;
  readonly #extensions: AttachedExtensions;
  #frontends: readonly Frontend[] = [];
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  /** Its extensions start. */
  constructor(private readonly options: TritonOptions) {
    const security = resolveSecurity(options.security);
    this.accessToken = security.accessToken;
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
    const extensions = new AttachedExtensions([repository(options), ...(options.extensions ?? [])], {
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
    const requestMemory = new RequestMemory(options.requestMemory);
    this.metrics = new MetricsPage(
      {
        models: () => meteredModels(registry),
        allowCpuMetrics: options.allowCpuMetrics,
        gpus: machine.gpus,
        metricsConfig: options.metricsConfig,
        memory: requestMemory,
        tracing: models.tracing,
        cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
        cacheGuard: models.responseCache,
        extensions: () => extensions.families(),
      },
      options.metrics,
    );
    const authentication = createAuthentication(options.security, log.of("access_control"));
    // The rest throws no error, so the registry of the program keeps no metrics of a server that failed.
    this.metrics.open();
    const inspector = new ServerInspector({
      registry,
      modelControlMode: this.source.controlMode,
      cacheUsage: () => models.cacheUsage(),
      pages: extensions.pages,
      async changeInstances(model, count) {
        const check = model.plan.instanceProblems ?? (() => []);
        await model.updateInstances(changedGroups(count, model.config, machine.gpus, check));
      },
    });
    this.service = new LocalService(
      options,
      { registry, log: models.log, tracing: models.tracing, gpus: machine.gpus },
      this.source,
      this.metrics,
      requestMemory,
      security,
      authentication,
      inspector,
      extensions.routes,
    );
    extensions.start();
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
    this.#frontends = await placeFrontends(chosen, threads, this.#log.log.of("frontend_threads"));
    const { addresses } = await openFrontends(this.#frontends, this.service);
    // Those in threads are opened last.
    return { addresses: Object.fromEntries(chosen.map(({ name }) => [name, addresses[name]!])) };
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    const { service, models, metrics, drainTimeoutMs } = this;
    const { clock, tracing } = models;
    // The server is not ready in this time, and still accepts requests.
    const exitDelayMs = (this.options.exitDelaySecs ?? 0) * 1000;
    if (exitDelayMs > 0) {
      service.leave();
      for (const frontend of this.#frontends) frontend.leave?.();
      await sleep(clock, exitDelayMs);
      await Promise.all(this.#frontends.map((frontend) => frontend.settle?.()));
    }
    service.drain();
    await this.#extensions.drain(drainTimeoutMs);
    await this.#windDown();
    service.end();
    await models.close();
    await this.#extensions.close(drainTimeoutMs);
    if (tracing !== undefined) await settledWithin(clock, drainTimeoutMs, tracing.close());
    service.sharedMemory.close();
    metrics.close();
    this.#log.close();
  }

  async #windDown(): Promise<void> {
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
