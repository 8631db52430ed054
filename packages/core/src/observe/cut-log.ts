import { keyList } from "../config/schema/key-list.js";

/**
 * Why a batch has exactly its requests:
 *
 * | reason | |
 * |---|---|
 * | `SIZE` | it has the maximum size, or the next request would exceed it |
 * | `PREFERRED` | it was cut at a preferred size |
 * | `DELAY` | its oldest request has waited for the whole queue delay |
 * | `SHAPE` | the next request has other shapes, another shape tensor, or another set of inputs |
 * | `COST` | it has the maximum cost, or the next request would exceed it |
 * | `POLICY` | adaptive batching decided that waiting does not pay |
 * | `INSTANCE` | an instance took all requests that were available: no other request was waiting |
 * | `FLUSH` | the model stops or unloads, so no request waits for others any more |
 */
export type CutReason = "SIZE" | "PREFERRED" | "DELAY" | "SHAPE" | "COST" | "POLICY" | "INSTANCE" | "FLUSH";

export const CUT_REASONS = keyList<Record<CutReason, unknown>>({
  SIZE: true,
  PREFERRED: true,
  DELAY: true,
  SHAPE: true,
  COST: true,
  POLICY: true,
  INSTANCE: true,
  FLUSH: true,
});

/** One batch that an instance has taken. */
export interface Cut {
  readonly reason: CutReason;
  /** Rows of the batch. */
  readonly batchSize: number;
}

/** Number of recent batches that are kept one by one. */
const REMEMBERED = 16;

/** Why batches were cut: a count for each reason, and the last batches. Counting a batch allocates nothing. */
export class CutLog {
  readonly counts: Record<CutReason, number> = {
    SIZE: 0,
    PREFERRED: 0,
    DELAY: 0,
    SHAPE: 0,
    COST: 0,
    POLICY: 0,
    INSTANCE: 0,
    FLUSH: 0,
  };
  readonly #reasons: CutReason[] = new Array<CutReason>(REMEMBERED).fill("SIZE");
  readonly #batchSizes = new Uint32Array(REMEMBERED);
  #total = 0;

  record(reason: CutReason, batchSize: number): void {
    this.counts[reason]++;
    const place = this.#total++ % REMEMBERED;
    this.#reasons[place] = reason;
    this.#batchSizes[place] = batchSize;
  }

  /** The last batches, latest first. */
  get recent(): Cut[] {
    const cuts: Cut[] = [];
    for (let i = this.#total - 1; i >= 0 && cuts.length < REMEMBERED; i--) {
      const place = i % REMEMBERED;
      cuts.push({ reason: this.#reasons[place]!, batchSize: this.#batchSizes[place]! });
    }
    return cuts;
  }
}
