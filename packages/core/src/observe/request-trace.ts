import type { Tensor, TritonError } from "@tritonjs/protocol";
import type { RequestInfo } from "../request-info.js";
import type { CutReason, ExecutionTimes, LateCause } from "./statistics.js";

/** The parts of a request that its trace records. */
export interface TracedRequest
  extends Pick<RequestInfo, "id">,
    Partial<
      Omit<RequestInfo, "id" | "sequence" | "ready" | "requestedOutputs" | "batchSize" | "traceparent">
    > {
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Rows that count towards a batch. @default 1 */
  readonly rows?: number;
  readonly deadline?: number | undefined;
  readonly clientLimitMs?: number;
  readonly caller?: string;
}

/** The batch in which a request runs. */
export interface TracedBatch {
  /** Rows of the batch. */
  readonly batchSize: number;
  readonly requestCount: number;
  /** Why the batch was cut, if a batcher made it. */
  readonly cut: CutReason | undefined;
  /** Name of the instance that took the batch. */
  readonly instance: string;
}

/**
 * The trace of one request: recorded for a file, or the spans of a tracer. Times are milliseconds on the clock of the
 * server.
 *
 * ```
 * mark() by the frontend --> begin() --> batch() --> compute() --> outputs() --> end() --> mark() --> release()
 * ```
 */
export interface RequestTrace {
  /** Trace of several services to which the request belongs, 32 hexadecimal digits. Files have none. */
  readonly traceId: string | undefined;
  /** Header `traceparent` for services that work on behalf of the request. Files have none. */
  readonly traceparent: string | undefined;
  /** False if nothing of the trace is exported, so that no other place should refer to it. */
  readonly sampled: boolean;
  /** Makes the trace of a request to a model that this one causes. */
  child(modelName: string): RequestTrace;
  /** Calls `fn` in the asynchronous context of the request's span. */
  within<T>(fn: () => T): T;
  /** Records an event. */
  mark(name: string, atMs: number): void;
  /** Records that a model has accepted the request, which is in the queue from now on. */
  begin(modelName: string, modelVersion: number, request: TracedRequest, atMs: number): void;
  /** Records that an instance has taken the request. */
  batch(batch: TracedBatch): void;
  /** Records the times of the execution that answered the request. */
  compute(times: ExecutionTimes): void;
  /** Records a response. */
  outputs(tensors: ReadonlyMap<string, Tensor>): void;
  /** Records why a request with a deadline is late, or refused because it would be. */
  late?(cause: LateCause): void;
  /** Records the end of the request, or that the model refused it. The first call counts. */
  end(atMs: number, error?: TritonError): void;
  /**
   * Releases the trace for its sampler, which adds nothing more. Must be called once.
   *
   * @param status with which the frontend has answered: the number of HTTP, or the name of gRPC; undefined if the request
   * has no status of its own, such as one of a stream
   */
  release(status?: number | string): void;
}

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

/** A request that is about to be sent to a model, as a tracer gets it. */
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

/** Makes spans of requests. `openTelemetry()` of `@tritonjs/core/opentelemetry` returns one. */
export interface RequestTracer {
  /**
   * True for a request that is not traced. It is asked before anything is made for {@link start}. @default false
   */
  skips?(modelName: string): boolean;
  /**
   * Starts the trace of a request. It is called in the asynchronous context of the code that sent the request.
   *
   * @param beside trace of the request in a file or by `next`: an `always` tracer returns one that passes all events on
   * to it, or `beside` itself
   * @returns undefined for a request that is not traced
   */
  start(origin: RequestOrigin, beside?: RequestTrace): RequestTrace | undefined;
  /**
   * True for a tracer that gets all requests whatever the trace settings say, as captures do. The settings are then
   * those of `next`, or of trace files. @default false
   */
  readonly always?: boolean;
  /** Tracer that makes the spans beside an `always` one. @default none */
  readonly next?: RequestTracer | undefined;
  /**
   * Resolves when requests can be recorded. The server is not ready before, and fails to start with the error.
   */
  ready?(): Promise<void>;
  /** Spans that were lost since the start, for the metric `tritonjs_trace_lost_total`. @default not known */
  readonly lostSpans?: number;
  /** Called when the server closes, after the last request. Resolves when all spans are sent. */
  close?(): Promise<void>;
}
