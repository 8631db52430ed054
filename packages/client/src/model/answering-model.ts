import {
  type BatchAxis,
  ConcurrencyGate,
  type InputValuesOf,
  modelInputs,
  type ResultOf,
  type Tensor,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import type { InferResult } from "../infer/infer-result.js";
import { resultArrays } from "../infer/result-arrays.js";
import type { CommonCallOptions, VersionOption } from "../options/client-options.js";
import { type CommonModelOptions, DEFAULT_MAX_QUEUE_SIZE } from "../options/model-options.js";
import { type AddressOrList, KnownModel, type ServerOfModel } from "./known-model.js";

/** A client of a server that answers an inference with one response. */
export interface AnsweringServer extends ServerOfModel {
  infer(
    modelName: string,
    call: CommonCallOptions & VersionOption & { readonly inputs: Readonly<Record<string, Tensor>> },
  ): Promise<InferResult>;
}

/** The base class of the clients of a model with one response per request. */
export abstract class AnsweringModel<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  S extends AnsweringServer,
  InferOptions extends Pick<CommonCallOptions, "signal">,
> extends KnownModel<S> {
  readonly #gate: ConcurrencyGate;

  constructor(
    server: AddressOrList | S,
    open: (url: AddressOrList) => S,
    modelName: string,
    options: CommonModelOptions,
  ) {
    super(server, open, modelName, options);
    const { maxConcurrency = Number.POSITIVE_INFINITY, maxQueueSize = DEFAULT_MAX_QUEUE_SIZE } = options;
    this.#gate = new ConcurrencyGate(maxConcurrency, maxQueueSize);
  }

  /**
   * Infers one sample. A model with a batch axis gets one row, and the results come without the axis. Inputs are read
   * when the call leaves the client's queue, so do not change their arrays before then.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model; UNSUPPORTED for a decoupled model;
   * UNAVAILABLE when the model is not ready in time, when too many calls wait, and after `close`; CANCELLED when
   * `signal` aborts; and errors that the server answers.
   */
  inferSample(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>> {
    return this.#infer(inputs, options, "added");
  }

  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>> {
    return this.#infer(inputs, options, "given");
  }

  /** The alternative for decoupled models, for the text of the error. */
  protected abstract get forDecoupled(): string;

  protected override finished(): Promise<void> {
    return this.#gate.close();
  }

  async #infer(
    inputs: InputValuesOf<I>,
    options: InferOptions | undefined,
    axis: BatchAxis,
  ): Promise<ResultOf<O>> {
    const { signature, timeoutMs } = await this.prepared(options?.signal);
    if (signature.decoupled) {
      throw new TritonError(
        "UNSUPPORTED",
        `model '${this.modelName}' is decoupled, so it has no single response: use ${this.forDecoupled}`,
        { reason: "DECOUPLED_MODEL" },
      );
    }
    const tensors = modelInputs(signature, inputs, axis);
    const { modelVersion } = this.options;
    const call = { timeoutMs, ...options, modelVersion, inputs: tensors };
    const result = await this.#gate.run(() => this.server.infer(this.modelName, call), options?.signal);
    return resultArrays(result, axis === "added" && signature.maxBatchSize > 0) as ResultOf<O>;
  }
}
