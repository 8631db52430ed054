import type { EqualInputsRule } from "../../batch/required-equal-inputs.js";
import type { WaitingRequest } from "./implicit-states.js";

/** Sums of fractional milliseconds may miss by this much. */
const CLOCK_ERROR_MS = 1e-6;

/** What the direct strategy is told by the model's configuration. */
export interface DirectRules {
  /** 0: nobody waits for others. */
  readonly maxQueueDelayMs: number;
  /** Part of the slots, from 0 to 1, that is worth running before the delay ends; 0 for any. */
  readonly minimumSlotUtilization: number;
  readonly equalInputs: EqualInputsRule;
}

/** What to do with the slots of an instance. */
export interface DirectDecision {
  /** Slot by slot from the lowest: whether its request runs; a null request takes the place of one that does not. */
  readonly rows: readonly boolean[];
  /** Set when the requests wait for others: look again after this time at the latest. */
  readonly waitMs?: number;
}

/**
 * The direct strategy's decision as a pure function of the slots, the time and the rules.
 *
 * ```
 * slot      0        1        2        3
 * waiting   A1 A2    -        C1       -
 * batch     A1       null     C1              up to the highest slot with a request
 * ```
 *
 * A request that differs from the first one in an input that must agree stays where it is, and a null request runs
 * in its place.
 *
 * @param heads for each slot the request whose turn is next
 */
export function formDirectBatch(
  heads: readonly (WaitingRequest | undefined)[],
  now: number,
  rules: DirectRules,
): DirectDecision {
  const ready = heads.filter((head) => head !== undefined);
  const first = ready[0];
  if (first === undefined) return { rows: [] };
  const { maxQueueDelayMs: delay, minimumSlotUtilization: utilization } = rules;
  if (delay > 0 && utilization > 0) {
    const age = now - Math.min(...ready.map((request) => request.queueStart));
    const tooOld = age + CLOCK_ERROR_MS >= delay;
    if (!tooOld && ready.length / heads.length < utilization) return { rows: [], waitMs: delay - age };
  }
  const required = rules.equalInputs.startWith(first.inputs);
  const highest = heads.findLastIndex((head) => head !== undefined);
  const rows = heads
    .slice(0, highest + 1)
    .map((head) => head !== undefined && (required === undefined || required.holdsFor(head.inputs)));
  return { rows };
}
