import {
  type BatchAxis,
  ConcurrencyGate,
  type InputValuesOf,
  modelInputs,
  type ResultOf,
  type TensorSpec,
  TritonError,
} from "../core.js";
import type { InferenceServerClient } from "../inference-server-client.js";
import { KnownModel } from "./known-model.js";
import {
  DEFAULT_MAX_QUEUE_SIZE,
  type ModelClientOptions,
  type ModelInferOptions,
} from "./model-client-options.js";
import { resultArrays } from "./result-arrays.js";

/**
 * A client of one model, in the manner of PyTriton: it waits for the model, reads its configuration once, checks
 * inputs before they are sent, and knows about the batch axis.
 *
 * The type parameters are those of `bind`: with them inputs and results are typed.
 *
 * @example
 * ```ts
 * await using linear = new ModelClient("localhost:8001", "linear");
 * const { y } = await linear.inferSample({ x: [1, 2] });             // y: ndarray of shape [3]
 * const batch = await linear.inferBatch({ x: [[1, 2], [3, 4]] });    // batch.y: ndarray of shape [2, 3]
 * ```
 */
export class ModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends KnownModel {
  readonly #gate: ConcurrencyGate;

  /**
   * @param server where the server is, or a client of it; that one is left open by `close`
   * @throws TritonError INVALID_ARG for what is no address.
   */
  constructor(server: string | InferenceServerClient, modelName: string, options: ModelClientOptions = {}) {
    super(server, modelName, options);
    const { maxConcurrency = Number.POSITIVE_INFINITY, maxQueueSize = DEFAULT_MAX_QUEUE_SIZE } = options;
    this.#gate = new ConcurrencyGate(maxConcurrency, maxQueueSize);
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

  protected override finished(): Promise<void> {
    return this.#gate.close();
  }

  async #infer(inputs: InputValuesOf<I>, options: ModelInferOptions, axis: BatchAxis): Promise<ResultOf<O>> {
    const { signature, timeoutMs } = await this.prepared(options.signal);
    if (signature.decoupled) {
      throw new TritonError(
        "UNSUPPORTED",
        `model '${this.modelName}' is decoupled: use DecoupledModelClient instead`,
      );
    }
    const tensors = modelInputs(signature, inputs, axis);
    const { modelVersion } = this.options;
    const call = { timeoutMs, ...options, modelVersion, inputs: tensors };
    const result = await this.#gate.run(() => this.server.infer(this.modelName, call), options.signal);
    return resultArrays(result, axis === "added" && signature.maxBatchSize > 0) as ResultOf<O>;
  }
}
