import { batch, Triton } from "@tritonjs/core";

/** A program whose options `tritonjs analyze` varies. */
export function createTriton(configs) {
  const triton = new Triton();
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    config: { maxBatchSize: 8, ...configs.double },
  });
  return triton;
}
