import { batch, Triton } from "@tritonjs/core";

/** Two models. The first request of each waits for the first request of the other. */
export function createTriton(configs) {
  const triton = new Triton();
  const [called, reached] = [{}, {}];
  for (const name of ["a", "b"]) {
    called[name] = new Promise((resolve) => {
      reached[name] = resolve;
    });
  }
  for (const [name, other] of [
    ["a", "b"],
    ["b", "a"],
  ]) {
    triton.bind({
      modelName: name,
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(async ({ x }) => {
        reached[name]();
        await called[other];
        return { y: x };
      }),
      config: { maxBatchSize: 8, ...configs[name] },
    });
  }
  return triton;
}
