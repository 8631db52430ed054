import type { Parameters } from "@tritonjs/protocol";
import type { Tensors } from "../batch/merge-inputs.js";
import type { RequestScope } from "../callable/infer-context.js";
import { type RequestInfo, requestInfo } from "../request/request-info.js";
import type { SequenceInfo } from "../request/sequence-info.js";
import type { ExecutableRequest } from "./executor.js";
import type { SignalSource } from "./signal-source.js";

/**
 * A request as executors see it, without access to its source. A class with getters, because few executors need more
 * than the tensors: a view costs next to nothing, and views keep one shape (see `withSignal`).
 */
export class RequestView implements ExecutableRequest {
  readonly inputs: Tensors;
  readonly rows: number;
  readonly #info: RequestInfo;
  readonly #source: RequestScope & SignalSource;

  /** @param source the request itself, or another view of it */
  constructor(info: RequestInfo, inputs: Tensors, rows: number, source: RequestScope & SignalSource) {
    this.inputs = inputs;
    this.rows = rows;
    this.#info = info;
    this.#source = source;
  }

  get id(): string {
    return this.#info.id;
  }

  get parameters(): Parameters {
    return this.#info.parameters;
  }

  get priority(): number {
    return this.#info.priority;
  }

  get queueTimeoutMicroseconds(): number {
    return this.#info.queueTimeoutMicroseconds;
  }

  get correlationId(): bigint | string | undefined {
    return this.#info.correlationId;
  }

  get sequenceStart(): boolean {
    return this.#info.sequenceStart;
  }

  get sequenceEnd(): boolean {
    return this.#info.sequenceEnd;
  }

  get sequence(): SequenceInfo | undefined {
    return this.#info.sequence;
  }

  get ready(): boolean {
    return this.#info.ready;
  }

  get requestedOutputs(): readonly string[] {
    return this.#info.requestedOutputs;
  }

  get batchSize(): number {
    return this.#info.batchSize;
  }

  get traceparent(): string | undefined {
    return this.#info.traceparent;
  }

  get signal(): AbortSignal {
    return this.#source.signal;
  }

  runInContext<T>(fn: () => T): T {
    return this.#source.runInContext(fn);
  }
}

/**
 * Properties of a request for callbacks. They are the same in the list of requests and in the context, on this thread
 * and in workers.
 */
export function toRequestInfo(request: ExecutableRequest): RequestInfo & RequestScope {
  return { ...requestInfo(request), runInContext: (fn) => request.runInContext(fn) };
}
