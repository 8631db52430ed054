import type { EqualInputsRule, Payload, RequiredEqualInputs } from "../../batch/payload.js";
import type { ModelInstance } from "../../instance/model-instance.js";
import type { CutReason } from "../../observe/statistics.js";
import { costOf, type InferenceRequest, startOf } from "../../request/inference-request.js";
import type { KnownLimits } from "../scheduler.js";
import type { BatcherQueue, QueuedRequestView } from "./priority-queue.js";

/** Rounding error allowed in sums of fractional milliseconds. */
const CLOCK_ERROR_MS = 1e-6;

export interface BatchingRules {
  readonly maxBatchSize: number;
  /** In ascending order, without duplicates. */
  readonly preferredBatchSizes: readonly number[];
  /** Longest wait for further requests, in milliseconds; 0 for none. */
  readonly maxQueueDelayMs: number;
  readonly equalInputs: EqualInputsRule;
  /** Largest total cost of the requests of a batch; absent for any cost. */
  readonly maxBatchCost?: number;
}

/** Plan of a batch that is to be formed: which requests are next, and the rules. */
export interface BatchPlan {
  readonly view: QueuedRequestView;
  readonly rules: BatchingRules;
}

/** Decides what a batcher does from what it has learnt: which requests come in, and how batches form. */
export interface BatchPlanner {
  /** Its queue. @default Triton's */
  readonly queue?: BatcherQueue;
  /**
   * Counts a request that arrives, or refuses it, such as one whose answer would come too late. @default takes all
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs`
   */
  admit?(request: InferenceRequest, now: number): void;
  /** Plans the next batch. It may end waiting requests, and returns undefined if none is left. */
  plan(given: BatchingRules, now: number): BatchPlan | undefined;
  /** True if a request that arrives may change the plan, although the batch still waits for rows. @default true */
  mayHurry?(request: InferenceRequest): boolean;
  /** What it knows of requests with a time limit. */
  readonly limits?: KnownLimits | undefined;
  /** An instance has taken a batch. */
  started?(instance: ModelInstance, payload: Payload, now: number): void;
  /** An instance has executed a batch. */
  ended?(instance: ModelInstance, payload: Payload, now: number): void;
}

/** The payload that requests would join: an empty one, or one that waits for an instance. */
export interface PayloadView {
  readonly batchSize: number;
  readonly cost: number;
  readonly requiredEqual: RequiredEqualInputs | undefined;
}

export interface BatchDecision {
  /** Number of requests that join the payload now; 0 for none. */
  readonly take: number;
  /** True if no more requests may join the payload: the next ones open another payload. */
  readonly closePayload: boolean;
  /** True if the next request differs in shape or inputs: the payload may not be merged with another either. */
  readonly saturatePayload: boolean;
  /** Set if the requests wait for others: milliseconds until the next look at the latest. */
  readonly waitMs?: number;
  /** Number of rows in the queue that calls for an earlier look. */
  readonly wakeAtRows: number;
  /** Why the batch is not larger; undefined if it has all waiting requests and may still grow. */
  readonly cut: CutReason | undefined;
  /** Inputs of the payload that later requests must match. */
  readonly requiredEqual: RequiredEqualInputs | undefined;
}

/**
 * Triton's dynamic batching decision, as a pure function of the queue, the payload, the time and the rules.
 *
 * Requests are considered in order, and none is skipped. The batch grows until it reaches a preferred size, the next
 * request does not fit or differs, or the queue ends. Then it runs at once, or waits for others until the oldest
 * request has waited `maxQueueDelayMs`.
 *
 * @param queue the waiting requests in the order in which they run
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
  /** Reason that excludes the next request; set if the batch has to run now. */
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
      else if (cost + costOf(request) > maxBatchCost) end = "COST";
      else if (required !== undefined && !required.holdsFor(request.inputs)) end = "SHAPE";
      saturate = end === "SHAPE";
      if (end !== undefined) break;
    }
    rows += request.rows;
    cost += costOf(request);
    count++;
    oldest = Math.min(oldest, startOf(request));
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
  // A payload that already waits for an instance should be as large as possible when an instance takes it.
  if (!close && base > 0 && !preferred.includes(base)) return decide(count, false);
  const next = preferred.find((size) => size > base + rows) ?? preferred[0] ?? 0;
  return { ...decide(0, close), waitMs: delay - age, wakeAtRows: next - base };
}

/**
 * Returns why the payload of an adaptive plan is not larger. Sizes and delays of a plan come from adaptive batching; only the
 * largest size comes from the configuration.
 */
export function cutOfPlan(
  { cut, batchSize }: { readonly cut: CutReason | undefined; readonly batchSize: number },
  { maxBatchSize }: BatchingRules,
): CutReason | undefined {
  if (cut === "SHAPE" || cut === "COST" || cut === "FLUSH") return cut;
  return batchSize >= maxBatchSize ? "SIZE" : "POLICY";
}
