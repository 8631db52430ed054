import { elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import { PendingRequest } from "../../request/pending-request.js";

/**
 * Fills a slot without a request: inputs of the same shapes as those of a request that runs, all zeros or empty
 * strings, and no one who waits for an answer.
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

/** Inputs of the same shapes, all zeros or empty strings. */
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
