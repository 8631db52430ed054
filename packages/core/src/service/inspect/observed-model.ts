import type { ModelStatisticsReport } from "@tritonjs/protocol";
import type { QueueSnapshot } from "../../model/queue-snapshot.js";
import type { ModelState } from "../../model/registered-version.js";
import type { FailureNote } from "../../observe/error-log.js";
import type { LatencyCounts } from "../../observe/latency/latency-counts.js";
import type { FailureReason } from "../../observe/statistics.js";
import type { SequenceCounts } from "../../scheduler/scheduler.js";

/** One instance of a model, as an operator sees it. */
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
  readonly loadMilliseconds: number;
}

/** A version of a model, in whatever state. */
export interface ObservedModel {
  readonly name: string;
  /** Distinguishes models of the same name: the path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly version: number;
  readonly state: ModelState;
  /** Why the version is not READY, or the latest failure since it became READY. */
  readonly reason: string;
  readonly isEnsemble: boolean;
  /** True for a model that the program binds, false for one of a repository. */
  readonly bound: boolean;
  /** Success, failures, queue and latencies, for lists of all models; undefined for a version that was never created. */
  readonly counters: ObservedCounters | undefined;
  /** Reads the detail. The cost grows with the numbers of instances, batches and batch sizes. */
  readonly activity: (() => ObservedActivity) | undefined;
}

/** Counters of a version since it was created. */
export interface ObservedCounters {
  /** Requests that were answered. */
  readonly succeeded: number;
  /** Requests that failed after they were accepted, and those refused on arrival. */
  readonly failed: number;
  /** Rows of answered requests. */
  readonly inferences: number;
  readonly executions: number;
  /** Requests that wait for an instance. */
  readonly queued: number;
  /** Time that the oldest waiting request has waited; 0 if none waits. */
  readonly oldestMicroseconds: number;
  readonly instances: number;
  readonly healthyInstances: number;
  readonly busyInstances: number;
  /** Latencies since the watch began; undefined without a watch. They are live: copy them to compare. */
  readonly latencies:
    | { readonly request: LatencyCounts; readonly queue: LatencyCounts; readonly compute: LatencyCounts }
    | undefined;
}
