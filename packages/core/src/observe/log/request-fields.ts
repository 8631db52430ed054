import type { LogSubject } from "./logger.js";

/** Fields of lines about one request. A request without an id or a trace has no such field. */
export function requestFields(
  id: string,
  trace: { readonly traceId: string | undefined } | undefined,
): Pick<LogSubject, "request_id" | "trace_id"> {
  const traceId = trace?.traceId;
  return {
    ...(id !== "" && { request_id: id }),
    ...(traceId !== undefined && { trace_id: traceId }),
  };
}
