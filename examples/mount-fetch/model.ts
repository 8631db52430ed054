import { sample, Triton } from "@tritonjs/core";

/** A Triton with two models: one doubles its input, one counts down and so has many responses. */
export function createTriton(): Triton {
  const triton = new Triton();
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  triton.bind({
    modelName: "countdown",
    inputs: [{ name: "from", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
    inferFunc: sample(async function* ({ from }) {
      for (let left = from.get(0); left > 0; left--) yield { left: [left] };
    }),
  });
  return triton;
}
