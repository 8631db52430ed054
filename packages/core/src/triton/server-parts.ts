import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { disableTelemetry } from "../backends/onnx-telemetry.js";
import { changedGroups } from "../bind/plan-executors.js";
import { MemoryCache } from "../cache/response-cache.js";
import { type Gpus, listedGpus, MachineGpus } from "../config/gpus.js";
import { hostPolicyWarnings } from "../config/instance-groups.js";
import { resolveSecurity } from "../frontend/security.js";
import {
  type Frontend,
  type FrontendThreads,
  loadDefaultFrontends,
  openFrontends,
  placeFrontends,
  type ServeOptions,
  type ServeResult,
} from "../frontend/serve-frontends.js";
import { callModels } from "../in-process/stream-in-process.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter } from "../instance/rate-limiter.js";
import { CallGraph, type ModelPlan, type ModelServer } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import { ModelRegistry } from "../model/registry.js";
import { createLog, type OpenLog } from "../observe/create-log.js";
import { GpuMetrics } from "../observe/gpu-metrics.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/latency-metrics.js";
import type { Log } from "../observe/log.js";
import { MetricsPage } from "../observe/metrics-page.js";
import type { CacheUsage } from "../observe/model-families.js";
import { Tracing } from "../observe/tracing.js";
import { createRepository, type ModelRepository, StartUp } from "../repository/model-repository.js";
import { RequestMemory } from "../request/request-memory.js";
import { createAuthentication } from "../service/access-control.js";
import { LocalService } from "../service/local-service.js";
import { saysReady } from "../service/model-reports.js";
import { meteredModels, ServerInspector } from "../service/server-inspector.js";
import { SharedMemory } from "../shared-memory/shared-memory.js";
import { type Clock, elapsed, realClock, settledWithin } from "../system/clock.js";
import { VERSION } from "../version.js";
import type { TritonOptions } from "./triton-options.js";

/** The parts of a server. */
export interface ServerParts {
  readonly registry: ModelRegistry;
  readonly models: ModelsOfServer;
  readonly repository: ModelRepository;
  readonly startUp: StartUp;
  readonly service: LocalService;
  readonly metrics: MetricsPage;
  readonly log: OpenLog;
  /** Token that clients send to use restricted endpoints. */
  readonly accessToken: string | undefined;
}

/** Makes the parts of a server and connects them. Loading the models of its repository begins. */
export function assembleServer(options: TritonOptions): ServerParts {
  // Models of all kinds may run ONNX Runtime: Python models, JavaScript models, callbacks.
  disableTelemetry();
  const { accessToken, restrictions, allowedHosts } = resolveSecurity(options.security);
  const log = createLog(options);
  const registry = new ModelRegistry(options.modelNamespacing);
  const models = new ModelsOfServer(options, registry, log.log, () => metrics.registry);
  const requestMemory = new RequestMemory(options.requestMemory);
  const { allowCpuMetrics, allowGpuMetrics = true, metricsIntervalMs = 2000, metricsConfig } = options;
  const hasGpus = allowGpuMetrics && options.gpus?.length !== 0;
  const metrics = new MetricsPage(
    {
      models: () => meteredModels(registry),
      ...(allowCpuMetrics !== undefined && { allowCpuMetrics }),
      ...(metricsConfig !== undefined && { metricsConfig }),
      gpus: hasGpus ? new GpuMetrics(metricsIntervalMs, log.log) : undefined,
      memory: requestMemory,
      cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
    },
    options.metrics,
  );
  const repository = createRepository(
    { options, registry, log: log.log, clock: models.clock, gpus: models.gpus },
    (plan) => models.create(plan),
  );
  models.repository = {
    // A model does not wait for removed instances, because it may run on one of them.
    load: async (name, given) => void (await repository.loadModel(name, given)),
    unload: async (name, given) => void (await repository.unloadModel(name, given)),
    isReady: async (name, version) => {
      const ready = registry.ready(name).filter((one) => version === "" || String(one.version) === version);
      const latest = ready.at(-1);
      return latest !== undefined && saysReady(latest, log.log);
    },
  };
  const authentication = createAuthentication(options.security, log.log);
  const sharedMemory = new SharedMemory(options.allowClientSharedMemory ?? false);
  // What follows throws no error, so the registry of the program keeps no metrics of a server that failed.
  metrics.open();
  const startUp = new StartUp(repository, options, log.log);
  const inspector = new ServerInspector({
    registry,
    modelControlMode: options.modelControlMode ?? "none",
    cacheUsage: () => models.cacheUsage(),
    async changeInstances(model, count) {
      const check = model.plan.instanceProblems ?? (() => []);
      await model.updateInstances(changedGroups(count, model.config, models.gpus, check));
    },
  });
  const service = new LocalService({
    registry,
    repository,
    startUp,
    log: log.log,
    tracing: models.tracing,
    sharedMemory,
    requestMemory,
    restrictions,
    allowedHosts,
    authentication,
    inspector,
    metrics,
    identity: { id: options.id ?? "triton", version: VERSION },
    strictReadiness: options.strictReadiness ?? true,
    allowModelFileOverride: options.allowModelFileOverride ?? false,
  });
  return { registry, models, repository, startUp, service, metrics, log, accessToken };
}

/** Makes model versions from their own parts and the parts that the server shares among all of them. */
class ModelsOfServer {
  readonly clock: Clock;
  /** The GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** The traces of the server, if it records any. */
  readonly tracing: Tracing | undefined;
  /** The models of the repository, once the repository exists. */
  repository: ModelControl | undefined;
  readonly #shared: ModelServer;

  /**
   * @param log log of the models
   * @param metrics registry for metrics that models define themselves
   */
  constructor(options: TritonOptions, registry: ModelRegistry, log: Log, metrics: () => Registry) {
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
        cache !== undefined && "byteSize" in cache ? new MemoryCache(cache.byteSize, this.clock) : cache,
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
    return new ModelVersion(plan, { ...this.#shared, control: this.repository });
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
