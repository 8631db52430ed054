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
 * mark() by the frontend --> begin() --> batch() --> outputs() --> compute() --> end() --> mark() --> release()
 * ```
 */
export interface RequestTrace {
  /** Trace of several services to which the request belongs, 32 hexadecimal digits. Files have none. */
  readonly traceId: string | undefined;
  /** Header `traceparent` for services that work on behalf of the request. Files have none. */
  readonly traceparent: string | undefined;
  /** False if nothing of the trace is exported, so that no other place should refer to it. */
  readonly sampled: boolean;
  /** Makes the trace of a request to a model that this one causes. Undefined if that request is not traced. */
  child(modelName: string): RequestTrace | undefined;
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

/**
 * A trace that records nothing: the base of traces that follow some of the events. Requests that this one causes are not
 * traced.
 *
 * @example
 * ```ts
 * class Refusals extends BaseTrace {
 *   override end(atMs: number, error?: TritonError) {
 *     if (error !== undefined) console.log(error.code);
 *   }
 * }
 * const refusals: RequestTracer = { always: true, start: () => new Refusals() };
 * ```
 */
export class BaseTrace implements RequestTrace {
  readonly traceId: string | undefined = undefined;
  readonly traceparent: string | undefined = undefined;
  readonly sampled: boolean = false;

  child(_modelName: string): RequestTrace | undefined {
    return undefined;
  }

  within<T>(fn: () => T): T {
    return fn();
  }

  mark(_name: string, _atMs: number): void {}

  begin(_modelName: string, _modelVersion: number, _request: TracedRequest, _atMs: number): void {}

  batch(_batch: TracedBatch): void {}

  compute(_times: ExecutionTimes): void {}

  outputs(_tensors: ReadonlyMap<string, Tensor>): void {}

  end(_atMs: number, _error?: TritonError): void {}

  release(_status?: number | string): void {}
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

/**
 * Follows requests from their arrival to their answers: the seam `observe` of an extension. A server may have several,
 * which do not know of each other.
 *
 * @example
 * ```ts
 * const counts = new Map<string, number>();
 * const counter: RequestTracer = {
 *   always: true,
 *   start({ modelName }) {
 *     counts.set(modelName, 1 + (counts.get(modelName) ?? 0));
 *     return undefined;
 *   },
 * };
 * const triton = new Triton({ extensions: [{ name: "counter", attach: () => ({ tracer: counter }) }] });
 * ```
 */
export interface RequestTracer {
  /**
   * True for a request that is not traced. It is asked before anything is made for {@link start}. @default false
   */
  skips?(modelName: string): boolean;
  /**
   * Starts the trace of a request. It is called in the asynchronous context of the code that sent the request.
   *
   * @returns undefined for a request that is not traced
   */
  start(origin: RequestOrigin): RequestTrace | undefined;
  /**
   * True for a tracer that gets all requests whatever the trace settings say. Others make the spans of the trace mode
   * "opentelemetry". @default false
   */
  readonly always?: boolean;
  /** Traces that were lost since the start, for the metric `tritonjs_trace_lost_total`. @default not known */
  readonly lostSpans?: number;
}

/** Joins the traces that several tracers make of one request. Undefined if none does. */
export function joinTraces(
  first: RequestTrace | undefined,
  second: RequestTrace | undefined,
): RequestTrace | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return new JoinedTraces(first, second);
}

/** Passes all events to two traces. Its place among the traces of other services is that of the first with one. */
class JoinedTraces implements RequestTrace {
  readonly late: RequestTrace["late"];

  constructor(
    private readonly first: RequestTrace,
    private readonly second: RequestTrace,
  ) {
    if (first.late === undefined && second.late === undefined) return;
    this.late = (cause) => {
      first.late?.(cause);
      second.late?.(cause);
    };
  }

  get #named(): RequestTrace {
    return this.first.traceId === undefined ? this.second : this.first;
  }

  get traceId(): string | undefined {
    return this.#named.traceId;
  }

  get traceparent(): string | undefined {
    return this.#named.traceparent;
  }

  get sampled(): boolean {
    return this.#named.sampled;
  }

  child(modelName: string): RequestTrace | undefined {
    return joinTraces(this.first.child(modelName), this.second.child(modelName));
  }

  within<T>(fn: () => T): T {
    return this.first.within(() => this.second.within(fn));
  }

  mark(name: string, atMs: number): void {
    this.first.mark(name, atMs);
    this.second.mark(name, atMs);
  }

  begin(modelName: string, modelVersion: number, request: TracedRequest, atMs: number): void {
    this.first.begin(modelName, modelVersion, request, atMs);
    this.second.begin(modelName, modelVersion, request, atMs);
  }

  batch(batch: TracedBatch): void {
    this.first.batch(batch);
    this.second.batch(batch);
  }

  compute(times: ExecutionTimes): void {
    this.first.compute(times);
    this.second.compute(times);
  }

  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    this.first.outputs(tensors);
    this.second.outputs(tensors);
  }

  end(atMs: number, error?: TritonError): void {
    this.first.end(atMs, error);
    this.second.end(atMs, error);
  }

  release(status?: number | string): void {
    this.first.release(status);
    this.second.release(status);
  }
}
