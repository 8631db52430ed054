import type { LogSubject } from "./logger.js";

/** Most ids in a line about a batch. */
const MOST_IDS = 16;

/** Batches that a model runs while it writes a line. */
interface RunningBatch {
  readonly requests: readonly {
    readonly id: string;
    /** False for a request that only fills a place. */
    readonly ready: boolean;
    readonly traceparent?: string | undefined;
  }[];
  /** True while the request at `index` is unanswered. */
  isOpen(index: number): boolean;
}

/**
 * Fields of a line that a model itself writes. While it works on one request, these are the fields of this request. While
 * it works on several, `request_ids` lists their ids, at most 16, because the line does not tell which one it means.
 */
export function runningFields(
  batches: Iterable<RunningBatch>,
): Pick<LogSubject, "request_id" | "trace_id" | "request_ids"> {
  const open = [...batches].flatMap((batch) =>
    batch.requests.filter(({ ready }, index) => ready && batch.isOpen(index)),
  );
  if (open.length === 1) {
    const { id, traceparent } = open[0]!;
    return requestFields(id, { traceId: traceparent?.split("-")[1] });
  }
  const ids = open.map(({ id }) => id).filter((id) => id !== "");
  return ids.length === 0 ? {} : { request_ids: ids.slice(0, MOST_IDS) };
}

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
