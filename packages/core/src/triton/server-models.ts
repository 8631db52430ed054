import type { Registry } from "prom-client";
import { GuardedCache, MemoryCache } from "../cache/response-cache.js";
import { type Gpus, GpusOrCpu, listedGpus, MachineGpus } from "../config/gpus.js";
import { checkShares, type ShareOptions } from "../config/model-options.js";
import { callModels } from "../in-process/stream-in-process.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter } from "../instance/rate-limiter.js";
import { CallGraph, type ModelPlan, type ModelServer, sharedByAll } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Residence, TenantModel } from "../model/residence.js";
import { ResidentModels } from "../model/resident-models.js";
import type { Log } from "../observe/log.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/metric-families.js";
import type { CacheUsage } from "../observe/model-families.js";
import type { RequestTracer } from "../observe/request-trace.js";
import { Tracing } from "../observe/tracing.js";
import { ShareLedger } from "../scheduler/fair-shares.js";
import type { SchedulingTape } from "../scheduler/scheduling-tape.js";
import { CudaPools } from "../shared-memory/cuda-pools.js";
import type { Clock } from "../system/clock.js";
import type { HostPolicies } from "../system/host-policy.js";
import type { TritonOptions } from "./triton-options.js";

/** The GPUs that instances may use, as the options of a server say. */
export function gpusOf({ gpus, gpuFallback }: TritonOptions, log: Log): Gpus {
  const listed = gpus === undefined ? new MachineGpus(log) : listedGpus(gpus);
  return gpuFallback === "cpu" ? new GpusOrCpu(listed, log) : listed;
}

/** The server as its models see it. */
interface ModelsServer {
  readonly clock: Clock;
  readonly registry: ModelRegistry;
  /** Log of the models. */
  readonly log: Log;
  readonly hostPolicies: HostPolicies;
  /** Gives a version a place in memory, as an extension decides. */
  admit(this: void, model: TenantModel): Residence | undefined;
  /** Follow requests to their answers. */
  readonly tracers: readonly RequestTracer[];
  /** Loads and unloads models on behalf of other models. */
  readonly control: ModelControl;
  /** Registry for metrics that models define themselves. */
  metrics(this: void): Registry;
}

/** Makes model versions from their own parts and the parts that the server shares among all of them. */
export class ServerModels {
  readonly clock: Clock;
  readonly registry: ModelRegistry;
  readonly log: Log;
  readonly tracing: Tracing | undefined;
  readonly cuda: CudaPools;
  readonly residents: ResidentModels;
  readonly tape: SchedulingTape | undefined;
  /** Called with a model whose configuration has a rollout. */
  onRollout: ((model: ModelPlan) => void) | undefined;
  readonly #shared: ModelServer;
  /** How callers share all models together. */
  readonly #shares: ShareOptions | undefined;
  readonly #ledger = new ShareLedger();

  constructor(options: TritonOptions, server: ModelsServer) {
    const { clock, registry, log, hostPolicies, admit, tracers, control, metrics } = server;
    this.clock = clock;
    this.registry = registry;
    this.log = log;
    const { responseCache: cache, shares } = options;
    checkShares(shares);
    this.#shares = shares;
    this.cuda = new CudaPools(options, log.of("memory"));
    const { trace } = options;
    this.tracing =
      trace === undefined && tracers.length === 0
        ? undefined
        : new Tracing(trace ?? {}, this.clock, log.of("tracer"), tracers);
    const tape = options.schedulingTape;
    this.tape = tape;
    const { rateLimit = "off", rateLimitResources = [] } = options;
    const rateLimiter = createRateLimiter(rateLimit, rateLimitResources, log.of("rate_limiter"));
    this.residents = new ResidentModels(options, this.clock, log.of("residency"));
    this.#shared = {
      clock: this.clock,
      tracing: this.tracing,
      responseCache:
        cache &&
        new GuardedCache(
          "byteSize" in cache ? new MemoryCache(cache.byteSize, this.clock) : cache,
          this.clock,
        ),
      rateLimiter,
      tape,
      hostPolicies,
      holdUntil: Number(process.env.TRITONSERVER_DELAY_SCHEDULER) || 0,
      backlogHoldUntil: Number(process.env.TRITONSERVER_BACKLOG_DELAY_SCHEDULER) || 0,
      findMember: (name, version, namespace) => registry.findMember(name, version, namespace),
      callModels: callModels(registry),
      calls: new CallGraph(),
      log,
      metrics,
      control,
      cuda: this.cuda,
      residents: { admit: (model) => this.residents.admit(model) ?? admit(model) },
      adapt: (plan) => this.#adapt(plan),
      metricsConfig: { ...DEFAULT_METRICS_CONFIG, ...options.metricsConfig },
    };
    const { holdUntil, backlogHoldUntil } = this.#shared;
    tape?.begin({ rateLimit, rateLimitResources, holdUntil, backlogHoldUntil });
  }

  create(plan: ModelPlan): ModelVersion {
    return new ModelVersion(this.#adapt(plan), this.#shared);
  }

  #adapt(given: ModelPlan): ModelPlan {
    const plan = this.#shares === undefined ? given : sharedByAll(given, this.#shares, this.#ledger);
    if (plan.config.parameters.rollout_to !== undefined) this.onRollout?.(plan);
    return plan;
  }

  get responseCache(): GuardedCache | undefined {
    return this.#shared.responseCache;
  }

  /** Usage of the response cache. Undefined without a cache, or if the cache does not report its usage. */
  cacheUsage(): CacheUsage | undefined {
    return this.#shared.responseCache?.usage();
  }

  /** Releases the shared parts, after the last model has been taken out of service. */
  async close(): Promise<void> {
    this.residents.close();
    try {
      await this.#shared.responseCache?.close();
    } catch (error) {
      process.emitWarning(`cannot close the response cache: ${String(error)}`, "TritonWarning");
    }
    await this.tape?.end();
  }
}
