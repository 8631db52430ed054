import ort from "onnxruntime-node";
import { onnxModels } from "./onnx-models.mjs";

/** A session of ONNX Runtime with one thread, for a model of `onnxModels`, as a program without tritonjs has it. */
export async function openSession(model) {
  const { bytes, shape } = onnxModels[model]();
  const session = await ort.InferenceSession.create(bytes, { intraOpNumThreads: 1 });
  const elements = shape.reduce((product, dim) => product * dim, 1);
  return {
    elements,
    /** Runs one row, given and returned as the bytes of its FP32 tensor. */
    async run(row) {
      const data = new Float32Array(row.buffer.slice(row.byteOffset, row.byteOffset + row.byteLength));
      const { y } = await session.run({ x: new ort.Tensor("float32", data, [1, ...shape]) });
      return { shape: y.dims, bytes: Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength) };
    },
  };
}
