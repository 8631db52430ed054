import { keyList } from "../config/schema/key-list.js";

/**
 * Why a batch has the requests that it has, and not more:
 *
 * | reason | |
 * |---|---|
 * | `SIZE` | it is as large as it may be, or the next request would make it larger |
 * | `PREFERRED` | it was cut at a preferred size |
 * | `DELAY` | its oldest request has waited as long as the queue delay allows |
 * | `SHAPE` | the next request has other shapes, another shape tensor, or another set of inputs |
 * | `COST` | it costs as much as it may, or the next request would make it cost more |
 * | `POLICY` | adaptive batching held that waiting does not pay |
 * | `INSTANCE` | an instance took what there was: nobody was waiting |
 * | `FLUSH` | the model stops or unloads, and nothing waits for others any more |
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

/** One batch that was taken by an instance. */
export interface Cut {
  readonly reason: CutReason;
  /** Rows of the batch. */
  readonly batchSize: number;
}

/** Batches that are remembered one by one. */
const REMEMBERED = 16;

/** Why batches were cut: a count for each reason, and the last batches. Counting one allocates nothing. */
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

  /** The last batches, the latest first. */
  get recent(): Cut[] {
    const cuts: Cut[] = [];
    for (let i = this.#total - 1; i >= 0 && cuts.length < REMEMBERED; i--) {
      const place = i % REMEMBERED;
      cuts.push({ reason: this.#reasons[place]!, batchSize: this.#batchSizes[place]! });
    }
    return cuts;
  }
}
