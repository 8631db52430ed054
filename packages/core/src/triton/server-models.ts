import type { ModelConfig } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { GuardedCache, MemoryCache } from "../cache/response-cache.js";
import { type Gpus, NO_GPUS } from "../config/gpus.js";
import type { AttachedExtensions } from "../extension/attached-extensions.js";
import { callModels } from "../in-process/stream-in-process.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter } from "../instance/rate-limiter.js";
import { CallGraph, type ModelPlan, type ModelServer } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/metric-families.js";
import type { CacheUsage, MeteredModel } from "../observe/model-families.js";
import { Tracing } from "../observe/tracing.js";
import type { SchedulingSettings } from "../scheduler/around-scheduling.js";
import type { Clock } from "../system/clock.js";
import { type HostPolicies, hostPolicyWarnings } from "../system/host-policy.js";
import type { TritonOptions } from "./triton-options.js";

/** What the machine of a server gives to instances. */
interface ServerMachine {
  readonly gpus: Gpus;
  readonly hostPolicies: HostPolicies;
}

/** @param log log of the server */
export function machineOf(options: TritonOptions, log: Log): ServerMachine {
  const { hostPolicies = {} } = options;
  for (const warning of hostPolicyWarnings(hostPolicies)) process.emitWarning(warning, "TritonWarning");
  const [found] = (options.extensions ?? []).filter(({ gpus }) => gpus !== undefined);
  return { gpus: found?.gpus?.((part) => log.of(part)) ?? NO_GPUS, hostPolicies };
}

export function schedulingOf({
  rateLimit = "off",
  rateLimitResources = [],
}: TritonOptions): SchedulingSettings {
  const { TRITONSERVER_DELAY_SCHEDULER, TRITONSERVER_BACKLOG_DELAY_SCHEDULER } = process.env;
  return {
    rateLimit,
    rateLimitResources,
    holdUntil: Number(TRITONSERVER_DELAY_SCHEDULER) || 0,
    backlogHoldUntil: Number(TRITONSERVER_BACKLOG_DELAY_SCHEDULER) || 0,
  };
}

/** The server as its models see it. */
interface ModelsServer {
  readonly clock: Clock;
  readonly registry: ModelRegistry;
  /** Log of the models. */
  readonly log: Log;
  readonly machine: ServerMachine;
  readonly scheduling: SchedulingSettings;
  readonly extensions: AttachedExtensions;
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
  readonly #shared: ModelServer;
  readonly #extensions: AttachedExtensions;

  constructor(options: TritonOptions, server: ModelsServer) {
    const { clock, registry, log, machine, scheduling, extensions, control, metrics } = server;
    this.#extensions = extensions;
    this.clock = clock;
    this.registry = registry;
    this.log = log;
    const { responseCache: cache, trace } = options;
    const { tracers } = extensions;
    this.tracing =
      trace === undefined && tracers.length === 0
        ? undefined
        : new Tracing(trace ?? {}, this.clock, log.of("tracer"), tracers);
    const { rateLimit, rateLimitResources, holdUntil, backlogHoldUntil } = scheduling;
    const rateLimiter = createRateLimiter(rateLimit, rateLimitResources, log.of("rate_limiter"));
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
      hostPolicies: machine.hostPolicies,
      holdUntil,
      backlogHoldUntil,
      findMember: (name, version, namespace) => registry.findMember(name, version, namespace),
      callModels: callModels(registry),
      calls: new CallGraph(),
      log,
      metrics,
      control,
      gpus: machine.gpus,
      admit: (model) => extensions.admit(model),
      around: (plan) => extensions.around(plan),
      adapt: (plan) => extensions.adapt(plan),
      metricsConfig: { ...DEFAULT_METRICS_CONFIG, ...options.metricsConfig },
    };
  }

  create(plan: ModelPlan): ModelVersion {
    return new ModelVersion(this.#extensions.adapt(plan), this.#shared);
  }

  /** The models in service, as the metrics see them. */
  metered(): MeteredModel[] {
    return this.registry.ready().map((model) => {
      const { name, namespace, version, config, statistics, requests, isEnsemble, instances } = model;
      return {
        labels: labelsOf(name, version, config, namespace),
        cached: config.responseCache?.enable === true,
        batched: config.dynamicBatching !== undefined || config.sequenceBatching?.oldest !== undefined,
        // Read together with the statistics: a request that is answered meanwhile would be counted twice.
        get inflightCount() {
          return requests.count;
        },
        get instanceCount() {
          return isEnsemble ? undefined : instances.serving.length;
        },
        statistics,
      };
    });
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
    try {
      await this.#shared.responseCache?.close();
    } catch (error) {
      process.emitWarning(`cannot close the response cache: ${String(error)}`, "TritonWarning");
    }
  }
}

/** Labels of a model's metrics. The names of its metric tags get a leading underscore. */
function labelsOf(
  name: string,
  version: number,
  config: ModelConfig,
  namespace: string,
): Record<string, string> {
  const tags = Object.entries(config.metricTags).map(([key, value]) => [`_${key}`, value]);
  const space = namespace === "" ? {} : { namespace };
  return { ...Object.fromEntries(tags), ...space, model: name, version: String(version) };
}
