import type { Registry } from "prom-client";
import { promClient } from "./prom-client.js";

/** The memory of received requests, as the metrics see it. */
export interface MeteredRequestMemory {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Requests that were refused since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
}

/**
 * Adds the metric families of the memory of requests to a page. They are specific to this library: Triton has no such
 * limit.
 */
export function addRequestMemoryMetrics(registry: Registry, memory: MeteredRequestMemory): void {
  const { Counter, Gauge } = promClient();
  const registers = [registry];
  new Gauge({
    name: "tritonjs_request_memory_used_bytes",
    help: "Bytes that requests take as received and as unpacked, from their first byte to their answer",
    registers,
  }).set(memory.usedBytes);
  new Gauge({
    name: "tritonjs_request_memory_limit_bytes",
    help: "Bytes that all requests together may take",
    registers,
  }).set(memory.limitBytes);
  const refusals = new Counter({
    name: "tritonjs_request_memory_refused_total",
    help: "Number of requests that were refused for their memory, by reason",
    labelNames: ["reason"],
    registers,
  });
  for (const [reason, count] of Object.entries(memory.refusals)) refusals.inc({ reason }, count);
}
