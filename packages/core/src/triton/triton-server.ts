import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { disableTelemetry } from "../backends/onnx-telemetry.js";
import { changedGroups } from "../bind/plan-executors.js";
import { GuardedCache, MemoryCache } from "../cache/response-cache.js";
import { type Gpus, listedGpus, MachineGpus } from "../config/gpus.js";
import { hostPolicyWarnings } from "../config/instance-groups.js";
import { resolveSecurity } from "../frontend/security.js";
import {
  type Frontend,
  type FrontendThreads,
  loadDefaultFrontends,
  openFrontends,
  placeFrontends,
  type ServeResult,
} from "../frontend/serve-frontends.js";
import { callModels } from "../in-process/stream-in-process.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter } from "../instance/rate-limiter.js";
import { CallGraph, type ModelPlan, type ModelServer } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import { ModelRegistry } from "../model/registry.js";
import { createLog, type OpenLog } from "../observe/create-log.js";
import type { Log } from "../observe/log.js";
import { GpuMetrics } from "../observe/machine-metrics.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/metric-families.js";
import { MetricsPage } from "../observe/metrics-page.js";
import type { CacheUsage } from "../observe/model-families.js";
import { Tracing } from "../observe/tracing.js";
import { ModelRepository, type StartUp } from "../repository/model-repository.js";
import { RequestMemory } from "../request/request-memory.js";
import { createAuthentication } from "../service/access-control.js";
import { LocalService } from "../service/local-service.js";
import { saysReady } from "../service/model-reports.js";
import { meteredModels, ServerInspector } from "../service/server-inspector.js";
import { SharedMemory } from "../shared-memory/shared-memory.js";
import { type Clock, realClock, settledWithin, sleep } from "../system/clock.js";
import { VERSION } from "../version.js";
import { DEFAULT_SERVE_OPTIONS, type TritonOptions } from "./triton-options.js";

/** A server: makes its parts, opens its frontends, and closes everything in order. */
export class TritonServer {
  readonly registry: ModelRegistry;
  readonly models: ModelsOfServer;
  readonly repository: ModelRepository;
  readonly startUp: StartUp;
  readonly service: LocalService;
  readonly metrics: MetricsPage;
  /** Token that clients send to use restricted endpoints. */
  readonly accessToken: string | undefined;
  readonly drainTimeoutMs: number;
  readonly #log: OpenLog;
  #frontends: readonly Frontend[] = [];
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  /** Loading the models of its repository begins. */
  constructor(private readonly options: TritonOptions) {
    // Models of all kinds may run ONNX Runtime: Python models, JavaScript models, callbacks.
    disableTelemetry();
    const { accessToken, restrictions, allowedHosts } = resolveSecurity(options.security);
    this.accessToken = accessToken;
    this.drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.#log = createLog(options);
    const { log } = this.#log;
    const registry = new ModelRegistry(options.modelNamespacing);
    this.registry = registry;
    const models = new ModelsOfServer(options, registry, log, () => this.metrics.registry);
    this.models = models;
    const requestMemory = new RequestMemory(options.requestMemory);
    const { allowGpuMetrics = true, metricsIntervalMs = 2000 } = options;
    const hasGpus = allowGpuMetrics && options.gpus?.length !== 0;
    this.metrics = new MetricsPage(
      {
        models: () => meteredModels(registry),
        allowCpuMetrics: options.allowCpuMetrics,
        metricsConfig: options.metricsConfig,
        gpus: hasGpus ? new GpuMetrics(metricsIntervalMs, log) : undefined,
        memory: requestMemory,
        cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
        cacheGuard: models.responseCache,
      },
      options.metrics,
    );
    const authentication = createAuthentication(options.security, log);
    const sharedMemory = new SharedMemory(options.allowClientSharedMemory ?? false);
    const repository = new ModelRepository(options, models);
    this.repository = repository;
    this.startUp = repository.startUp;
    models.control = {
      // A model does not wait for removed instances, because it may run on one of them.
      load: async (name, given) => void (await repository.loadModel(name, given)),
      unload: async (name, given) => void (await repository.unloadModel(name, given)),
      isReady: async (name, version) => {
        const ready = registry.ready(name).filter((one) => version === "" || String(one.version) === version);
        const latest = ready.at(-1);
        return latest !== undefined && saysReady(latest, log);
      },
    };
    // The rest throws no error, so the registry of the program keeps no metrics of a server that failed.
    this.metrics.open();
    const inspector = new ServerInspector({
      registry,
      modelControlMode: options.modelControlMode ?? "none",
      cacheUsage: () => models.cacheUsage(),
      async changeInstances(model, count) {
        const check = model.plan.instanceProblems ?? (() => []);
        await model.updateInstances(changedGroups(count, model.config, models.gpus, check));
      },
    });
    this.service = new LocalService({
      registry,
      repository,
      startUp: repository.startUp,
      log,
      tracing: models.tracing,
      sharedMemory,
      requestMemory,
      restrictions,
      allowedHosts,
      authentication,
      inspector,
      metrics: this.metrics,
      identity: { id: options.id ?? "triton", version: VERSION },
      strictReadiness: options.strictReadiness ?? true,
      allowModelFileOverride: options.allowModelFileOverride ?? false,
    });
  }

