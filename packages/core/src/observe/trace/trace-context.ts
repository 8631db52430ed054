import { randomBytes } from "node:crypto";

/** Position of a trace in a system of several services: W3C's trace context. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span, 16 hexadecimal digits. Undefined for a trace that begins here. */
  readonly parentSpanId: string | undefined;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;

/** Reads the context from a header `traceparent`. Undefined for a missing or invalid header. */
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
