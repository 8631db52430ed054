import { randomBytes } from "node:crypto";

/** Who a trace belongs to in a system of several services: W3C's trace context. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span of whoever asks, 16 hexadecimal digits; undefined for a trace that begins here. */
  readonly parentSpanId: string | undefined;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;

/** The context that a header `traceparent` tells; undefined for none, or one that is not valid. */
export function readTraceparent(header: string | undefined): TraceContext | undefined {
  const match = header === undefined ? null : TRACEPARENT.exec(header.trim());
  return match === null ? undefined : { traceId: match[1]!, parentSpanId: match[2]! };
}

export function newTraceContext(): TraceContext {
  return { traceId: randomBytes(16).toString("hex"), parentSpanId: undefined };
}

export function newSpanId(): string {
  return randomBytes(8).toString("hex");
}