  /** @throws TritonError UNAVAILABLE after `close` */
  assertOpen(): void {
    if (this.#closing !== undefined)
      throw new TritonError("UNAVAILABLE", "cannot use this Triton: it has been closed", {
        reason: "SERVER_STOPPING",
      });
  }

  /** Resolves when all bound models, and all models that the repository loads at the start, are in service. */
  async ready(): Promise<void> {
    await this.startUp.succeeded();
    await this.registry.allReady();
  }

  /** Waits for all models, then opens the given frontends, or those of the installed packages. */
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
    this.#frontends = await placeFrontends(chosen, threads, this.#log.log);
    const { addresses } = await openFrontends(this.#frontends, this.service);
    // Those in threads are opened last.
    return { addresses: Object.fromEntries(chosen.map(({ name }) => [name, addresses[name]!])) };
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    const { service, repository, models, metrics, drainTimeoutMs } = this;
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
    await settledWithin(clock, drainTimeoutMs, repository.close());
    await this.#windDown();
    service.end();
    await settledWithin(clock, drainTimeoutMs, repository.dispose());
    await models.close();
    if (tracing !== undefined) await settledWithin(clock, drainTimeoutMs, tracing.close());
    service.sharedMemory.close();
    metrics.close();
    this.#log.close();
  }

  /** Drains models and frontends within the time limit, and then unloads the models. */
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

/** Makes model versions from their own parts and the parts that the server shares among all of them. */
class ModelsOfServer {
  readonly clock: Clock;
  /** The GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** The traces of the server, if it records any. */
  readonly tracing: Tracing | undefined;
  /** Loads and unloads models of the repository, once the repository exists. */
  control: ModelControl | undefined;
  readonly #shared: ModelServer;

  /**
   * @param log log of the models
   * @param metrics registry for metrics that models define themselves
   */
  constructor(
    options: TritonOptions,
    readonly registry: ModelRegistry,
    readonly log: Log,
    metrics: () => Registry,
  ) {
    const { responseCache: cache, hostPolicies = {} } = options;
    for (const warning of hostPolicyWarnings(hostPolicies)) process.emitWarning(warning, "TritonWarning");
    this.clock = options.clock ?? realClock;
    this.gpus = options.gpus === undefined ? new MachineGpus(log) : listedGpus(options.gpus);
    const { trace, tracer } = options;
    this.tracing =
      trace === undefined && tracer === undefined
        ? undefined
        : new Tracing(trace ?? {}, this.clock, log, tracer);
    this.#shared = {
      clock: this.clock,
      tracing: this.tracing,
      responseCache:
        cache &&
        new GuardedCache(
          "byteSize" in cache ? new MemoryCache(cache.byteSize, this.clock) : cache,
          this.clock,
        ),
      rateLimiter: createRateLimiter(options.rateLimit, options.rateLimitResources, log),
      hostPolicies,
      holdUntil: options.delayScheduler ?? (Number(process.env.TRITONSERVER_DELAY_SCHEDULER) || 0),
      backlogHoldUntil:
        options.backlogDelayScheduler ?? (Number(process.env.TRITONSERVER_BACKLOG_DELAY_SCHEDULER) || 0),
      findMember: (name, version, namespace) => registry.findMember(name, version, namespace),
      callModels: callModels(registry, this.clock),
      calls: new CallGraph(),
      log,
      metrics,
      metricsConfig: { ...DEFAULT_METRICS_CONFIG, ...options.metricsConfig },
    };
  }

  create(plan: ModelPlan): ModelVersion {
    return new ModelVersion(plan, { ...this.#shared, control: this.control });
  }

  /** The response cache of all models, if there is one. */
  get responseCache(): GuardedCache | undefined {
    return this.#shared.responseCache;
  }

  /** Usage of the response cache. Undefined without a cache, or if the cache does not report its usage. */
  cacheUsage(): CacheUsage | undefined {
    return this.#shared.responseCache?.usage?.();
  }

  /** Releases the shared parts, after the last model has been taken out of service. */
  async close(): Promise<void> {
    try {
      await this.#shared.responseCache?.close?.();
    } catch (error) {
      process.emitWarning(`cannot close the response cache: ${String(error)}`, "TritonWarning");
    }
  }
}
