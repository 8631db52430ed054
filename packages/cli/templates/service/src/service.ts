import { batch, Triton, type TritonOptions } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";

/** The models of the service: those of the directory `models`, and one that is a function. */
export function createService(options: TritonOptions = {}): Triton {
  const triton = new Triton({
    ...options,
    extensions: [repository({ modelRepository: "models" }), ...(options.extensions ?? [])],
  });
  triton.bind({
    modelName: "norm",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "norm", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => {
      const [rows, length] = [x.shape[0]!, x.shape[1]!];
      const norms = new Float32Array(rows);
      for (let row = 0; row < rows; row++) {
        for (let i = 0; i < length; i++) norms[row]! += x.get(row, i) ** 2;
        norms[row] = Math.sqrt(norms[row]!);
      }
      return { norm: norms };
    }),
    config: { maxBatchSize: 64 },
  });
  return triton;
}
