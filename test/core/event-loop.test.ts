import { batch } from "@tritonjs/core";
import { expect, it } from "vitest";
import { openTriton } from "../e2e/support/open-triton.js";

/** Computes for a millisecond. */
function compute(): void {
  const end = performance.now() + 1;
  while (performance.now() < end);
}

it.each([
  ["one after the other", 1],
  ["together", 40],
])(
  "40 requests of a callback that computes, %s, leave turns to the rest of the program",
  async (_how, together) => {
    const triton = openTriton();
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => {
        compute();
        return { y: x };
      }),
      config: { maxBatchSize: 1 },
    });
    await model.ready();
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const client = async () => {
      for (let i = 0; i < 40 / together; i++) await model.inferSample({ x: [i] });
    };
    await Promise.all(Array.from({ length: together }, client));
    isOver = true;
    // A turn after each two milliseconds of work.
    expect(turns).toBeGreaterThanOrEqual(19);
  },
);
