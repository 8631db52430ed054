import {
  type Batcher,
  DynamicBatchScheduler,
  type InferenceRequest,
  type QueuedRequestView,
} from "@tritonjs/core/extension";

/**
 * A batcher that serves the newest request first. Batch sizes, the delay, and the limits and timeouts of the queue are
 * those of Triton's batcher.
 *
 * @param options of Triton's batcher
 */
export function newestFirst(options: NonNullable<Batcher["options"]> = {}): Batcher {
  return {
    name: "newestFirst",
    options,
    open: (model) =>
      new DynamicBatchScheduler(model, (queue) => ({
        // The queue may have become empty since the batcher was called.
        plan: (rules) => (queue.head === undefined ? undefined : { view: reversed(queue), rules }),
      })),
  };
}

/** The waiting requests from the newest to the oldest. Batches are formed in the order of a view. */
function reversed(queue: QueuedRequestView): QueuedRequestView {
  const next = new Map<InferenceRequest, InferenceRequest | undefined>();
  let newest: InferenceRequest | undefined;
  for (let request = queue.head; request !== undefined; request = queue.after(request)) {
    next.set(request, newest);
    newest = request;
  }
  return { head: newest, after: (request) => next.get(request) };
}
