import type { InferenceResponse, Tensor } from "@tritonjs/core";
import type { inference } from "@tritonjs/grpc-messages";
import { encodeParameters } from "./infer-parameter.js";

type ResponseMessage = inference.ModelInferResponse.$Properties;

/** An output as it is sent. */
export type SentOutput = Pick<Tensor, "datatype" | "shape" | "bytes">;

/** Changes an output before it is sent. */
export type OutputFilter = (name: string, tensor: Tensor) => SentOutput;

/** A response as a message; the contents of its outputs are views of the tensors. */
export function encodeInferResponse(response: InferenceResponse, filter: OutputFilter): ResponseMessage {
  const outputs: inference.ModelInferResponse.InferOutputTensor.$Properties[] = [];
  const rawOutputContents: Uint8Array[] = [];
  for (const [name, output] of response.outputs) {
    const tensor = filter(name, output);
    outputs.push({ name, datatype: tensor.datatype, shape: tensor.shape as number[] });
    rawOutputContents.push(tensor.bytes);
  }
  return {
    modelName: response.modelName,
    modelVersion: response.modelVersion,
    id: response.id,
    parameters: encodeParameters(response.parameters),
    outputs,
    rawOutputContents,
  };
}
