import type { InferenceService, RequestTrace, Tracing } from "@tritonjs/core/frontend";
import { firstHeader, type V2Request } from "../exchange/request.js";

/** The trace of a request of HTTP: what this frontend adds to it. */
export class HttpTrace {
  constructor(
    readonly request: RequestTrace,
    private readonly tracing: Tracing,
  ) {}

  /** A response has come. */
  responded(): void {
    this.#mark("INFER_RESPONSE_COMPLETE");
  }

  /** The answer is about to be sent; the trace is done when it is out, or the client gone. */
  send(sender: V2Request): void {
    this.#mark("HTTP_SEND_START");
    sender.onSent(() => {
      this.#mark("HTTP_SEND_END");
      this.request.release();
    });
  }

  #mark(name: string): void {
    this.request.mark(name, this.tracing.now());
  }
}

/** Parts of an exchange that tracing uses. */
interface TracedExchange {
  readonly service: Pick<InferenceService, "tracing">;
  readonly request: V2Request;
  readonly model: string;
  trace: HttpTrace | undefined;
}

/**
 * Traces a request whose body is there, if it is its turn. Those whose bodies never come whole are not counted.
 *
 * @param startMs when it began to come, on the clock of traces; undefined on a server without traces
 */
export function traceReceived(exchange: TracedExchange, startMs: number | undefined): void {
  const { tracing } = exchange.service;
  if (startMs === undefined || tracing === undefined) return;
  const { request } = exchange;
  const traceparent = tracing.continuesTraces ? firstHeader(request, "traceparent") : undefined;
  const trace = tracing.sample(exchange.model, traceparent);
  if (trace === undefined) return;
  trace.mark("HTTP_RECV_START", startMs);
  trace.mark("HTTP_RECV_END", tracing.now());
  exchange.trace = new HttpTrace(trace, tracing);
}
