import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import { RESCHEDULE } from "../../callable/reschedule.js";
import { residentBytes } from "../../observe/machine/resident-bytes.js";
import type { WorkerPort } from "./channel.js";
import {
  type FromWorker,
  packError,
  packOutputs,
  type ToWorker,
  unpackTensors,
  type WireResult,
  type WireTensor,
  type WorkerInit,
} from "./messages.js";
import type { CallsToModels } from "./model-call-client.js";
import type { WorkerModel } from "./worker-model.js";
import { WorkerStream } from "./worker-stream.js";

/** A message to a loaded model. */
export type MessageToModel = Exclude<ToWorker, { type: "prepare" | "open" | "load" | "answered" | "stop" }>;

type ExecuteMessage = Extract<ToWorker, { type: "execute" }>;

type BatchToRun = ExecuteMessage & { readonly stream: WorkerStream };

/** A loaded model in a worker: runs one batch at a time, and answers. */
export class ServedModel {
  /** Resolves when no batch runs. */
  finished: Promise<void> = Promise.resolve();
  readonly #decoupled: boolean;
  /** Batches with open requests: the running one, and those of a decoupled model that are still being answered. */
  readonly #streams = new Map<number, WorkerStream>();
  readonly #post: (message: FromWorker, transfer: ArrayBuffer[]) => void;
  /** The running batch, and those that arrived meanwhile. */
  readonly #batches: BatchToRun[] = [];

  constructor(
    private readonly model: WorkerModel,
    private readonly init: WorkerInit,
    port: WorkerPort,
    /** Undefined for a model that calls no others. */
    private readonly calls: CallsToModels | undefined,
  ) {
    this.#decoupled = init.info.modelConfig.modelTransactionPolicy?.decoupled === true;
    this.#post = (message, transfer) => port.post(message, transfer);
  }

  take(message: MessageToModel): void {
    if (message.type === "execute") this.#begin(message);
    else if (message.type === "cancel") this.#streams.get(message.batch)?.cancel(message.index);
    else if (message.type === "answer") this.calls?.answer(message);
    else this.#streams.get(message.batch)?.taken(message.index);
  }

  async close(): Promise<void> {
    await this.model.close?.();
  }

  /** Starts a batch, or queues it behind the running one. Its requests may be cancelled from now on. */
  #begin(message: ExecuteMessage): void {
    const streams = this.#streams;
    for (const [batch, stream] of streams) if (!this.#decoupled || !stream.live) streams.delete(batch);
    const { batch, requests = [] } = message;
    const stream = new WorkerStream(batch, requests.length, this.#post);
    if (requests.length > 0) streams.set(batch, stream);
    this.#batches.push({ ...message, stream });
    if (this.#batches.length === 1) this.finished = this.#runAll();
  }

  async #runAll(): Promise<void> {
    for (let next = this.#batches[0]; next !== undefined; next = this.#batches[0]) {
      await this.#execute(next);
      this.#batches.shift();
    }
  }

  async #execute(message: BatchToRun): Promise<void> {
    const transfer: ArrayBuffer[] = [];
    const answer = await this.#run(message, transfer).catch(
      (thrown): FromWorker => ({ type: "error", error: packError(thrown) }),
    );
    const lent = message.lendsInputs ? buffersOf(message.inputs) : [];
    if (this.init.reportMemory) this.#post({ type: "memory", bytes: usedMemoryBytes() }, []);
    try {
      if (lent.length === 0) this.#post(answer, transfer);
      else this.#post({ ...answer, lent } as FromWorker, [...transfer, ...lent]);
    } catch (thrown) {
      this.#post({ type: "error", error: packError(thrown) }, []);
    }
  }

  async #run(message: BatchToRun, transfer: ArrayBuffer[]): Promise<FromWorker> {
    const { model } = this;
    const { stream, requests = [] } = message;
    const result = await model.execute({
      inputs: unpackTensors(message.inputs),
      indivisible: message.indivisible ?? false,
      parts: message.parts?.map(unpackTensors),
      padding: message.padding,
      rows: message.rows,
      requests: requests.map((request, i) => ({ ...request, signal: stream.signal(i) })),
      ...(this.calls === undefined ? {} : { models: this.calls.of(message.batch) }),
      ...(this.#decoupled ? { stream } : {}),
    });
    if (result === undefined) return { type: "returned" };
    if ("merged" in result) {
      return { type: "merged", outputs: packOutputs(result.merged, transfer, model.ownsOutputs) };
    }
    const results = result.separate.map((one): WireResult => {
      if (one === RESCHEDULE) return "again";
      return TritonError.is(one) ? packError(one) : packOutputs(one, transfer, false);
    });
    return { type: "separate", results };
  }
}

function buffersOf(tensors: readonly WireTensor[]): ArrayBuffer[] {
  return [...new Set(tensors.map(({ bytes }) => bytes.buffer as ArrayBuffer))];
}

/** Memory of this worker: the whole memory of a process, or the thread's own heap. */
function usedMemoryBytes(): number {
  return isMainThread ? residentBytes() : getHeapStatistics().used_heap_size;
}
