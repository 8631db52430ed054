import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { RESCHEDULE } from "../../callable/reschedule.js";
import { TritonError } from "../../errors/triton-error.js";
import { AsksOfServer } from "./asks-of-server.js";
import { CallsToModels } from "./calls-to-models.js";
import type { WorkerPort } from "./channel.js";
import {
  type FromWorker,
  packError,
  packOutputs,
  type ToWorker,
  unpackTensors,
  type WireResult,
  type WorkerInit,
} from "./messages.js";
import type { WorkerEntry, WorkerModel } from "./worker-model.js";
import { WorkerStream } from "./worker-stream.js";

/** Runs a model in a worker: loads the entry module that `init` names, then runs one batch at a time. */
export async function serveModel(init: WorkerInit, port: WorkerPort): Promise<void> {
  const { entry, data, info } = init;
  const asks = new AsksOfServer((message) => port.post(message, []));
  /** What came before the model was loaded. */
  const early: Exclude<ToWorker, { type: "answered" }>[] = [];
  let served: ServedModel | undefined;
  port.onMessage((message) => {
    if (message.type === "answered") asks.answered(message);
    else if (served === undefined) early.push(message);
    else served.take(message);
  });
  try {
    const model = await ((await import(entry)) as WorkerEntry).load(data, info, {
      warn: (message) => port.post({ type: "warning", message }, []),
      log: (line) => port.post({ type: "log", line }, []),
      changeMetrics: (changes) => port.post({ type: "metrics", changes }, []),
      control: (ask) => asks.ask(ask),
    });
    served = new ServedModel(model, init, port);
    for (const message of early.splice(0)) served.take(message);
    const closes = model.close !== undefined;
    port.post({ type: "ready", details: model.details ?? {}, closes }, []);
  } catch (thrown) {
    port.post({ type: "failed", error: packError(thrown) }, []);
    port.close();
  }
}

type ExecuteMessage = Extract<ToWorker, { type: "execute" }>;

type BatchToRun = ExecuteMessage & { readonly stream: WorkerStream };

class ServedModel {
  readonly #decoupled: boolean;
  readonly #calls: CallsToModels;
  /** Batches with open requests: the one that runs, and those of a decoupled model that are still answered. */
  readonly #streams = new Map<number, WorkerStream>();
  readonly #post: (message: FromWorker, transfer: ArrayBuffer[]) => void;
  /** The batch that runs, and those that came meanwhile. */
  readonly #batches: BatchToRun[] = [];

  constructor(
    private readonly model: WorkerModel,
    private readonly init: WorkerInit,
    private readonly port: WorkerPort,
  ) {
    this.#decoupled = init.info.modelConfig.modelTransactionPolicy?.decoupled === true;
    this.#post = (message, transfer) => port.post(message, transfer);
    this.#calls = new CallsToModels(this.#post);
  }

  take(message: Exclude<ToWorker, { type: "answered" }>): void {
    if (message.type === "execute") this.#begin(message);
    else if (message.type === "cancel") this.#streams.get(message.batch)?.cancel(message.index);
    else if (message.type === "answer") this.#calls.answer(message);
    else if (message.type === "taken") this.#streams.get(message.batch)?.taken(message.index);
    else void this.#close();
  }

  async #close(): Promise<void> {
    try {
      await this.model.close?.();
    } catch (error) {
      this.#post({ type: "warning", message: TritonError.from(error).message }, []);
    }
    this.port.close();
  }

  /** Runs a batch, or lets it wait for the one that runs. Its requests may be given up from now on. */
  #begin(message: ExecuteMessage): void {
    const streams = this.#streams;
    for (const [batch, stream] of streams) if (!this.#decoupled || !stream.live) streams.delete(batch);
    const { batch, requests = [] } = message;
    const stream = new WorkerStream(batch, requests.length, this.#post);
    if (requests.length > 0) streams.set(batch, stream);
    this.#batches.push({ ...message, stream });
    if (this.#batches.length === 1) void this.#runAll();
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
    if (this.init.reportMemory) this.#post({ type: "memory", bytes: usedMemoryBytes() }, []);
    try {
      this.#post(answer, transfer);
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
      models: this.#calls.of(message.batch),
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

/** What this worker holds: a process all of its memory, a thread the heap that is its own. */
function usedMemoryBytes(): number {
  return isMainThread ? process.memoryUsage.rss() : getHeapStatistics().used_heap_size;
}
