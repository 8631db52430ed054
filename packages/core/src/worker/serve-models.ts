import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import type { PaddingRules } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/batch-tensors.js";
import { type InstanceInfo, type ModelCaller, RESCHEDULE } from "../callback/infer-func.js";
import type { Execution, ExecutionResult } from "../instance/backend.js";
import type { ModuleHost } from "../instance/import-callable.js";
import type { ControlAsk } from "../instance/js-model.js";
import type { RequestInfo } from "../request-info.js";
import { bindThread } from "../system/host-policy.js";
import { residentBytes } from "../system/start-process.js";
import {
  type FromWorker,
  packError,
  packOutputs,
  type ToWorker,
  unpackError,
  unpackTensors,
  type WireResult,
  type WireTensor,
  type WorkerInit,
  type WorkerPort,
} from "./messages.js";
import type { CallsToModels } from "./model-calls.js";

/** Receives the responses of a decoupled model inside a worker. */
export type WorkerResponseStream = Pick<
  Execution,
  "isOpen" | "writable" | "send" | "sendError" | "finish" | "reschedule"
>;

/** A batch inside a worker: the inputs of all requests joined. */
export interface WorkerBatch {
  /** Set for a decoupled model, which answers through it; `execute` then resolves to undefined. */
  readonly stream?: WorkerResponseStream;
  readonly inputs: Tensors;
  /** True if they are not joined by rows, so that the batch cannot be divided again. */
  readonly indivisible: boolean;
  /** Inputs of each request, instead of `inputs`, for a program that `joins` them itself. */
  readonly parts?: readonly Tensors[] | undefined;
  /** Padding rules for joining them. */
  readonly padding?: PaddingRules | undefined;
  /** Calls other models on behalf of the batch; set for a model that `callsModels`. */
  readonly models?: ModelCaller;
  /** Rows of each request. */
  readonly rows: readonly number[];
  /** Outputs that any request of the batch wants; empty if one wants all. Others may be left out. */
  readonly requestedOutputs: readonly string[];
  /** Properties of the requests; empty for a program of `tensorsOnly`. */
  readonly requests: readonly (RequestInfo & { readonly signal: AbortSignal })[];
}

/** Outputs of the whole batch, or outputs or an error for each request. */
export type WorkerResult = { readonly merged: Tensors } | { readonly separate: readonly ExecutionResult[] };

/** A model inside a worker. */
export interface WorkerModel {
  /** True if the buffers of the outputs may be transferred, because the worker does not use them again. */
  readonly ownsOutputs: boolean;
  /** True if it calls other models. Only then does the worker load the code for it. @default false */
  readonly callsModels?: boolean;
  /** Properties of the loaded model, for instance `executionProvider`. */
  readonly details?: Readonly<Record<string, string>>;
  execute(batch: WorkerBatch): Promise<WorkerResult | undefined>;
  close?(): Promise<void>;
}

/** Services of the worker for the model. */
export interface WorkerHost extends ModuleHost {
  /** True if the lines that a module prints with `console` go to the server's log. */
  readonly logsConsole: boolean;
  /** Shows a warning on the main thread. */
  warn(this: void, message: string): void;
  /** Sends a value to the backend on the main thread, which must survive structured cloning. */
  report(this: void, value: unknown): void;
}

export interface OpenModel {
  /** Description of the model; must survive structured cloning. */
  readonly description: unknown;
  load(info: InstanceInfo): WorkerModel;
  close(): Promise<void>;
}

/** Exports of a worker's entry module. */
export interface WorkerEntry {
  load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel>;
  /** Loads everything that any model of the program needs, ahead of time. A failure is reported by `load`. */
  prepare?(): Promise<unknown>;
  /** Opens a model, for programs that complete the configuration from the open model. */
  open?(data: unknown, host: WorkerHost): Promise<OpenModel>;
}

/**
 * Serves models as the messages of a worker's port ask: opens or loads a model, then runs one batch at a time. A worker
 * that is kept serves another model after it has closed the first.
 */
