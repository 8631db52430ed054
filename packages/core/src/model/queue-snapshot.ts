import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { Cut, CutReason } from "../observe/cut-log.js";
import type { ModelStatistics } from "../observe/statistics.js";
import type { Scheduler } from "../scheduler/scheduler.js";

/** Requests that wait at one priority level. */
export interface QueueLevelSnapshot {
  /** 1 is the highest; 0 for a model without levels. */
  readonly priorityLevel: number;
  /** Waiting requests, delayed ones included. */
  readonly queued: number;
  /** Those whose timeout passed under the DELAY action. */
  readonly delayed: number;
  readonly rows: number;
  /** How long the oldest of them has waited. */
  readonly oldestAgeMicroseconds: number;
}

/** A batch that was formed: it waits for an instance, or is at work. */
export interface PayloadSnapshot {
  readonly requests: number;
  readonly rows: number;
  /** How long ago its oldest request came. */
  readonly ageMicroseconds: number;
  /** Why it was cut where it was; undefined for a model without a batcher. One that waits may still grow. */
  readonly cut: CutReason | undefined;
}

/** What one instance has. */
export interface InstanceQueueSnapshot {
  readonly name: string;
  /** The batch that it runs, and one that it begins with afterwards, where it takes batches ahead. */
  readonly running: readonly PayloadSnapshot[];
  /** Batches that wait for this instance alone, as those of sequences do. */
  readonly waiting: readonly PayloadSnapshot[];
}

/** What a model's requests are waiting for, at one moment. */
export interface QueueSnapshot {
  /** Requests that wait and are in no batch yet. */
  readonly queued: number;
  /** The same by priority level, for models with a dynamic batcher; levels that nobody waits at are left out. */
  readonly levels: readonly QueueLevelSnapshot[];
  /** Batches that wait for any instance, the next one first. */
  readonly payloads: readonly PayloadSnapshot[];
  readonly instances: readonly InstanceQueueSnapshot[];
  /** Batches that instances have taken, by the reason for which they were cut. */
  readonly cuts: Readonly<Record<CutReason, number>>;
  /** The last of them, the latest first: 16 at most. */
  readonly recentCuts: readonly Cut[];
}

/** Reads the queue of a model. Changes nothing; costs as much as there are levels, payloads and instances. */
export function queueSnapshot(
  scheduler: Scheduler,
  group: InstanceGroup,
  statistics: ModelStatistics,
  now: number,
): QueueSnapshot {
  const ageOf = (since: number) => Math.max(0, Math.round((now - since) * 1000));
  const describe = ({ requestCount, batchSize, oldestQueueStart, cut }: Payload): PayloadSnapshot => ({
    requests: requestCount,
    rows: batchSize,
    ageMicroseconds: ageOf(oldestQueueStart),
    cut,
  });
  return {
    queued: scheduler.queuedCount,
    levels: (scheduler.levels ?? []).map(({ oldestQueueStart, ...level }) => ({
      ...level,
      oldestAgeMicroseconds: ageOf(oldestQueueStart),
    })),
    payloads: group.waiting.map(describe),
    instances: group.instances.map((instance) => ({
      name: instance.placement.name,
      running: [...instance.atWork].map(describe),
      waiting: group.waitingFor(instance).map(describe),
    })),
    cuts: { ...statistics.cuts.counts },
    recentCuts: statistics.cuts.recent,
  };
}
