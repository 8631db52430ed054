import type { Parameters, Tensor } from "@tritonjs/protocol";

/** One answer to a request. */
export interface InferenceResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  /** The request's id, empty when it had none. */
  readonly id: string;
  readonly parameters: Parameters;
  /** Requested tensors by name, in the model's order. */
  readonly outputs: ReadonlyMap<string, Tensor>;
}
