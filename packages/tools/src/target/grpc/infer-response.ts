import { decodeMessage, inference, typedElements } from "@tritonjs/grpc-messages";
import { isDataType, Tensor, TritonError } from "@tritonjs/protocol";

/** The outputs of a response. @throws Error for a response that cannot be read. */
export function outputTensors(response: inference.ModelInferResponse.$Properties): Map<string, Tensor> {
  const raw = response.rawOutputContents ?? [];
  return new Map(
    (response.outputs ?? []).map((output, i) => {
      const name = output.name ?? "";
      const datatype = output.datatype ?? "";
      if (!isDataType(datatype))
        throw new TritonError("INTERNAL", `output '${name}': unknown datatype '${datatype}'`);
      const shape = (output.shape ?? []).map(Number);
      const bytes = raw[i];
      if (bytes !== undefined) return [name, Tensor.fromBytes(datatype, shape, bytes)];
      const elements = typedElements(output.contents ?? {}, datatype, `output '${name}'`);
      if (elements === undefined) throw new TritonError("INTERNAL", `output '${name}' has no contents`);
      return [name, Tensor.fromElements(datatype, shape, elements as never)];
    }),
  );
}

/** @throws Error for bytes that are not such a message. */
export const decodeInferMessage = (bytes: Uint8Array): inference.ModelInferResponse =>
  decodeMessage(inference.ModelInferResponse, bytes);

/** @throws Error for bytes that are not such a message. */
export const decodeStreamMessage = (bytes: Uint8Array): inference.ModelStreamInferResponse =>
  decodeMessage(inference.ModelStreamInferResponse, bytes);
