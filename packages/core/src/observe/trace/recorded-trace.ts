import type { Tensor } from "@tritonjs/protocol";
import type { ExecutionTimes } from "../duration.js";
import type { RequestTrace, TracedBatch, TracedRequest } from "./request-trace.js";
import { TensorActivity, type TensorStage } from "./tensor-activity.js";
import type { Trace, TracedContent, TraceEntry } from "./trace.js";

/** Empty entries of a trace that is over. */
const NOTHING: TraceEntry[] = [];

/** The trace of one request for a file, where times are nanoseconds. */
export class RecordedTrace implements RequestTrace {
  readonly id: number;
  readonly traceId = undefined;
  readonly traceparent = undefined;
  readonly sampled = true;
  readonly #trace: Trace;
  /** 0 for a request that no other request has caused. */
  readonly #parentId: number;
  readonly #list: TraceEntry[];
  #state: "new" | "begun" | "ended" = "new";

  constructor(trace: Trace, parentId = 0) {
    this.#trace = trace;
    this.#parentId = parentId;
    this.id = trace.nextId();
    this.#list = trace.over ? NOTHING : trace.open();
  }

  child(): RecordedTrace {
    return new RecordedTrace(this.#trace, this.id);
  }

  within<T>(fn: () => T): T {
    return fn();
  }

  mark(name: string, atMs: number): void {
    if (this.#trace.timestamps) this.#add({ id: this.id, timestamps: [{ name, ns: nanoseconds(atMs) }] });
  }

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
    if (this.#trace.timestamps) this.#add({ id: this.id, request: tracedContent(request) });
    this.#addTensors("TENSOR_QUEUE_INPUT", request.inputs);
  }

  batch({ batchSize, requestCount, cut, instance }: TracedBatch): void {
    if (!this.#trace.timestamps) return;
    const reason = cut === undefined ? {} : { cut };
    this.#add({ id: this.id, batch: { size: batchSize, requests: requestCount, ...reason, instance } });
  }

  compute({ start, inputEnd, inferEnd, end }: ExecutionTimes): void {
    this.mark("COMPUTE_START", start);
    this.mark("COMPUTE_INPUT_END", inputEnd);
    this.mark("COMPUTE_OUTPUT_START", inferEnd);
    this.mark("COMPUTE_END", end);
  }

  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    this.#addTensors("TENSOR_BACKEND_OUTPUT", tensors);
  }

  end(atMs: number): void {
    if (this.#state !== "begun") return;
    this.#state = "ended";
    this.mark("REQUEST_END", atMs);
    this.#trace.release();
  }

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

/** Properties of a request that decide how it is batched: those that `tritonjs replay` needs. */
function tracedContent(request: TracedRequest): TracedContent {
  const { rows = 1, priority = 0, queueTimeoutMicroseconds = 0, correlationId } = request;
  const known = correlationId !== undefined && correlationId !== 0n && correlationId !== "";
  return {
    rows,
    ...(priority === 0 ? {} : { priority }),
    ...(queueTimeoutMicroseconds === 0 ? {} : { queue_timeout_us: queueTimeoutMicroseconds }),
    ...(known
      ? {
          sequence: {
            id: typeof correlationId === "string" ? correlationId : String(correlationId),
            ...(request.sequenceStart ? { start: true } : {}),
            ...(request.sequenceEnd ? { end: true } : {}),
          },
        }
      : {}),
  };
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1e6);
}
