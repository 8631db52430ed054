import {
  type BatchAxis,
  type InputValuesOf,
  modelInputs,
  type ResultOf,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import { resultArrays } from "../infer-result.js";
import { AnsweringModel, KnownModel } from "../known-model.js";
import type { CommonModelOptions } from "../options.js";
import type { ClientOptions, InferRequestOptions } from "./client-options.js";
import { InferenceServerClient } from "./inference-server-client.js";

/** Options of a client of one model. */
export interface ModelClientOptions extends Omit<ClientOptions, "timeoutMs">, CommonModelOptions {}

/** Options of an inference with one model. */
export type ModelInferOptions = Omit<InferRequestOptions, "modelVersion">;

/**
 * A client of one model, after PyTriton's. It waits for the model, reads the configuration once, checks inputs before
 * they are sent, and adds the batch axis.
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
> extends AnsweringModel<I, O, InferenceServerClient, ModelInferOptions> {
  /**
   * @param server address of the server, a list of addresses, or a client, which `close` leaves open
   * @throws TritonError INVALID_ARG for an invalid address.
   */
  constructor(
    server: string | readonly string[] | InferenceServerClient,
    modelName: string,
    options: ModelClientOptions = {},
  ) {
    super(
      server,
      (url) => new InferenceServerClient(url, options),
      modelName,
      options,
      "DecoupledModelClient instead",
    );
  }
}

/**
 * A client of one decoupled model: a request has any number of responses, which arrive as the model makes them. Each
 * call has its own stream, so calls do not wait for each other.
 *
 * @example
 * ```ts
 * await using llm = new DecoupledModelClient("localhost:8001", "llm");
 * for await (const { text } of llm.inferSample({ prompt: "hello" })) process.stdout.write(`${text.get(0)}`);
 * ```
 */
export class DecoupledModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends KnownModel<InferenceServerClient> {
  /**
   * @param server address of the server, a list of addresses, or a client, which `close` leaves open
   * @throws TritonError INVALID_ARG for an invalid address.
   */
  constructor(
    server: string | readonly string[] | InferenceServerClient,
    modelName: string,
    options: ModelClientOptions = {},
  ) {
    super(server, (url) => new InferenceServerClient(url, options), modelName, options);
  }

  /**
   * Infers one sample and yields its responses. A model with a batch axis gets one row, and the results come without
   * the axis. The request is sent when the first response is requested. Leaving the loop cancels the request.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model; UNSUPPORTED for a model that is not
   * decoupled; UNAVAILABLE when the model is not ready in time, and after `close`; CANCELLED when `signal` aborts; and
   * the first error that the server answers.
   */
  inferSample(
    inputs: InputValuesOf<I>,
    options: ModelInferOptions = {},
  ): AsyncGenerator<ResultOf<O>, void, void> {
    return this.#infer(inputs, options, "added");
  }

  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(
    inputs: InputValuesOf<I>,
    options: ModelInferOptions = {},
  ): AsyncGenerator<ResultOf<O>, void, void> {
    return this.#infer(inputs, options, "given");
  }

  async *#infer(
    inputs: InputValuesOf<I>,
    options: ModelInferOptions,
    axis: BatchAxis,
  ): AsyncGenerator<ResultOf<O>, void, void> {
    const { headers, signal, timeoutMs, requestCompression, ...request } = options;
    const { signature, timeoutMs: defaultTimeoutMs } = await this.prepared(signal);
    if (!signature.decoupled) {
      throw new TritonError(
        "UNSUPPORTED",
        `model '${this.modelName}' is not decoupled, so it has a single response: use ModelClient`,
        { reason: "DECOUPLED_MODEL" },
      );
    }
    const { modelName } = this;
    const { modelVersion } = this.options;
    const only = { ...request, modelName, modelVersion, inputs: modelInputs(signature, inputs, axis) };
    const responses = this.server.streamInfer([only], {
      headers,
      signal: signal === undefined ? this.closed : AbortSignal.any([signal, this.closed]),
      timeoutMs: timeoutMs ?? defaultTimeoutMs,
      endOnError: true,
      ...(requestCompression !== undefined && { requestCompression }),
    });
    const strip = axis === "added" && signature.maxBatchSize > 0;
    for await (const { result, error } of responses) {
      if (error !== undefined) throw error;
      yield resultArrays(result, strip) as ResultOf<O>;
    }
  }
}
