import {
  type CacheUsage,
  type DeadlineClass,
  type ExtensionPage,
  type FailureNote,
  type FailureReason,
  type FrontendServer,
  type LatencyHistogram,
  LatencyWatch,
  type ModelControlMode,
  type ModelState,
  ModelVersion,
  type QueueSnapshot,
  reportStatistics,
  type SequenceCounts,
} from "@tritonjs/core/internal/server";
import type { ModelStatisticsReport } from "@tritonjs/protocol";

/** Shows and changes what the operations of the protocol do not cover. It costs nothing unless it is asked. */
export class ServerInspector {
  readonly #server: FrontendServer;
  #watches = 0;

  constructor(server: FrontendServer) {
    this.#server = server;
  }

  /** Whether clients may load and unload models: only with `explicit`. */
  get modelControlMode(): ModelControlMode {
    return this.#server.source.controlMode;
  }

  /** Usage of the response cache; undefined without a cache, or if the cache does not report its usage. */
  get cacheUsage(): CacheUsage | undefined {
    return this.#server.cacheUsage();
  }

  /** What extensions show, by their names. */
  get pages(): ReadonlyMap<string, ExtensionPage> {
    return this.#server.pages;
  }

  /** All versions of all models, ordered by name and then by version. */
  models(): ObservedModel[] {
    return this.#server.registry.all().map((version) => {
      const { name, namespace, state, reason, isEnsemble } = version;
      const model = version instanceof ModelVersion ? version : undefined;
      if (model !== undefined && this.#watches > 0) {
        model.statistics.watch ??= new LatencyWatch();
        model.statistics.watch.looked();
      }
      return {
        name,
        namespace,
        version: version.version,
        state,
        reason,
        isEnsemble,
        bound: model !== undefined && model.directory === undefined,
        counters: model && countersOf(model),
        activity: model && (() => activityOf(model)),
      };
    });
  }

  /**
   * Counts the latencies of all models, from the next {@link models} on, until the returned function is called. Without
   * a watch, latencies cost nothing.
   */
  watchLatencies(): () => void {
    this.#watches++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#watches > 0) return;
      for (const { statistics } of this.#server.registry.models()) statistics.watch = undefined;
    };
  }

  /**
   * Changes the number of instances of a model's first group, while the model serves.
   *
   * @param version version in decimal digits; empty for the highest that is ready
   * @throws TritonError NOT_FOUND for an unknown model, INVALID_ARG for an impossible number, UNAVAILABLE unless the
   * model is ready, and errors from loading an instance. After an error nothing has changed.
   */
  async changeInstances(name: string, version: string, count: number): Promise<void> {
    await this.#server.changeInstances(this.#server.registry.find(name, version), count);
  }
}

function countersOf(model: ModelVersion): ObservedCounters {
  const { statistics, instances, isEnsemble } = model;
  const { success, failures, watch } = statistics;
  const failed = failures.REJECTED + failures.CANCELED + failures.BACKEND + failures.OTHER;
  const all = isEnsemble ? [] : instances.instances;
  return {
    succeeded: success.count,
    failed: failed + statistics.refusedCount,
    inferences: statistics.inferenceCount,
    executions: statistics.executionCount,
    queued: statistics.pendingCount,
    oldestMicroseconds: statistics.pendingCount === 0 ? 0 : oldestOf(model.queue()),
    instances: all.length,
    healthyInstances: all.filter(({ healthy }) => healthy).length,
    busyInstances: all.filter(({ busy }) => busy).length,
    latencies: watch,
  };
}

function oldestOf({ levels, payloads, instances }: QueueSnapshot): number {
  const waiting = [...payloads, ...instances.flatMap((one) => one.waiting)];
  return Math.max(
    0,
    ...levels.map(({ oldestAgeMicroseconds }) => oldestAgeMicroseconds),
    ...waiting.map(({ ageMicroseconds }) => ageMicroseconds),
  );
}

