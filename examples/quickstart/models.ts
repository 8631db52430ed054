import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, type Triton } from "@tritonjs/core";
import { packageFolder } from "./iris/package-folder.js";

/** Weights of the linear model: three outputs from two inputs. */
const WEIGHTS = [
  [1, 0],
  [0, 1],
  [1, 1],
] as const;

/** Binds `linear`, a TypeScript callback: y = W x. It gets all rows of a batch at once. */
export function bindLinear(triton: Triton) {
  return triton.bind({
    modelName: "linear",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [3] }],
    inferFunc: batch(({ x }) => {
      const rows = x.shape[0]!;
      const y = new Float32Array(rows * WEIGHTS.length);
      for (let row = 0; row < rows; row++) {
        WEIGHTS.forEach(([a, b], i) => {
          y[row * WEIGHTS.length + i] = a * x.get(row, 0) + b * x.get(row, 1);
        });
      }
      return { y };
    }),
    config: { maxBatchSize: 64 },
  });
}

/** Binds `iris`, a classifier in an ONNX file. Its tensors and its batch axis are read from the file. */
export function bindIris(triton: Triton) {
  return triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: new URL("iris/iris.onnx", packageFolder(import.meta.url)) }),
    inputs: [{ name: "measurements", dtype: "FP32", shape: [4] }],
    outputs: [
      { name: "probabilities", dtype: "FP32", shape: [3] },
      { name: "species", dtype: "INT64", shape: [1] },
    ],
    config: { maxBatchSize: 64, batcher: { maxQueueDelayMicroseconds: 2000 } },
  });
}
