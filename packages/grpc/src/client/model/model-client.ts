import {
  type BatchAxis,
  type InputValuesOf,
  modelInputs,
  type ResultOf,
  type TensorSpec,
  TritonError,
} from "../core.js";
import { KnownModel } from "./known-model.js";
import type { ModelInferOptions } from "./model-client-options.js";
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
  readonly #underWay = new Set<Promise<unknown>>();

  /**
   * Infers one sample: a model with a batch axis gets one row, and the results come without the axis.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model, UNSUPPORTED for a decoupled model,
   * UNAVAILABLE when the model is not ready in time and after `close`, CANCELLED when `signal` aborts, and what the
   * server answers.
   */
  inferSample(inputs: InputValuesOf<I>, options: ModelInferOptions = {}): Promise<ResultOf<O>> {
    return this.#counted(this.#infer(inputs, options, "added"));
  }

  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options: ModelInferOptions = {}): Promise<ResultOf<O>> {
    return this.#counted(this.#infer(inputs, options, "given"));
  }

  protected override async finished(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  #counted<T>(inference: Promise<T>): Promise<T> {
    this.#underWay.add(inference);
    const done = (): void => void this.#underWay.delete(inference);
    inference.then(done, done);
    return inference;
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
    const result = await this.server.infer(this.modelName, call);
    return resultArrays(result, axis === "added" && signature.maxBatchSize > 0) as ResultOf<O>;
  }
}
