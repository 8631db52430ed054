import type {
  Backend,
  Execution,
  ExecutionResult,
  Executor,
  ExecutorContext,
  ModelDescription,
} from "@tritonjs/core/backend";
import type { Tensors } from "@tritonjs/core/internal";
import { divideOutputs, joinInputs } from "@tritonjs/core/web";
import {
  type DataType,
  type Elements,
  errorFor,
  fromConfigDataType,
  type ModelConfig,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

/*
 * `@tritonjs/backends/web-worker`: web workers as instances of a model. The page has the queue and joins the batches. A web worker has a `WebTriton` with
 * the model, which gets each batch as one request.
 */

/** The part of an event of a web worker that is used. */
export interface WebWorkerEvent {
  readonly data?: unknown;
  readonly message?: string;
  preventDefault?(): void;
}

/** The part of a `Worker` of the web platform that is used. */
export interface WebWorker {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  addEventListener(type: string, listener: (event: WebWorkerEvent) => void): void;
  terminate(): void;
}

/** The model that a web worker serves: a handle of `bind`. */
export interface WebWorkerModel {
  infer(inputs: Readonly<Record<string, unknown>>): Promise<unknown>;
  ready(): Promise<void>;
  config(): ModelConfig;
  instances(): readonly { readonly details: Readonly<Record<string, string>> }[];
}

/** A tensor in a message. */
interface SentTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly elements: Elements;
}

interface SentBatch {
  readonly batch: number;
  readonly inputs: readonly SentTensor[];
}

interface SentError {
  readonly code: TritonError["code"];
  readonly reason: TritonError["reason"];
  readonly message: string;
}

type Answer =
  | { readonly ready: ModelDescription; readonly details: Readonly<Record<string, string>> }
  | { readonly batch?: number; readonly error: SentError }
  | { readonly batch: number; readonly outputs: readonly SentTensor[] };

/**
 * Opens a model that runs in web workers, for `bind`: a batch does not hold up the page. Each instance is a web worker.
 * One that crashes fails its batch, and the next batch starts another.
 *
 * @param open starts a web worker whose module calls {@link serveWebWorker}: one for each instance, and one after a crash
 * @throws TritonError with the reason if the model does not load in a web worker; UNSUPPORTED for a decoupled model
 * @example
 * ```ts
 * const open = () => new Worker(new URL("./iris-worker.js", import.meta.url), { type: "module" });
 * const iris = triton.bind({ modelName: "iris", inferFunc: await webWorker(open) });
 * ```
 */
export async function webWorker(open: () => WebWorker): Promise<Backend> {
  if (typeof open !== "function") {
    throw errorFor(
      "INVALID_CONFIG",
      `webWorker(): expected a function that starts a web worker, got ${typeof open}`,
    );
  }
  // The first instance takes it over.
  let first: WorkerLink | undefined = new WorkerLink(open);
  const description = await first.ready;
  return {
    backendName: "javascript",
    platform: "",
    describe: () => description,
    createExecutor(context) {
      const link = first;
      first = undefined;
      return new WebWorkerExecutor(open, context, link);
    },
    async close() {
      first?.end();
    },
  };
}

/**
 * Serves a model in a web worker: call it in the module that `webWorker` starts, after `bind`.
 *
 * @param port what the messages go through, for tests
 * @example
 * ```ts
 * const triton = new WebTriton();
 * serveWebWorker(triton.bind({ modelName: "iris", inferFunc: await onnxruntimeWeb({ ort, model }) }));
 * ```
 */
export function serveWebWorker(
  model: WebWorkerModel,
  port: Pick<WebWorker, "postMessage" | "addEventListener"> = globalThis as unknown as WebWorker,
): void {
  const fail = (thrown: unknown, batch?: number) => {
    const { code, reason, message } = TritonError.from(thrown);
    const error: SentError = { code, reason, message };
    port.postMessage({ ...(batch !== undefined && { batch }), error } satisfies Answer, []);
  };
  port.addEventListener("message", ({ data }) => {
    const { batch, inputs } = data as SentBatch;
    const values = Object.fromEntries(inputs.map((tensor) => [tensor.name, received(tensor)]));
    model
      .infer(values)
      .then((outputs) => {
        const [sent, transfer] = toSend(outputTensors(outputs, model.config()), true);
        port.postMessage({ batch, outputs: sent } satisfies Answer, transfer);
      })
      .catch((error) => fail(error, batch));
  });
  model
    .ready()
    .then(() => {
      const details = model.instances()[0]?.details ?? {};
      port.postMessage({ ready: describe(model.config()), details } satisfies Answer, []);
    })
    .catch((error) => fail(error));
}

function describe(config: ModelConfig): ModelDescription {
  if (config.modelTransactionPolicy?.decoupled === true) {
    const text = `model '${config.name}' in a web worker: expected one response for each request, got a decoupled model`;
    throw errorFor("PLATFORM_NOT_SUPPORTED", text);
  }
  const described = ({
    name,
    dataType,
    dims,
  }: ModelConfig["input"][number] | ModelConfig["output"][number]) => ({
    name,
    dtype: fromConfigDataType(dataType)!,
    shape: dims,
  });
  return {
    inputs: config.input.map(described),
    outputs: config.output.map(described),
    maxBatchSize: config.maxBatchSize,
    asInConfig: true,
  };
}

/** Batches of one instance in its web worker. */
class WebWorkerExecutor implements Executor {
  readonly mustFinish = false;
  readonly isolation = "worker";
  readonly restarts = { count: 0 };
  #link: WorkerLink | undefined;

