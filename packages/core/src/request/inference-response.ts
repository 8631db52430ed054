import type { Parameters, Tensor } from "@tritonjs/protocol";

/** One answer to a request. */
export interface InferenceResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  /** Id of the request; empty if it had none. */
  readonly id: string;
  readonly parameters: Parameters;
  /** Requested tensors by name, in the model's order. */
  readonly outputs: ReadonlyMap<string, Tensor>;
}
