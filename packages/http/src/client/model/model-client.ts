import type { LoadModelOptions } from "../calls/repository-calls.js";
import type { ModelConfigAnswer } from "../calls/server-answers.js";
import { DEFAULT_TIMEOUT_MS } from "../client-options.js";
import {
  type BatchAxis,
  ConcurrencyGate,
  type InputValuesOf,
  type ModelSignature,
  modelInputs,
  type ResultOf,
  type TensorSpec,
  TritonError,
  toNdArray,
  unlessAborted,
} from "../core.js";
import type { InferResult } from "../infer/infer-result.js";
import { InferenceServerClient } from "../inference-server-client.js";
import {
  DEFAULT_INFERENCE_TIMEOUT_MS,
  DEFAULT_INIT_TIMEOUT_MS,
  DEFAULT_MAX_QUEUE_SIZE,
  type ModelClientOptions,
  type ModelInferOptions,
} from "./model-client-options.js";
import { modelSignature } from "./model-signature.js";
import { waitUntil } from "./wait-until.js";

/** What may end a wait. */
export interface WaitCallOptions {
  /** @default `initTimeoutMs` of the client */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Model {
  readonly config: ModelConfigAnswer;
  readonly signature: ModelSignature;
}

/**
 * A client of one model, in the manner of PyTriton: it waits for the model, reads its configuration once, checks
 * inputs before they are sent, and knows about the batch axis.
 *
 * The type parameters are those of `bind`: with them inputs and results are typed.
 *
 * @example
 * ```ts
 * await using linear = new ModelClient("localhost:8000", "linear");
 * const { y } = await linear.inferSample({ x: [1, 2] });             // y: ndarray of shape [3]
 * const batch = await linear.inferBatch({ x: [[1, 2], [3, 4]] });    // batch.y: ndarray of shape [2, 3]
 * ```
 */
export class ModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> {
  readonly modelName: string;
  readonly #server: InferenceServerClient;
  readonly #ownsServer: boolean;
  readonly #options: ModelClientOptions;
  readonly #gate: ConcurrencyGate;
  readonly #closed = new AbortController();
  #model: Promise<Model> | undefined;

  /**
   * @param server where the server is, or a client of it; that one is left open by `close`
   * @throws TritonError INVALID_ARG for what is no HTTP address.
   */
  constructor(server: string | InferenceServerClient, modelName: string, options: ModelClientOptions = {}) {
    this.modelName = modelName;
    this.#ownsServer = typeof server === "string";
    this.#server = typeof server === "string" ? new InferenceServerClient(server, options) : server;
    this.#options = options;
    const { maxConcurrency = Number.POSITIVE_INFINITY, maxQueueSize = DEFAULT_MAX_QUEUE_SIZE } = options;
    this.#gate = new ConcurrencyGate(maxConcurrency, maxQueueSize);
    // Whoever calls first is told what went wrong.
    if (options.lazyInit === false) this.#knownModel().catch(() => {});
  }

  /**
   * Infers one sample: a model with a batch axis gets one row, and the results come without the axis. Inputs are read
   * when it is the call's turn: leave their arrays as they are until then.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model, UNSUPPORTED for a decoupled model,
   * UNAVAILABLE when the model is not ready in time, when too many calls wait, and after `close`, CANCELLED when
   * `signal` aborts, and what the server answers.
   */
  inferSample(inputs: InputValuesOf<I>, options: ModelInferOptions = {}): Promise<ResultOf<O>> {
    return this.#infer(inputs, options, "added");
  }

  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options: ModelInferOptions = {}): Promise<ResultOf<O>> {
    return this.#infer(inputs, options, "given");
  }

  /** Resolves when the server is ready. */
  waitForServer(options: WaitCallOptions = {}): Promise<void> {
    return this.#wait("the server", (call) => this.#server.isServerReady(call), options);
  }

  /** Resolves when the model is ready, whether or not all others are. */
  waitForModel(options: WaitCallOptions = {}): Promise<void> {
    const { modelVersion } = this.#options;
    const isReady = (call: { signal: AbortSignal; timeoutMs: number }) =>
      this.#server.isModelReady(this.modelName, { ...call, modelVersion });
    return this.#wait(`model '${this.modelName}'`, isReady, options);
  }

