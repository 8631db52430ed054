import type { EqualInputsRule } from "../../batch/required-equal-inputs.js";
import type { WaitingRequest } from "./implicit-states.js";

/** Rounding error allowed in sums of fractional milliseconds. */
const CLOCK_ERROR_MS = 1e-6;

/** Rules of the direct strategy from the model's configuration. */
export interface DirectRules {
  /** Longest wait for further requests, in milliseconds; 0 for none. */
  readonly maxQueueDelayMs: number;
  /** Share of the slots, from 0 to 1, with which a batch runs before the delay ends; 0 for any. */
  readonly minimumSlotUtilization: number;
  readonly equalInputs: EqualInputsRule;
}

/** Decision about the slots of an instance. */
export interface DirectDecision {
  /** For each slot from the lowest: true if its request runs, false if a null request takes its place. */
  readonly rows: readonly boolean[];
  /** Set if the requests wait for others: milliseconds until the next look at the latest. */
  readonly waitMs?: number;
}

/**
 * The direct strategy's decision, as a pure function of the slots, the time and the rules.
 *
 * ```
 * slot      0        1        2        3
 * waiting   A1 A2    -        C1       -
 * batch     A1       null     C1              up to the highest slot with a request
 * ```
 *
 * A request that differs from the first one in an input that must agree stays in its sequence, and a null request runs
 * in its place.
 *
 * @param heads the next request of each slot
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
