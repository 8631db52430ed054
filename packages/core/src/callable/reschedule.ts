/**
 * Result of a plain callback of an iterative sequence model for a request that it wants to get again. The request joins
 * the next batch, until the callback returns its outputs.
 *
 * @example
 * ```ts
 * const inferFunc = (requests) =>
 *   requests.map((request) => (isDone(request) ? { text: textOf(request) } : RESCHEDULE));
 * ```
 */
export const RESCHEDULE = Symbol.for("tritonjs.reschedule");
