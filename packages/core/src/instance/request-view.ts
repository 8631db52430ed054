import type { Tensors } from "../batch/merge-inputs.js";
import type { RequestScope } from "../callable/infer-context.js";
import type { Parameters } from "../request/parameters.js";
import { type RequestInfo, requestInfo } from "../request/request-info.js";
import type { SequenceInfo } from "../request/sequence-info.js";
import type { ExecutableRequest } from "./executor.js";
import type { SignalSource } from "./with-signal.js";

/**
 * A request as executors see it: a copy of what is known about it. Where it comes from is out of reach. A class, because its
 * objects then have one shape, and its `signal` is a getter of the class (see `withSignal`).
 */
export class RequestView implements ExecutableRequest {
  readonly id: string;
  readonly parameters: Parameters;
  readonly priority: number;
  readonly timeoutMicroseconds: number;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  readonly sequence: SequenceInfo | undefined;
  readonly ready: boolean;
  readonly requestedOutputs: readonly string[];
  readonly batchSize: number;
  readonly inputs: Tensors;
  readonly rows: number;
  readonly #source: RequestScope & SignalSource;

  /** @param source the request itself, or another view of it */
  constructor(info: RequestInfo, inputs: Tensors, rows: number, source: RequestScope & SignalSource) {
    this.id = info.id;
    this.parameters = info.parameters;
    this.priority = info.priority;
    this.timeoutMicroseconds = info.timeoutMicroseconds;
    this.correlationId = info.correlationId;
    this.sequenceStart = info.sequenceStart;
    this.sequenceEnd = info.sequenceEnd;
    this.sequence = info.sequence;
    this.ready = info.ready;
    this.requestedOutputs = info.requestedOutputs;
    this.batchSize = info.batchSize;
    this.inputs = inputs;
    this.rows = rows;
    this.#source = source;
  }

  get signal(): AbortSignal {
    return this.#source.signal;
  }

  runInContext<T>(fn: () => T): T {
    return this.#source.runInContext(fn);
  }
}

/** What any callback is told of a request: the same in its list of requests and in its context, on this thread and in workers. */
export function toRequestInfo(request: ExecutableRequest): RequestInfo & RequestScope {
  return { ...requestInfo(request), runInContext: (fn) => request.runInContext(fn) };
}
