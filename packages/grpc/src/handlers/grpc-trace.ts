import type { RequestTrace, Tracing } from "@tritonjs/core/frontend";
import type { CallHeaders } from "../transport/call.js";

/** The trace of a request of gRPC: what this frontend adds to it. */
export class GrpcTrace {
  #responded = false;
  #sending = false;
  #released = false;

  constructor(
    readonly request: RequestTrace,
    private readonly tracing: Tracing,
  ) {}

  /** A response has come; the first of several counts. */
  responded(): void {
    if (this.#responded) return;
    this.#responded = true;
    this.#mark("INFER_RESPONSE_COMPLETE");
  }

  /** A message is about to be sent; the first of several counts. */
  sending(): void {
    if (this.#sending) return;
    this.#sending = true;
    this.#mark("GRPC_SEND_START");
  }

  /** Nothing more is sent. */
  sent(): void {
    if (this.#released) return;
    this.#released = true;
    this.#mark("GRPC_SEND_END");
    this.request.release();
  }

  #mark(name: string): void {
    this.request.mark(name, this.tracing.now());
  }
}

/** Samples the requests of one source, a method or a stream, and knows how long each was waited for. */
export class GrpcSampler {
  readonly #tracing: Tracing | undefined;
  #waitingSince: number;

  constructor(tracing: Tracing | undefined) {
    this.#tracing = tracing;
    this.#waitingSince = tracing?.now() ?? 0;
  }

  /** A request has come: its trace, if it is its turn. */
  sample(modelName: string, headers: CallHeaders): GrpcTrace | undefined {
    const tracing = this.#tracing;
    if (tracing === undefined) return undefined;
    const start = this.#waitingSince;
    const end = tracing.now();
    this.#waitingSince = end;
    const traceparent = tracing.continuesTraces ? headers.get("traceparent") : undefined;
    const trace = tracing.sample(modelName, traceparent);
    if (trace === undefined) return undefined;
    trace.mark("GRPC_WAITREAD_START", start);
    trace.mark("GRPC_WAITREAD_END", end);
    return new GrpcTrace(trace, tracing);
  }
}
