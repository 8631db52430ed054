import type { Registry } from "prom-client";
import { MemoryCache } from "../cache/memory-cache.js";
import { callModels } from "../calling/call-models.js";
import { type Clock, realClock } from "../clock/clock.js";
import { type Gpus, listedGpus, MachineGpus } from "../config/placement/gpus.js";
import { hostPolicyWarnings } from "../config/placement/host-policy.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter } from "../instance/rate-limiter/create-rate-limiter.js";
import { CallGraph } from "../model/call-graph.js";
import { ModelVersion } from "../model/model-version.js";
import type { ModelVersionInit } from "../model/model-version-init.js";
import type { ModelRegistry } from "../model/registry.js";
import type { CacheUsage } from "../observe/cache-metrics.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/latency/metrics-config.js";
import type { Log } from "../observe/log/log.js";
import { Tracing } from "../observe/trace/tracing.js";
import type { TritonOptions } from "./triton-options.js";

/** The parts of a model version that it does not share with others. */
export type OwnParts = Omit<ModelVersionInit, keyof SharedParts>;

/** The parts that all models of a server share. */
type SharedParts = Pick<
  ModelVersionInit,
  | "clock"
  | "responseCache"
  | "rateLimiter"
  | "hostPolicies"
  | "holdUntil"
  | "backlogHoldUntil"
  | "findMember"
  | "callModels"
  | "calls"
  | "metricsConfig"
  | "log"
  | "metrics"
  | "control"
  | "tracing"
>;

/** Makes model versions from their own parts and the parts that the server shares among all of them. */
export class ModelsOfServer {
  readonly clock: Clock;
  /** The GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** The traces of the server, if it records any. */
  readonly tracing: Tracing | undefined;
  /** The models of the repository, once the repository exists. */
  repository: ModelControl | undefined;
  readonly #shared: SharedParts;

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

  create(own: OwnParts): ModelVersion {
    return new ModelVersion({ ...own, ...this.#shared, control: this.repository });
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
