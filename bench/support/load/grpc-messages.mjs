import { codecOf } from "../tree.mjs";

/**
 * An encoded ModelInferRequest with an FP32 tensor of the given number of bytes, for
 * bench/programs/identity-server.mjs.
 */
export async function inferMessage(modelName, byteSize, batched) {
  const { encodeMessage, inference } = await codecOf();
  const elements = byteSize / 4;
  return encodeMessage(inference.ModelInferRequest, {
    modelName,
    inputs: [{ name: "x", datatype: "FP32", shape: batched ? [1, elements] : [elements] }],
    rawInputContents: [Buffer.from(new Float32Array(elements).fill(0.5).buffer)],
  });
}
