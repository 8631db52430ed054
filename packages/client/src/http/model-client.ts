import type { TensorSpec } from "@tritonjs/protocol";
import { AnsweringModel } from "../known-model.js";
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
 * await using linear = new ModelClient("localhost:8000", "linear");
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
   * @throws TritonError INVALID_ARG for an invalid HTTP address.
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
      "generateStream() of InferenceServerClient, or the gRPC client",
    );
  }
}
