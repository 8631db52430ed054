import { TensorActivity } from "./tensor-activity.js";
import type { Trace, TraceEntry, TracePart } from "./trace.js";
import { newSpanId, newTraceContext } from "./trace-context.js";

/** A span of OTLP in JSON, with the fields used here. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  /** Kind of the span: 1 is internal, 2 is a server. */
  readonly kind: 1 | 2;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
}

/** A named value of OTLP in JSON. */
export interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
}

interface Moment {
  readonly name: string;
  readonly ns: number;
}

/**
 * Makes the spans of a trace, as Triton does: `InferRequest` for the whole trace, below it one span for each request,
 * named after its model, and below that `compute`. The recorded events are their events.
 */
export function spansOf(trace: Trace): Span[] {
  const { traceId, parentSpanId } = trace.context ?? newTraceContext();
  const requests = trace.requests.map(readRequest).filter(({ moments }) => moments.length > 0);
  const all = requests.flatMap(({ moments }) => moments);
  if (all.length === 0) return [];
  const unix = (ns: number) => String(BigInt(Math.round(trace.wallOffsetMs * 1e6)) + BigInt(ns));
  const span = (
    name: string,
    parent: string | undefined,
    moments: readonly Moment[],
    rest: Partial<Span> = {},
  ) => {
    const { first, last } = reachOf(rest.kind === 2 ? all : moments);
    return {
      traceId,
      spanId: newSpanId(),
      parentSpanId: parent,
      name,
      kind: 1,
      startTimeUnixNano: unix(first),
      endTimeUnixNano: unix(last),
      attributes: [],
      events: moments.map((moment) => ({ name: moment.name, timeUnixNano: unix(moment.ns) })),
      ...rest,
    } as Span;
  };
  const outer = all.filter(({ name }) => !isOfRequest(name));
  const root = span("InferRequest", parentSpanId, outer, { kind: 2 });
  const spans = [root];
  const idOf = new Map<number, string>();
  for (const { model, moments, attributes, id, parentId } of requests) {
    const own = moments.filter(({ name }) => isOfRequest(name) && !isOfCompute(name));
    if (model === undefined || own.length === 0) continue;
    const request = span(model, idOf.get(parentId) ?? root.spanId, own, { attributes });
    idOf.set(id, request.spanId);
    spans.push(request);
    const computed = moments.filter(({ name }) => isOfCompute(name));
    if (computed.length > 0) spans.push(span("compute", request.spanId, computed));
  }
  return spans;
}

/** Earliest and latest moment. It loops, because a stream may have too many moments for the arguments of one call. */
function reachOf(moments: readonly Moment[]): { readonly first: number; readonly last: number } {
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  for (const { ns } of moments) {
    if (ns < first) first = ns;
    if (ns > last) last = ns;
  }
  return { first, last };
}

function isOfCompute(name: string): boolean {
  return name.startsWith("COMPUTE_");
}

function isOfRequest(name: string): boolean {
  return isOfCompute(name) || name.startsWith("REQUEST_") || name === "QUEUE_START";
}

function readRequest(entries: readonly TraceEntry[]) {
  const parts = entries.filter((entry): entry is TracePart => !(entry instanceof TensorActivity));
  const moments: Moment[] = [];
  const attributes: Attribute[] = [];
  let model: string | undefined;
  let parentId = 0;
  for (const part of parts) {
    if ("timestamps" in part) moments.push(...part.timestamps);
    if ("model_name" in part) {
      model = part.model_name;
      parentId = part.parent_id ?? 0;
      attributes.push(
        textValue("triton.model_name", part.model_name),
        whole("triton.model_version", part.model_version),
        whole("triton.trace_id", part.id),
        whole("triton.trace_parent_id", parentId),
        textValue("triton.request_id", part.request_id ?? ""),
      );
    }
    if ("batch" in part) {
      const { size, requests, cut, instance } = part.batch;
      attributes.push(whole("tritonjs.batch.size", size), whole("tritonjs.batch.requests", requests));
      if (cut !== undefined) attributes.push(textValue("tritonjs.batch.cut", cut));
      attributes.push(textValue("tritonjs.batch.instance", instance));
    }
  }
  return { id: parts[0]?.id ?? 0, model, parentId, moments, attributes };
}

export function textValue(key: string, value: string): Attribute {
  return { key, value: { stringValue: value } };
}

function whole(key: string, value: number): Attribute {
  return { key, value: { intValue: String(value) } };
}