export function serveModels(port: WorkerPort): void {
  let slot = new ModelSlot(port);
  port.onMessage((message) => {
    if (message.type !== "stop") {
      slot.take(message);
      return;
    }
    const { keep = false } = message;
    void slot.close(keep).then(() => {
      if (!keep) {
        port.close();
        return;
      }
      slot = new ModelSlot(port);
      port.post({ type: "free" }, []);
    });
  });
}

/** One model of a worker, from the time before it is open. */
class ModelSlot {
  readonly #asks = new AsksOfServer((message) => this.port.post(message, []));
  readonly #early: MessageToModel[] = [];
  /** The opening or loading in progress; settled if there is none. */
  #starts: Promise<void> = Promise.resolve();
  #opened: OpenModel | undefined;
  #served: FoundModel | undefined;
  #failed = false;

  constructor(private readonly port: WorkerPort) {}

  take(message: Exclude<ToWorker, { type: "stop" }>): void {
    if (message.type === "bind") this.#start(async () => bindThread(message.hostPolicy));
    else if (message.type === "prepare") this.#starts = this.#starts.then(() => prepare(message.entry));
    else if (message.type === "open") this.#start(() => this.#open(message.entry, message.data));
    else if (message.type === "load") this.#start(() => this.#load(message.init));
    else if (message.type === "answered") this.#asks.answered(message);
    else if (this.#served === undefined) this.#early.push(message);
    else this.#served.take(message);
  }

  /** Closes the model once it is loaded; with `finishes`, only after all its batches. */
  async close(finishes: boolean): Promise<void> {
    await this.#starts;
    if (finishes) await this.#served?.finished;
    try {
      await (this.#served ?? this.#opened)?.close();
    } catch (error) {
      this.port.post({ type: "warning", message: TritonError.from(error).message }, []);
    }
  }

  #start(start: () => Promise<void>): void {
    this.#starts = this.#starts.then(start).catch((thrown) => {
      this.#failed = true;
      this.port.post({ type: "failed", error: packError(thrown) }, []);
      this.port.close();
    });
  }

  async #open(entry: string, data: unknown): Promise<void> {
    if (this.#failed) return;
    const { open } = (await import(entry)) as WorkerEntry;
    this.#opened = await open!(data, this.#host(false));
    this.port.post({ type: "opened", description: this.#opened.description }, []);
  }

  async #load(init: WorkerInit): Promise<void> {
    if (this.#failed) return;
    const { entry, data, info } = init;
    const model =
      this.#opened?.load(info) ??
      (await ((await import(entry)) as WorkerEntry).load(data, info, this.#host(init.logsConsole)));
    this.#served = new FoundModel(
      model,
      init,
      this.port,
      model.callsModels ? await this.#calls() : undefined,
    );
    for (const message of this.#early.splice(0)) this.#served.take(message);
    this.port.post({ type: "ready", details: model.details ?? {}, closes: model.close !== undefined }, []);
  }

  async #calls(): Promise<CallsToModels> {
    const { CallsToModels } = await import("./model-calls.js");
    return new CallsToModels((message, transfer) => this.port.post(message, transfer));
  }

  #host(logsConsole: boolean): WorkerHost {
    return {
      logsConsole,
      warn: (message) => this.port.post({ type: "warning", message }, []),
      report: (value) => this.port.post({ type: "report", value }, []),
      log: (line) => this.port.post({ type: "log", line }, []),
      changeMetrics: (changes) => this.port.post({ type: "metrics", changes }, []),
      control: (ask) => this.#asks.ask(ask),
    };
  }
}

/** Prepares a program. A failure is reported when a model needs the part that failed. */
async function prepare(entry: string): Promise<void> {
  try {
    await ((await import(entry)) as WorkerEntry).prepare?.();
  } catch {}
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

class AsksOfServer {
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;

  constructor(private readonly post: (message: FromWorker) => void) {}

  ask(ask: ControlAsk): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const number = this.#next++;
      this.#waiting.set(number, { resolve, reject });
      this.post({ type: "ask", number, ask });
    });
  }

  answered({ number, value, error }: Extract<ToWorker, { type: "answered" }>): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(unpackError(error));
  }
}

