import type { Tensor } from "@tritonjs/protocol";
import type { CutReason } from "../cut-log.js";
import type { ExecutionTimes } from "../duration.js";
import { TensorActivity, type TensorStage } from "./tensor-activity.js";
import type { Trace, TraceEntry } from "./trace.js";

/** The parts of a request that its trace records. */
export interface TracedRequest {
  readonly id: string;
  readonly inputs: ReadonlyMap<string, Tensor>;
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

/** Empty entries of a trace that is over. */
const NOTHING: TraceEntry[] = [];

/**
 * The trace of one request. Times are milliseconds on the clock of the server; in the file they are nanoseconds.
 *
 * ```
 * mark() by the frontend --> begin() --> batch() --> compute() --> outputs() --> end() --> mark() --> release()
 * ```
 */
export class RequestTrace {
  readonly id: number;
  /** Trace of other services to which the request belongs, 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  readonly #trace: Trace;
  /** 0 for a request that no other request has caused. */
  readonly #parentId: number;
  readonly #list: TraceEntry[];
  #state: "new" | "begun" | "ended" = "new";

  constructor(trace: Trace, parentId = 0) {
    this.#trace = trace;
    this.#parentId = parentId;
    this.id = trace.nextId();
    this.traceId = trace.context?.traceId;
    this.#list = trace.over ? NOTHING : trace.open();
  }

  /** Makes the trace of a request that this one causes. */
  child(): RequestTrace {
    return new RequestTrace(this.#trace, this.id);
  }

  /** Records an event. */
  mark(name: string, atMs: number): void {
    if (this.#trace.timestamps) this.#add({ id: this.id, timestamps: [{ name, ns: nanoseconds(atMs) }] });
  }

  /** Records that a model has accepted the request, which is in the queue from now on. */
  begin(modelName: string, modelVersion: number, request: TracedRequest, atMs: number): void {
    if (this.#state !== "new" || this.#trace.over) return;
    this.#state = "begun";
    this.#trace.hold();
    this.#add({
      id: this.id,
      model_name: modelName,
      model_version: modelVersion,
      ...(request.id === "" ? {} : { request_id: request.id }),
      ...(this.#parentId === 0 ? {} : { parent_id: this.#parentId }),
    });
    this.mark("REQUEST_START", atMs);
    this.mark("QUEUE_START", atMs);
    this.#addTensors("TENSOR_QUEUE_INPUT", request.inputs);
  }

  /** Records that an instance has taken the request. */
  batch({ batchSize, requestCount, cut, instance }: TracedBatch): void {
    if (!this.#trace.timestamps) return;
    const reason = cut === undefined ? {} : { cut };
    this.#add({ id: this.id, batch: { size: batchSize, requests: requestCount, ...reason, instance } });
  }

  /** Records the times of the execution that answered the request. */
  compute({ start, inputEnd, inferEnd, end }: ExecutionTimes): void {
    this.mark("COMPUTE_START", start);
    this.mark("COMPUTE_INPUT_END", inputEnd);
    this.mark("COMPUTE_OUTPUT_START", inferEnd);
    this.mark("COMPUTE_END", end);
  }

  /** Records a response. */
  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    this.#addTensors("TENSOR_BACKEND_OUTPUT", tensors);
  }

  /** Records the end of the request. */
  end(atMs: number): void {
    if (this.#state !== "begun") return;
    this.#state = "ended";
    this.mark("REQUEST_END", atMs);
    this.#trace.release();
  }

  /** Releases the trace for its sampler, which adds nothing more. Must be called once. */
  release(): void {
    this.#trace.release();
  }

  #addTensors(stage: TensorStage, tensors: ReadonlyMap<string, Tensor>): void {
    if (!this.#trace.tensors || this.#trace.over) return;
    for (const [name, tensor] of tensors) this.#add(new TensorActivity(this.id, stage, name, tensor));
  }

  #add(entry: TraceEntry): void {
    this.#trace.add(this.#list, this.id, entry);
  }
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1e6);
}
