import type { QueueTotals } from "../request-queue.js";
import type { OrderedResponses } from "./ordered-responses.js";

/** What a batcher is told besides its configuration, when it is one of several or knows of lengths. */
export interface BatcherShare {
  /** Most that the requests of a batch may cost together. */
  readonly maxBatchCost?: number | undefined;
  /** Inputs that are brought to one shape later: theirs may differ between the requests of a batch. */
  readonly padded?: ReadonlySet<string> | undefined;
  /** Whether requests with other optional inputs may share a batch: the model divides it by itself. */
  readonly mixed?: boolean | undefined;
  /** Keeps the answers of all of the batchers in order. */
  readonly ordered?: OrderedResponses | undefined;
  /** Requests by priority level, over all of the batchers: what a level's size limit counts. */
  readonly levels?: Map<number, QueueTotals> | undefined;
  /** Called when `needsSlot` or `waitsBehindPayload` of the batcher may have changed. */
  readonly onChange?: (() => void) | undefined;
}