  constructor(
    private readonly open: () => WebWorker,
    private readonly context: ExecutorContext,
    link: WorkerLink | undefined,
  ) {
    this.#link = link;
  }

  get details(): Readonly<Record<string, string>> {
    return this.#link?.details ?? {};
  }

  async start(): Promise<void> {
    this.#link ??= new WorkerLink(this.open);
    await this.#link.ready;
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    if (this.#link?.isBroken !== false) {
      this.#link = new WorkerLink(this.open);
      this.restarts.count++;
    }
    await this.#link.ready;
    const inputs = joinInputs(execution);
    execution.inputsReady();
    // Joined inputs are new, and those of a single request are the caller's.
    const outputs = await this.#link.run(inputs, execution.requests.length > 1);
    execution.outputsReady();
    const rows = execution.requests.reduce((sum, request) => sum + request.rows, 0);
    return divideOutputs(execution, this.context.checker.check(new Map(outputs), rows, [], true));
  }

  async stop(): Promise<void> {
    this.#link?.end();
  }
}

/** A web worker and the batches that it runs. */
class WorkerLink {
  /** Resolves when the model is loaded there. */
  readonly ready: Promise<ModelDescription>;
  details: Readonly<Record<string, string>> = {};
  /** True once the web worker has failed or ended: it runs no more batches. */
  isBroken = false;
  readonly #worker: WebWorker;
  readonly #waiting = new Map<
    number,
    { resolve(outputs: Tensors): void; reject(error: TritonError): void }
  >();
  #next = 0;

  constructor(open: () => WebWorker) {
    this.#worker = open();
    this.ready = new Promise((resolve, reject) => {
      this.#worker.addEventListener("message", (event) => {
        const data = event.data as Answer;
        if ("ready" in data) {
          this.details = data.details;
          resolve(data.ready);
        } else if (data.batch === undefined) {
          const { error } = data as { error: SentError };
          reject(fromSent(error));
          this.end();
        } else this.#answer(data);
      });
      const crashed = (event: WebWorkerEvent) => {
        event.preventDefault?.();
        const error = errorFor(
          "WORKER_CRASHED",
          `a web worker crashed: ${event.message ?? "it cannot be read"}`,
        );
        reject(error);
        this.end(error);
      };
      this.#worker.addEventListener("error", crashed);
      this.#worker.addEventListener("messageerror", crashed);
    });
    // Nobody may wait for it yet.
    this.ready.catch(() => {});
  }

  run(inputs: Tensors, mayTransfer: boolean): Promise<Tensors> {
    const batch = this.#next++;
    const [sent, transfer] = toSend(inputs, mayTransfer);
    return new Promise((resolve, reject) => {
      this.#waiting.set(batch, { resolve, reject });
      this.#worker.postMessage({ batch, inputs: sent } satisfies SentBatch, transfer);
    });
  }

  /** Ends the web worker, and fails the batches that it runs. */
  end(error: TritonError = errorFor("MODEL_STOPPED", "the web worker of the model was ended")): void {
    this.isBroken = true;
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #answer(answer: Exclude<Answer, { ready: unknown }>): void {
    const waiting = this.#waiting.get(answer.batch!);
    this.#waiting.delete(answer.batch!);
    if ("error" in answer) waiting?.reject(fromSent(answer.error));
    else waiting?.resolve(new Map(answer.outputs.map((tensor) => [tensor.name, received(tensor)])));
  }
}

function fromSent({ code, reason, message }: SentError): TritonError {
  return new TritonError(code, message, { ...(reason !== undefined && { reason }) });
}

function received({ datatype, shape, elements }: SentTensor): Tensor {
  return Tensor.fromElements(datatype, shape, elements);
}

/** Messages of tensors, and the buffers that go over instead of a copy. */
function toSend(tensors: Tensors, mayTransfer: boolean): [readonly SentTensor[], ArrayBuffer[]] {
  const transfer = new Set<ArrayBuffer>();
  const sent = Array.from(tensors, ([name, tensor]): SentTensor => {
    let { elements } = tensor;
    if (!Array.isArray(elements)) {
      const typed = elements as Extract<Elements, ArrayBufferView>;
      // A copy of a part, because a message of a view has all of its buffer.
      const isWhole = typed.byteLength === typed.buffer.byteLength;
      if (!isWhole || !mayTransfer) elements = typed.slice();
      const { buffer } = elements as typeof typed;
      if (buffer instanceof ArrayBuffer) transfer.add(buffer);
    }
    return { name, datatype: tensor.datatype, shape: tensor.shape, elements };
  });
  return [sent, [...transfer]];
}

/** The outputs of a call as tensors. */
function outputTensors(outputs: unknown, { output }: ModelConfig): Tensors {
  const values = outputs as Record<
    string,
    { readonly data: Elements | readonly string[]; readonly shape: number[] }
  >;
  const tensors = new Map<string, Tensor>();
  for (const { name, dataType } of output) {
    const value = values[name];
    if (value === undefined) continue;
    const datatype = fromConfigDataType(dataType)!;
    const elements =
      datatype === "BYTES" ? bytesOf(value.data as readonly unknown[]) : (value.data as Elements);
    tensors.set(name, Tensor.fromElements(datatype, value.shape, elements));
  }
  return tensors;
}

const encoder = new TextEncoder();

function bytesOf(elements: readonly unknown[]): Uint8Array[] {
  return elements.map((element) =>
    typeof element === "string" ? encoder.encode(element) : (element as Uint8Array),
  );
}
