import { elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import { PendingRequest } from "../../request/pending-request.js";

/**
 * Makes a request that fills a slot. Its inputs have the shapes of a request that runs, with all zeros or empty
 * strings, and it has no caller.
 */
export function nullRequest(like: PendingRequest, inputs: Tensors): PendingRequest {
  const request = new PendingRequest({
    modelName: like.modelName,
    modelVersion: like.modelVersion,
    inputs,
    ready: false,
    onResponse: () => {},
  });
  request.batchSize = like.batchSize;
  return request;
}

/** Makes inputs of the same shapes, with all zeros or empty strings. */
export function nullInputs(inputs: Tensors): Tensors {
  return new Map([...inputs].map(([name, tensor]) => [name, zeros(tensor)]));
}

function zeros({ datatype, shape }: Tensor): Tensor {
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    return Tensor.fromElements(
      datatype,
      shape,
      Array.from({ length: count }, () => new Uint8Array()),
    );
  }
  return Tensor.fromBytes(datatype, shape, new Uint8Array(count * elementByteSize(datatype)));
}
