import { setTimeout as delay } from "node:timers/promises";
import { sample, Triton } from "@tritonjs/core";

/** Opens two models: one doubles its input, one counts down and so has many responses. */
export function openInference() {
  const triton = new Triton();
  const double = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  const countdown = triton.bind({
    modelName: "countdown",
    inputs: [{ name: "from", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
    inferFunc: sample(async function* ({ from }) {
      let left = from.get(0);
      try {
        for (; left > 0; left--) {
          yield { left: [left] };
          await delay(1);
        }
      } finally {
        // Also runs when the client leaves early.
        if (left > 0) console.log(`countdown stopped at ${left}`);
      }
    }),
  });
  return { triton, double, countdown, models: { double, countdown } };
}
