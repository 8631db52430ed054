/**
 * What a plain callback of an iterative sequence model returns for a request that it wants to see again: the request
 * joins the next batch, until the callback returns its outputs.
 *
 * @example
 * ```ts
 * const inferFunc = (requests) =>
 *   requests.map((request) => (isDone(request) ? { text: textOf(request) } : RESCHEDULE));
 * ```
 */
export const RESCHEDULE = Symbol.for("tritonjs.reschedule");