  /** Loads or reloads the model on a server with a model repository. */
  async loadModel(options: LoadModelOptions = {}): Promise<void> {
    await this.#server.loadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /** Unloads the model. */
  async unloadModel(options: WaitCallOptions = {}): Promise<void> {
    await this.#server.unloadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /** The model's configuration, with Triton's field names. Asked for once; waits for the model. */
  async modelConfig({ signal }: { signal?: AbortSignal } = {}): Promise<ModelConfigAnswer> {
    return (await unlessAborted(this.#knownModel(), signal)).config;
  }

  /** True when the model has a batch axis. */
  async isBatchingSupported(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    return Number((await this.modelConfig(options)).max_batch_size) > 0;
  }

  /** Refuses further calls and those that wait; resolves when those under way have ended. */
  async close(): Promise<void> {
    this.#closed.abort(new TritonError("UNAVAILABLE", "the client is closed"));
    await this.#gate.close();
    if (this.#ownsServer) this.#server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #initTimeoutMs(): number {
    return this.#options.initTimeoutMs ?? DEFAULT_INIT_TIMEOUT_MS;
  }

  async #infer(inputs: InputValuesOf<I>, options: ModelInferOptions, axis: BatchAxis): Promise<ResultOf<O>> {
    const { inferenceTimeoutMs = DEFAULT_INFERENCE_TIMEOUT_MS, modelVersion } = this.#options;
    const { signature } = await unlessAborted(this.#knownModel(), options.signal);
    if (signature.decoupled) throw decoupledError(this.modelName);
    const tensors = modelInputs(signature, inputs, axis);
    const call = { timeoutMs: inferenceTimeoutMs, ...options, modelVersion, inputs: tensors };
    const result = await this.#gate.run(() => this.#server.infer(this.modelName, call), options.signal);
    return toArrays(result, axis === "added" && signature.maxBatchSize > 0) as ResultOf<O>;
  }

  /** All calls share one look at the model; after a failure the next call looks again. */
  #knownModel(): Promise<Model> {
    this.#model ??= this.#lookUp().catch((thrown: unknown) => {
      this.#model = undefined;
      throw thrown;
    });
    return this.#model;
  }

  async #lookUp(): Promise<Model> {
    await this.waitForModel();
    const { modelVersion } = this.#options;
    const call = { modelVersion, signal: this.#closed.signal, timeoutMs: this.#initTimeoutMs };
    const config = await this.#server.getModelConfig(this.modelName, call);
    return { config, signature: modelSignature(this.modelName, config) };
  }

  #wait(
    what: string,
    isReady: (call: { signal: AbortSignal; timeoutMs: number }) => Promise<boolean>,
    { timeoutMs = this.#initTimeoutMs, signal }: WaitCallOptions,
  ): Promise<void> {
    const callTimeoutMs = Math.min(DEFAULT_TIMEOUT_MS, timeoutMs);
    return waitUntil((ended) => isReady({ signal: ended, timeoutMs: callTimeoutMs }), {
      what,
      timeoutMs,
      signals: [signal, this.#closed.signal],
    });
  }
}

function toArrays(result: InferResult, strip: boolean): Record<string, ReturnType<typeof toNdArray>> {
  const arrays: Record<string, ReturnType<typeof toNdArray>> = Object.create(null);
  for (const [name, tensor] of result.tensors) {
    if (strip && tensor.shape[0] !== 1) {
      throw new TritonError(
        "INTERNAL",
        `output '${name}' of one sample has shape [${tensor.shape.join(",")}]`,
      );
    }
    arrays[name] = toNdArray(strip ? tensor.reshaped(tensor.shape.slice(1)) : tensor);
  }
  return arrays;
}

function decoupledError(modelName: string): TritonError {
  return new TritonError(
    "UNSUPPORTED",
    `model '${modelName}' is decoupled: use generateStream() of InferenceServerClient, or the gRPC client`,
  );
}
