import type { InferenceService, RequestTrace, Tracing } from "@tritonjs/core/frontend";
import { firstHeader, type V2Request } from "../exchange/request.js";
import { httpAttributes } from "./http-attributes.js";

/** The trace of an HTTP request: the part that this frontend adds. */
export class HttpTrace {
  /** Status of the answer; undefined while there is none, and when the client has left. */
  status: number | undefined;

  constructor(
    readonly request: RequestTrace,
    private readonly tracing: Tracing,
  ) {}

  /** Notes that a response has come. */
  responded(): void {
    this.#mark("INFER_RESPONSE_COMPLETE");
  }

  /** Notes that the answer is about to be sent. The trace ends when the answer is sent or the client has left. */
  send(sender: V2Request): void {
    this.#mark("HTTP_SEND_START");
    sender.onSent(() => {
      this.#mark("HTTP_SEND_END");
      this.request.release(this.status);
    });
  }

  #mark(name: string): void {
    this.request.mark(name, this.tracing.now());
  }
}

/** Parts of an exchange that tracing uses. */
export interface TracedExchange {
  readonly service: Pick<InferenceService, "tracing">;
  readonly request: V2Request;
  readonly model: string;
  trace: HttpTrace | undefined;
}

/**
 * Traces a request whose body is complete, if the sampling rate selects it. Requests with an incomplete body are not
 * counted.
 *
 * @param startMs when the request began to arrive, on the clock of traces; undefined on a server without traces
 */
export function traceReceived(exchange: TracedExchange, startMs: number | undefined): void {
  const { tracing } = exchange.service;
  if (startMs === undefined || tracing === undefined) return;
  const { request } = exchange;
  const trace = tracing.sample(exchange.model, {
    protocol: "http",
    startMs,
    header: (name) => firstHeader(request, name),
    attributes: () => httpAttributes(request),
  });
  if (trace === undefined) return;
  trace.mark("HTTP_RECV_START", startMs);
  trace.mark("HTTP_RECV_END", tracing.now());
  exchange.trace = new HttpTrace(trace, tracing);
}
