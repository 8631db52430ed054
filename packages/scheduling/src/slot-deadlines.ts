import type {
  InferenceRequest,
  LateCause,
  ModelInstance,
  Payload,
  SlotPlan,
  SlotPlanner,
} from "@tritonjs/core/extension";
import type { TritonError } from "@tritonjs/protocol";
import { defaultDynamicBatching } from "@tritonjs/protocol/config";
import { hopelessError, PATIENCE_MS, STALE_MS } from "./deadline-batching.js";
import { LateCauses } from "./late-causes.js";
import type { LearnedTimes } from "./learned-times.js";
import type { DefaultLimits } from "./settings.js";
import type { Urgency } from "./urgency.js";
import { deadlineOf } from "./urgency-queue.js";

/**
 * Deadlines of ready requests in the direct strategy. A batch has a row for each slot up to the highest that takes part,
 * so a tight request in a low slot may leave the slots above it to the next batch.
 */
export class SlotDeadlines implements SlotPlanner {
  readonly #causes: LateCauses;

  constructor(
    private readonly times: LearnedTimes,
    private readonly limits: DefaultLimits,
  ) {
    this.#causes = new LateCauses(times, NOTHING_BEFORE);
  }

  arrived(request: InferenceRequest, now: number): void {
    this.#place(request);
    this.#causes.arrived(request, now);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#causes.started(payload, now);
    this.times.started(instance, payload, now);
  }

  ended(instance: ModelInstance, payload: Payload, now: number): void {
    this.#causes.ended(payload, now);
    this.times.ended(instance, payload, now);
  }

  /** @param leastRows rows up to the slot of the request */
  lateCause(request: InferenceRequest, leastRows: number, now: number): LateCause {
    return this.#causes.causeOf(request, now, leastRows);
  }

  plan(heads: readonly (InferenceRequest | undefined)[], now: number): SlotPlan {
    const { lastEnd } = this.times;
    // What was learnt long ago may be wrong by now.
    const times = now - lastEnd > STALE_MS ? undefined : this.times.next;
    const refused: (readonly [number, TritonError])[] = [];
    let most = heads.length;
    let [tightest, tightestSlot, needed] = [Number.POSITIVE_INFINITY, 0, 0];
    for (const [i, head] of heads.entries()) {
      if (head === undefined) continue;
      const due = this.#place(head);
      // A slot that was left out, or whose request may wait for ever, takes part once it has waited for long.
      if (now - head.queueStart > PATIENCE_MS) needed = i + 1;
      if (times === undefined || due === Number.POSITIVE_INFINITY) continue;
      const ms = times.expectedMs(i + 1);
      if (now + ms > due) refused.push([i, hopelessError(head, due - now, ms)]);
      else if (due < tightest) [tightest, tightestSlot] = [due, i];
    }
    if (times === undefined || tightest === Number.POSITIVE_INFINITY) {
      return { refused, most, slackMs: tightest };
    }
    most = Math.max(needed, tightestSlot + 1, Math.min(most, times.largestWithin(tightest - now)));
    return { refused, most, slackMs: tightest - now - times.plannedMs(most) };
  }

  /** Sets when a request is due. The turn of a request that runs again begins anew. */
  #place(request: InferenceRequest): number {
    const due = deadlineOf(request, BY_DEFAULT, this.limits);
    const urgency: Urgency = { due, order: due, ticket: 0, share: undefined, charge: 0 };
    request.extra = urgency;
    return due;
  }
}

const BY_DEFAULT = defaultDynamicBatching();

/** No request overtakes the next one of a slot. */
const NOTHING_BEFORE = {
  classLevelOf: ({ priority }: InferenceRequest) => priority,
  countBefore: () => 0,
  dated: (): never => {
    throw new RangeError("expected no request before another, got an index");
  },
};
