import type { RequestTrace } from "./request-trace.js";

/** How a request came. */
export interface RequestArrival {
  readonly protocol: "http" | "grpc";
  /** When it began to arrive, in milliseconds on the clock of the server. */
  readonly startMs: number;
  /** Reads a header of the request, or gRPC metadata; undefined for a missing one. */
  header(name: string): string | undefined;
  /** Makes attributes of a server's span, by OpenTelemetry's semantic conventions: `http.*`, `url.*` or `rpc.*`. */
  attributes?(): Readonly<Record<string, string | number | undefined>>;
}

/** What a tracer is told of a request that is about to be sent to a model. */
export interface RequestOrigin {
  readonly modelName: string;
  /** True if the rate and the count of the trace settings select the request. */
  readonly selected: boolean;
  /** Undefined for a request of this process. */
  readonly arrival: RequestArrival | undefined;
  /** Present time on the clock of the server, in milliseconds. */
  readonly now: () => number;
  /** Wall time minus the time on the clock of the server, in milliseconds. */
  readonly wallOffsetMs: number;
}

/** Makes spans of requests. `openTelemetry()` of `@tritonjs/opentelemetry` returns one. */
export interface RequestTracer {
  /**
   * Starts the trace of a request. It is called in the asynchronous context of the code that sent the request.
   *
   * @returns undefined for a request that is not traced
   */
  start(origin: RequestOrigin): RequestTrace | undefined;
  /** Called when the server closes, after the last request. Resolves when all spans are sent. */
  close?(): Promise<void>;
}
