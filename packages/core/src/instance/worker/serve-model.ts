import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { RESCHEDULE } from "../../callable/reschedule.js";
import { TritonError } from "../../errors/triton-error.js";
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
  try {
    const model = await ((await import(entry)) as WorkerEntry).load(data, info, {
      warn: (message) => port.post({ type: "warning", message }, []),
      log: (line) => port.post({ type: "log", line }, []),
      changeMetrics: (changes) => port.post({ type: "metrics", changes }, []),
    });
    new ServedModel(model, init, port).listen();
    const closes = model.close !== undefined;
    port.post({ type: "ready", details: model.details ?? {}, closes }, []);
  } catch (thrown) {
    port.post({ type: "failed", error: packError(thrown) }, []);
    port.close();
  }
}

class ServedModel {
  readonly #decoupled: boolean;
  readonly #calls: CallsToModels;
  /** Batches with open requests: the one that runs, and those of a decoupled model that are still answered. */
  readonly #streams = new Map<number, WorkerStream>();
  readonly #post: (message: FromWorker, transfer: ArrayBuffer[]) => void;

  constructor(
    private readonly model: WorkerModel,
    private readonly init: WorkerInit,
    private readonly port: WorkerPort,
  ) {
    this.#decoupled = init.info.modelConfig.modelTransactionPolicy?.decoupled === true;
    this.#post = (message, transfer) => port.post(message, transfer);
    this.#calls = new CallsToModels(this.#post);
  }

  listen(): void {
    this.port.onMessage((message) => {
      if (message.type === "execute") void this.#execute(message);
      else if (message.type === "cancel") this.#streams.get(message.batch)?.cancel(message.index);
      else if (message.type === "answer") this.#calls.answer(message);
      else if (message.type === "taken") this.#streams.get(message.batch)?.taken(message.index);
      else void this.#close();
    });
  }

  async #close(): Promise<void> {
    try {
      await this.model.close?.();
    } catch (error) {
      this.#post({ type: "warning", message: TritonError.from(error).message }, []);
    }
    this.port.close();
  }

  async #execute(message: Extract<ToWorker, { type: "execute" }>): Promise<void> {
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

  async #run(message: Extract<ToWorker, { type: "execute" }>, transfer: ArrayBuffer[]): Promise<FromWorker> {
    const { model } = this;
    const streams = this.#streams;
    for (const [batch, stream] of streams) if (!this.#decoupled || !stream.live) streams.delete(batch);
    const stream = new WorkerStream(message.batch, message.requests.length, this.#post);
    streams.set(message.batch, stream);
    const result = await model.execute({
      inputs: unpackTensors(message.inputs),
      indivisible: message.indivisible ?? false,
      parts: message.parts?.map(unpackTensors),
      padding: message.padding,
      requests: message.requests.map((request, i) => ({ ...request, signal: stream.signal(i) })),
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
