import { type CollectedFamily, gauge } from "@tritonjs/core/internal/server";

/** The memory of received requests, as the metrics see it. */
export interface MeteredRequestMemory {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Requests that were refused since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
}

/** Metric families of the memory of requests. They are specific to this library: Triton has no such limit. */
export function requestMemoryFamilies(memory: MeteredRequestMemory): CollectedFamily[] {
  return [
    gauge(
      "tritonjs_request_memory_used_bytes",
      "Bytes that requests take as received and as unpacked, from their first byte to their answer",
      () => memory.usedBytes,
    ),
    gauge(
      "tritonjs_request_memory_limit_bytes",
      "Bytes that all requests together may take",
      () => memory.limitBytes,
    ),
    {
      name: "tritonjs_request_memory_refused_total",
      help: "Number of requests that were refused for their memory, by reason",
      type: "counter",
      collect: () =>
        Object.entries(memory.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
    },
  ];
}
