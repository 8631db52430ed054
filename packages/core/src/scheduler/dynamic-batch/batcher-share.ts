import type { QueueTotals } from "../request-queue.js";
import type { OrderedResponses } from "./ordered-responses.js";

/** Settings of a batcher besides its configuration, when it is one of several or knows of lengths. */
export interface BatcherShare {
  /** Largest total cost of the requests of a batch. */
  readonly maxBatchCost?: number | undefined;
  /** Inputs that are padded to one shape later, so their shapes may differ between the requests of a batch. */
  readonly padded?: ReadonlySet<string> | undefined;
  /** True if requests with different optional inputs may share a batch, which the model divides by itself. */
  readonly mixed?: boolean | undefined;
  /** Keeps the answers of all batchers in order. */
  readonly ordered?: OrderedResponses | undefined;
  /** Totals by priority level over all batchers, which the size limit of a level counts. */
  readonly levels?: Map<number, QueueTotals> | undefined;
  /** Called when `needsSlot` or `waitsBehindPayload` of the batcher may have changed. */
  readonly onChange?: (() => void) | undefined;
}
