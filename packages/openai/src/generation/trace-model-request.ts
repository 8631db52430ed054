import { type HttpTrace, type TracedExchange, traceReceived } from "@tritonjs/http/frontend";
import type { OpenAiExchange } from "./exchange.js";

/**
 * Begins the trace of a request to a model, if it is selected or the client's headers continue a trace. It ends when
 * the answer of the exchange has been sent.
 */
export function traceModelRequest(
  { service, request, traces, startMs }: OpenAiExchange,
  model: string,
): HttpTrace | undefined {
  const traced: TracedExchange = { service, request, model, trace: undefined };
  traceReceived(traced, startMs);
  if (traced.trace !== undefined) traces.push(traced.trace);
  return traced.trace;
}
