import type { ModelVersion } from "../../model/model-version.js";
import type { QueueSnapshot } from "../../model/queue-snapshot.js";
import { reportStatistics } from "../statistics-report.js";
import type { ObservedActivity, ObservedCounters, ObservedInstance } from "./observed-model.js";

/** Reads the counters of a version. */
export function countersOf(model: ModelVersion): ObservedCounters {
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

/** Reads the detail of a version. */
export function activityOf(model: ModelVersion): ObservedActivity {
  const { name, version, statistics, inflightCount, sequences } = model;
  return {
    statistics: reportStatistics(name, version, statistics),
    inflight: inflightCount,
    queue: model.queue(),
    instances: model.isEnsemble ? [] : model.instances.instances.map(instanceOf),
    sequences,
    failures: { ...statistics.failures },
    refused: statistics.refusedCount,
    errors: statistics.errors.recent,
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