function activityOf(model: ModelVersion): ObservedActivity {
  const { name, version, statistics, requests, sequences } = model;
  return {
    statistics: reportStatistics(name, version, statistics),
    inflight: requests.count,
    queue: model.queue(),
    instances: model.isEnsemble ? [] : model.instances.instances.map(instanceOf),
    sequences,
    failures: { ...statistics.failures },
    refused: statistics.refusedCount,
    errors: statistics.errors.recent,
    deadlines: statistics.deadlines?.classes ?? [],
    loadMilliseconds: statistics.loadDurationMs,
  };
}

function instanceOf(instance: ModelVersion["instances"]["instances"][number]): ObservedInstance {
  const { placement, passive, healthy, busy, executor, unhealthyReason } = instance;
  const { name, kind, deviceId } = placement;
  return {
    ...{ name, kind, deviceId, passive, healthy, busy },
    isolation: executor.isolation,
    unhealthyReason: unhealthyReason?.message,
    restarts: executor.restarts?.count,
    memoryBytes: executor.memoryBytes,
    details: executor.details,
  };
}

export interface ObservedInstance {
  readonly name: string;
  readonly kind: string;
  readonly deviceId: number;
  /** Where it runs; undefined for a backend that does not tell. */
  readonly isolation: string | undefined;
  readonly passive: boolean;
  readonly healthy: boolean;
  /** Why it is not healthy, once it cannot recover by itself. */
  readonly unhealthyReason: string | undefined;
  readonly busy: boolean;
  /** Number of restarts after crashes; undefined for an instance that never restarts. */
  readonly restarts: number | undefined;
  /** Bytes of memory after its last batch, for groups that watch memory. */
  readonly memoryBytes: number | undefined;
  readonly details: Readonly<Record<string, string>>;
}

/** The detail of a version that has been created: what it has counted, and what waits and runs. */
export interface ObservedActivity {
  readonly statistics: ModelStatisticsReport;
  /** Requests accepted and not yet answered. */
  readonly inflight: number;
  readonly queue: QueueSnapshot;
  readonly instances: readonly ObservedInstance[];
  /** Live sequences; undefined for a model without sequences. */
  readonly sequences: SequenceCounts | undefined;
  /** Requests that failed after they were accepted, by reason. */
  readonly failures: Readonly<Record<FailureReason, number>>;
  /** Requests that were refused on arrival with UNAVAILABLE. */
  readonly refused: number;
  /** The last failures and refusals with their texts, latest first. */
  readonly errors: readonly FailureNote[];
  /** Outcomes of requests with deadlines, by class; empty while there were none. */
  readonly deadlines: readonly DeadlineClass[];
  readonly loadMilliseconds: number;
}

export interface ObservedModel {
  readonly name: string;
  /** Distinguishes models of the same name: the path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly version: number;
  readonly state: ModelState;
  /** Why the version is not READY, or the latest failure since it became READY. */
  readonly reason: string;
  readonly isEnsemble: boolean;
  readonly bound: boolean;
  /** Success, failures, queue and latencies, for lists of all models; undefined for a version that was never created. */
  readonly counters: ObservedCounters | undefined;
  /** Reads the detail. The cost grows with the numbers of instances, batches and batch sizes. */
  readonly activity: (() => ObservedActivity) | undefined;
}

export interface ObservedCounters {
  readonly succeeded: number;
  /** Requests that failed after they were accepted, and those refused on arrival. */
  readonly failed: number;
  readonly inferences: number;
  readonly executions: number;
  readonly queued: number;
  /** Time that the oldest waiting request has waited; 0 if none waits. */
  readonly oldestMicroseconds: number;
  readonly instances: number;
  readonly healthyInstances: number;
  readonly busyInstances: number;
  /** Latencies since the watch began; undefined without a watch. They are live: copy them to compare. */
  readonly latencies:
    | {
        readonly request: LatencyHistogram;
        readonly queue: LatencyHistogram;
        readonly compute: LatencyHistogram;
      }
    | undefined;
}
