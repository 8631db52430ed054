import type { Policy, Profile, Waiting } from "./policy-run.js";

/*
 * The rules of four papers on serving, as far as they concern one model: which requests run next, in what batch, and
 * which are given up. All of them know the durations of batches in advance.
 */

const byDeadline = (a: Waiting, b: Waiting): number => a.deadlineMs - b.deadlineMs;

function hopeless(queue: readonly Waiting[], nowMs: number, leastMs: number): Waiting[] {
  return queue.filter(({ deadlineMs }) => nowMs + leastMs > deadlineMs);
}

/** The largest batch size of at most `most` rows that takes no longer than `leftMs`; 0 if none does. */
function largestWithin(profile: Profile, leftMs: number, most: number): number {
  let size = Math.min(profile.maxBatchSize, most);
  while (size > 0 && profile.durationMs(size) > leftMs) size--;
  return size;
}

/**
 * Clockwork (Gujarati et al., OSDI 2020): requests that cannot be in time are rejected in advance. The controller takes
 * the largest batch that its earliest deadline allows.
 */
export function clockwork(profile: Profile): Policy {
  return {
    next(queue, nowMs) {
      const refused = hopeless(queue, nowMs, profile.durationMs(1));
      const live = queue.filter((request) => !refused.includes(request)).sort(byDeadline);
      if (live.length === 0) return { batch: [], refused };
      const size = largestWithin(profile, live[0]!.deadlineMs - nowMs, live.length);
      return { batch: live.slice(0, size), refused };
    },
  };
}

/**
 * Nexus (Shen et al., SOSP 2019): early drop. A window of the batch size that was planned for the load moves along the
 * queue until its first request can be in time. The requests before it are dropped.
 */
export function nexus(profile: Profile, plannedSize: number): Policy {
  return {
    next(queue, nowMs) {
      const live = [...queue].sort(byDeadline);
      const inTime = (from: number): boolean => {
        const rows = Math.min(plannedSize, live.length - from);
        return nowMs + profile.durationMs(rows) <= live[from]!.deadlineMs;
      };
      let from = 0;
      while (from < live.length && !inTime(from)) from++;
      return { batch: live.slice(from, from + plannedSize), refused: live.slice(0, from) };
    },
  };
}

/**
 * Symphony (Chen et al., 2023): deferred batching. A batch waits until the latest moment at which one with one more
 * request could still be in time, so that batches are as large as the deadlines allow.
 */
export function symphony(profile: Profile): Policy {
  return {
    next(queue, nowMs) {
      const refused = hopeless(queue, nowMs, profile.durationMs(1));
      const live = queue.filter((request) => !refused.includes(request)).sort(byDeadline);
      if (live.length === 0) return { batch: [], refused };
      const first = live[0]!.deadlineMs;
      const size = largestWithin(profile, first - nowMs, live.length);
      const more = Math.min(profile.maxBatchSize, size + 1);
      const lookAtMs = first - profile.durationMs(more);
      if (size < profile.maxBatchSize && lookAtMs > nowMs) return { batch: [], refused, lookAtMs };
      return { batch: live.slice(0, size), refused };
    },
  };
}

/**
 * VTC (Sheng et al., OSDI 2024): the class that was served least goes first, counted in rows. A class that was away
 * begins with the counter of the least served one. It knows no deadlines.
 */
export function vtc(profile: Profile, classes: number): Policy {
  const served = new Array<number>(classes).fill(0);
  const waiting = new Array<number>(classes).fill(0);
  return {
    arrived({ kind }) {
      const before = waiting[kind]!;
      waiting[kind] = before + 1;
      if (before > 0) return;
      const present = served.filter((_, other) => other !== kind && waiting[other]! > 0);
      if (present.length > 0) served[kind] = Math.max(served[kind]!, Math.min(...present));
    },
    next(queue) {
      const lists = served.map((_, kind) => queue.filter((request) => request.kind === kind));
      const taken = lists.map(() => 0);
      const batch: Waiting[] = [];
      while (batch.length < profile.maxBatchSize) {
        let least = -1;
        for (let kind = 0; kind < classes; kind++) {
          if (taken[kind]! < lists[kind]!.length && (least < 0 || served[kind]! < served[least]!))
            least = kind;
        }
        if (least < 0) break;
        batch.push(lists[least]![taken[least]!]!);
        taken[least]! += 1;
        served[least]! += 1;
        waiting[least]! -= 1;
      }
      return { batch, refused: [] };
    },
  };
}
