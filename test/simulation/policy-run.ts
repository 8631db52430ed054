import { Heap } from "../../packages/core/src/scheduler/dynamic/priority-queue.js";
import { arrivalsOf, type DeadlineCase, durationsOf, fullBatchCapacity } from "./deadline-cases.js";
import { noOutcomes, type Served } from "./deadline-run.js";

/** A waiting request as a policy sees it. */
export interface Waiting {
  readonly atMs: number;
  readonly deadlineMs: number;
  readonly kind: number;
}

/** What a policy does with an idle instance. */
export interface PolicyDecision {
  /** The requests of the next batch; empty to leave the instance idle. */
  readonly batch: readonly Waiting[];
  /** Requests that are given up. */
  readonly refused: readonly Waiting[];
  /** Time of the next look if no batch starts and nothing arrives. */
  readonly lookAtMs?: number;
}

/** Durations that a policy knows: those of the profile that the papers make before they serve. */
export interface Profile {
  readonly maxBatchSize: number;
  readonly instances: number;
  durationMs(rows: number): number;
}

/**
 * A scheduling policy of a paper. It is told the queue in the order of arrival whenever an instance is idle and the
 * queue is not empty.
 */
export interface Policy {
  arrived?(request: Waiting): void;
  next(queue: readonly Waiting[], nowMs: number): PolicyDecision;
}

type Event = { readonly atMs: number; readonly batch?: readonly Waiting[] };

/** Serves a case by a policy on idealised instances. */
export function byPolicy(policyOf: (profile: Profile, one: DeadlineCase) => Policy): Served {
  return async (one, { load, seed, durationMs }) => {
    const outcomes = noOutcomes(one);
    const duration = durationsOf(one, seed + 1);
    const { maxBatchSize, instances, fixedMs, perRowMs } = one;
    const profile: Profile = { maxBatchSize, instances, durationMs: (rows) => fixedMs + perRowMs * rows };
    const policy = policyOf(profile, one);
    const arrivals = arrivalsOf(one, load * fullBatchCapacity(one), seed, durationMs);
    const events = new Heap<Event>((a, b) => a.atMs - b.atMs);
    let queue: Waiting[] = [];
    let idle = instances;
    let next = 0;
    const look = (nowMs: number): void => {
      while (idle > 0 && queue.length > 0) {
        const { batch, refused, lookAtMs } = policy.next(queue, nowMs);
        const gone = new Set([...batch, ...refused]);
        for (const { kind } of refused) outcomes[kind]!.refused++;
        if (gone.size > 0) queue = queue.filter((request) => !gone.has(request));
        if (batch.length === 0) {
          if (lookAtMs !== undefined) events.add({ atMs: Math.max(lookAtMs, nowMs + 1e-6) });
          return;
        }
        idle--;
        events.add({ atMs: nowMs + duration(batch.length), batch });
      }
    };
    for (;;) {
      const event = events.first;
      const arrival = arrivals[next];
      if (event === undefined && arrival === undefined) break;
      if (arrival !== undefined && (event === undefined || arrival.atMs < event.atMs)) {
        next++;
        const { atMs, kind } = arrival;
        outcomes[kind]!.sent++;
        const request = { atMs, kind, deadlineMs: atMs + one.classes[kind]!.limitMs };
        policy.arrived?.(request);
        queue.push(request);
        look(atMs);
        continue;
      }
      const { atMs, batch } = events.take()!;
      if (batch !== undefined) {
        idle++;
        for (const { kind, deadlineMs } of batch) {
          if (atMs <= deadlineMs) outcomes[kind]!.inTime++;
          else outcomes[kind]!.late++;
        }
      }
      look(atMs);
    }
    for (const { kind } of queue) outcomes[kind]!.late++;
    return outcomes;
  };
}
