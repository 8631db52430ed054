import type { EqualInputsRule, RequiredEqualInputs } from "../../batch/required-equal-inputs.js";
import type { CutReason } from "../../observe/cut-log.js";
import type { QueuedRequestView } from "../priority-queue.js";

/** Sums of fractional milliseconds may miss by this much. */
const CLOCK_ERROR_MS = 1e-6;

/** What the batcher is told by the model's configuration. */
export interface BatchingRules {
  readonly maxBatchSize: number;
  /** Ascending, without repetition. */
  readonly preferredBatchSizes: readonly number[];
  /** 0: nobody waits for others. */
  readonly maxQueueDelayMs: number;
  readonly equalInputs: EqualInputsRule;
  /** Most that the requests of a batch may cost together; absent for any cost. */
  readonly maxBatchCost?: number;
}

/** The payload that requests would join: one that is still empty, or one that waits for an instance. */
export interface PayloadView {
  readonly batchSize: number;
  /** What its requests cost together. */
  readonly cost: number;
  readonly requiredEqual: RequiredEqualInputs | undefined;
}

/** What to do with the requests at the head of the queue. */
export interface BatchDecision {
  /** This many requests join the payload now; 0 for none. */
  readonly take: number;
  /** Nothing more may join the payload after this: the next requests open another one. */
  readonly closePayload: boolean;
  /** The next request differs in shape or inputs: the payload may not be merged with another either. */
  readonly saturatePayload: boolean;
  /** Set when the requests wait for others: look again after this time at the latest. */
  readonly waitMs?: number;
  /** While they wait, rows in the queue that make it worth looking earlier. */
  readonly wakeAtRows: number;
  /** Why the batch is not larger; undefined while it goes with all there is, and may still grow. */
  readonly cut: CutReason | undefined;
  /** What the payload requires of later requests. */
  readonly requiredEqual: RequiredEqualInputs | undefined;
}

/**
 * Triton's dynamic batching decision as a pure function of the queue, the payload, the time and the rules.
 *
 * Requests are looked at in order, none is skipped. The batch grows until a preferred size is hit, the next
 * request does not fit or differs, or the queue ends; then it goes now, or waits for others until the oldest
 * request has waited `maxQueueDelayMs`.
 *
 * @param queue the waiting requests in the order in which they are to run
 */
export function formBatch(
  queue: QueuedRequestView,
  payload: PayloadView,
  now: number,
  rules: BatchingRules,
): BatchDecision {
  const { preferredBatchSizes: preferred, maxBatchSize, maxBatchCost = Number.POSITIVE_INFINITY } = rules;
  const maxPreferred = preferred.at(-1) ?? 0;
  const base = payload.batchSize;
  let required = payload.requiredEqual;
  let rows = 0;
  let count = 0;
  let cost = payload.cost;
  let oldest = Number.POSITIVE_INFINITY;
  let best: { rows: number; count: number } | undefined;
  let close = false;
  let saturate = false;
  /** What keeps the next request out; set when the batch has to go now. */
  let end: CutReason | undefined;

  for (let request = queue.head; request !== undefined; request = queue.after(request)) {
    if (base + rows === 0) {
      required = rules.equalInputs.startWith(request.inputs);
    } else {
      const grown = base + rows + request.rows;
      if (grown > maxPreferred && best === undefined) {
        if (rows > 0) best = { rows, count };
        close = true;
      }
      if (grown > maxBatchSize) end = "SIZE";
      else if (cost + request.batchCost > maxBatchCost) end = "COST";
      else if (required !== undefined && !required.holdsFor(request.inputs)) end = "SHAPE";
      saturate = end === "SHAPE";
      if (end !== undefined) break;
    }
    rows += request.rows;
    cost += request.batchCost;
    count++;
    oldest = Math.min(oldest, request.batcherStart ?? request.queueStart);
    if (preferred.includes(base + rows)) best = { rows, count };
    if (cost >= maxBatchCost) {
      end = "COST";
      break;
    }
  }

  const decide = (take: number, closePayload: boolean, cut?: CutReason): BatchDecision => ({
    take,
    closePayload,
    saturatePayload: saturate,
    wakeAtRows: 0,
    cut,
    requiredEqual: required,
  });
  const sizeCut = (size: number): CutReason => (size >= maxBatchSize ? "SIZE" : "PREFERRED");
  const delay = rules.maxQueueDelayMs;
  const age = now - oldest;
  const delayExceeded = delay > 0 && age + CLOCK_ERROR_MS >= delay;
  if (best !== undefined && !delayExceeded) {
    const closes = close || delay === 0;
    const atEnd = best.count === count && !preferred.includes(base + best.rows);
    return decide(best.count, closes, (atEnd ? end : undefined) ?? sizeCut(base + best.rows));
  }
  if (count === 0) return decide(0, close || end !== undefined, end);
  if (end !== undefined) return decide(count, true, end);
  if (base + rows >= maxPreferred) return decide(count, true, sizeCut(base + rows));
  if (delayExceeded) return decide(count, close, "DELAY");
  if (delay === 0) return decide(count, close);
  // A payload that already waits for an instance should be as large as it can be when one takes it.
  if (!close && base > 0 && !preferred.includes(base)) return decide(count, false);
  const next = preferred.find((size) => size > base + rows) ?? preferred[0] ?? 0;
  return { ...decide(0, close), waitMs: delay - age, wakeAtRows: next - base };
}