type MessageToModel = Exclude<ToWorker, { type: "bind" | "prepare" | "open" | "load" | "answered" | "stop" }>;

type ExecuteMessage = Extract<ToWorker, { type: "execute" }>;

type BatchToRun = ExecuteMessage & { readonly stream: WorkerStream };

class FoundModel {
  finished: Promise<void> = Promise.resolve();
  readonly #decoupled: boolean;
  /** Batches with open requests: the running one, and those of a decoupled model that are still being answered. */
  readonly #streams = new Map<number, WorkerStream>();
  readonly #post: (message: FromWorker, transfer: ArrayBuffer[]) => void;
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
    // An output may be an input itself.
    const lent = (message.lendsInputs ? buffersOf(message.inputs) : []).filter(
      (buffer) => !transfer.includes(buffer),
    );
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
      requestedOutputs: message.requestedOutputs,
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
      return TritonError.is(one) ? packError(one) : packOutputs(one, transfer, model.ownsOutputs);
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

/** Responses of one request in flight to its consumer, before the model has to wait. */
const WINDOW = 16;

interface Line {
  readonly controller: AbortController;
  open: boolean;
  underWay: number;
  waiting: { readonly promise: Promise<void>; resolve(): void } | undefined;
}

/**
 * The requests of one batch inside a worker: their signals, and the responses of a decoupled model. The number of
 * responses in flight to the main thread is limited by how fast the consumer takes them.
 */
class WorkerStream implements WorkerResponseStream {
  readonly #lines: readonly Line[];

  constructor(
    private readonly batch: number,
    count: number,
    private readonly post: (message: FromWorker, transfer: ArrayBuffer[]) => void,
  ) {
    this.#lines = Array.from({ length: count }, () => ({
      controller: new AbortController(),
      open: true,
      underWay: 0,
      waiting: undefined,
    }));
  }

  get live(): boolean {
    return this.#lines.some((line) => line.open);
  }

  signal(index: number): AbortSignal {
    return this.#lines[index]!.controller.signal;
  }

  cancel(index: number): void {
    const line = this.#lines[index]!;
    this.#close(line);
    line.controller.abort();
  }

  taken(index: number): void {
    const line = this.#lines[index]!;
    line.underWay--;
    if (line.underWay < WINDOW) this.#release(line);
  }

  isOpen(index: number): boolean {
    return this.#lines[index]!.open;
  }

  writable(index: number): Promise<void> | undefined {
    const line = this.#lines[index]!;
    if (!line.open || line.underWay < WINDOW) return undefined;
    if (line.waiting === undefined) {
      let resolve = () => {};
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      line.waiting = { promise, resolve };
    }
    return line.waiting.promise;
  }

  send(index: number, outputs: Tensors, final = false): void {
    const transfer: ArrayBuffer[] = [];
    this.#post(index, { final, outputs: packOutputs(outputs, transfer, false) }, transfer);
  }

  sendError(index: number, error: TritonError, final = false): void {
    this.#post(index, { final, error: packError(error) }, []);
  }

  finish(index: number): void {
    this.#post(index, { final: true }, []);
  }

  reschedule(index: number): void {
    this.#post(index, { final: true, again: true }, []);
  }

  #post(
    index: number,
    response: Pick<Extract<FromWorker, { type: "response" }>, "final" | "outputs" | "error" | "again">,
    transfer: ArrayBuffer[],
  ): void {
    const line = this.#lines[index]!;
    if (!line.open) return;
    line.underWay++;
    if (response.final) this.#close(line);
    this.post({ type: "response", batch: this.batch, index, ...response }, transfer);
  }

  #close(line: Line): void {
    line.open = false;
    this.#release(line);
  }

  #release(line: Line): void {
    line.waiting?.resolve();
    line.waiting = undefined;
  }
}
