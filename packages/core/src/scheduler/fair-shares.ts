import type { ShareOptions } from "../config/model-options.js";
import type { CallerShare, InferenceRequest } from "../request/inference-request.js";

/** Credit of a caller that has had less than its share, in largest batches. */
const CREDIT_BATCHES = 4;
/** Number of idle callers that may be kept before a sweep. */
const IDLE_CALLERS = 256;

/**
 * Weighted fair queueing (start-time fair queueing). Virtual time goes on as requests leave the queue. A request begins
 * at the present virtual time, or after the last one of its caller, and takes its cost divided by the weight of the
 * caller. Requests run in the order of their beginnings: a caller that sends more than its share waits behind itself,
 * not in front of others. A caller that has had less than its share may begin a little in the past: a few of its
 * requests that come together then run together.
 *
 * ```
 * caller a, 3 requests:  |--a1--|--a2--|--a3--|
 * caller b, comes now:   |--b1--|                  order: a1 b1 a2 a3
 * ```
 */
export class FairShares {
  readonly #nameOf: (request: InferenceRequest) => string;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #callers = new Map<string, CallerShare>();
  /** Beginning of the request that left the queue last. */
  #now = 0;
  #sweepAt = IDLE_CALLERS;
  readonly #credit: number;

  /** @param maxBatchSize rows of the largest batch */
  constructor({ by, weights = {} }: ShareOptions, maxBatchSize: number) {
    this.#credit = CREDIT_BATCHES * maxBatchSize;
    this.#weights = new Map(Object.entries(weights));
    this.#nameOf =
      typeof by === "function"
        ? ({ id, caller, priority, parameters }) => String(by({ id, caller, priority, parameters }))
        : (request) => callerOf(request, by);
  }

  /** Number of callers that are remembered. */
  get size(): number {
    return this.#callers.size;
  }

  /** Finds the place of a request in the order. Nothing is charged yet. */
  place(request: InferenceRequest): void {
    const name = this.#nameOf(request);
    let share = this.#callers.get(name);
    if (share === undefined) {
      if (this.#callers.size >= this.#sweepAt) this.#sweep();
      share = { name, weight: this.#weights.get(name) ?? 1, finish: this.#now - this.#credit, waiting: 0 };
      this.#callers.set(name, share);
    }
    request.share = share;
    request.order = Math.max(this.#now - this.#credit, share.finish);
  }

  /** Charges the caller for a request that joins the queue. */
  joined(request: InferenceRequest): void {
    const share = request.share!;
    share.waiting++;
    share.finish = request.order + costOf(request) / share.weight;
  }

  /** A request leaves the queue to run. */
  ran(request: InferenceRequest): void {
    request.share!.waiting--;
    if (request.order > this.#now) this.#now = request.order;
  }

  /** A request leaves the queue without having run, so its caller gets its cost back. */
  left(request: InferenceRequest): void {
    const share = request.share!;
    share.waiting--;
    share.finish -= costOf(request) / share.weight;
  }

  /** Forgets callers that wait for nothing and would begin anew anyway. */
  #sweep(): void {
    for (const [name, { waiting, finish }] of this.#callers) {
      if (waiting === 0 && finish <= this.#now - this.#credit + 1) this.#callers.delete(name);
    }
    this.#sweepAt = 2 * this.#callers.size + IDLE_CALLERS;
  }
}

/** Name of the caller of a request: as its header says, else its parameter; empty if it is unknown. */
export function callerOf({ caller, parameters }: InferenceRequest, parameter: string): string {
  return caller === "" ? String(parameters[parameter] ?? "") : caller;
}

/** Cost of a request: its own, where the model says what requests cost, else its rows. */
function costOf({ batchCost, rows }: InferenceRequest): number {
  return batchCost > 0 ? batchCost : rows;
}
