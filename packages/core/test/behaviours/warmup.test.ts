import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

let triton = new Triton();
afterEach(async () => {
  await triton.close();
  triton = new Triton();
});

type Warmup = NonNullable<ModelOptions["modelWarmup"]>;

/** Binds a model with warm-up samples and records its inputs until it is ready. */
function bind(modelWarmup: Warmup, config: ModelOptions = {}, fail = false) {
  const seen: number[][] = [];
  const handle = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "INT32", shape: [2] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
    inferFunc: batch(async ({ x }) => {
      seen.push([...x.data]);
      await new Promise((resolve) => setImmediate(resolve));
      if (fail) throw new Error("still cold");
      return { y: x };
    }),
    config: { ...config, modelWarmup },
  });
  return { handle, seen };
}

const shape = { dtype: "INT32", shape: [2] } as const;

describe("warm-up", () => {
  it("runs zeros, random numbers, a file, and given values, before the model is ready", async () => {
    const folder = mkdtempSync(join(tmpdir(), "warmup-"));
    const file = join(folder, "x");
    writeFileSync(file, new Uint8Array(Int32Array.of(5, 6).buffer));
    const { handle, seen } = bind([
      { name: "zeros", inputs: { x: { ...shape, zeroData: true } } },
      { name: "random", inputs: { x: { ...shape, randomData: true } } },
      { name: "file", inputs: { x: { ...shape, inputDataFile: file } } },
      { name: "given", inputs: { x: { ...shape, data: [7, 8] } } },
    ]);
    await handle.ready();
    rmSync(folder, { recursive: true });
    expect(seen.filter((_, i) => i !== 1)).toEqual([
      [0, 0],
      [5, 6],
      [7, 8],
    ]);
    expect(seen[1]).toHaveLength(2);
    await handle.inferSample({ x: [1, 2] });
    expect(seen).toHaveLength(5);
  });

  it("runs a sample count times with batchSize requests, in each instance", async () => {
    const { handle, seen } = bind(
      [
        { name: "three", batchSize: 3, count: 2, inputs: { x: { ...shape, data: Int32Array.of(1, 2) } } },
        { name: "none", batchSize: 0, inputs: { x: shape } },
      ],
      { instanceGroup: { count: 2 } },
    );
    await handle.ready();
    expect(seen).toEqual(Array.from({ length: 4 }, () => [1, 2, 1, 2, 1, 2]));
  });

  it("makes loading fail with the name of a failed sample", async () => {
    const { handle } = bind([{ name: "first", inputs: { x: shape } }], {}, true);
    expect(await outcomeOf(handle.ready())).toBe(
      "INVALID_ARG failed to run warmup sample 'first': still cold; ",
    );
    expect(await outcomeOf(handle.inferSample({ x: [1, 2] }))).toMatch(/^UNAVAILABLE .*still cold/);
  });

  it("rejects a sample with more requests than the largest batch before running it", async () => {
    const sample = { name: "big", batchSize: 3, inputs: { x: shape } };
    const { handle, seen } = bind([sample], { maxBatchSize: 2 });
    const text = "batch size 3 for 'm_0', max allowed is 2; ";
    expect(await outcomeOf(handle.ready())).toBe(
      `INVALID_ARG failed to run warmup sample 'big': ${text.repeat(3)}`,
    );
    expect(seen).toEqual([]);
  });

  it("copies given values at bind, and rejects all invalid ones at once", async () => {
    const data = Int32Array.of(3, 4);
    const { handle, seen } = bind([{ name: "given", inputs: { x: { ...shape, data } } }]);
    data.fill(0);
    await handle.ready();
    expect(seen).toEqual([[3, 4]]);
    const other = () =>
      triton.bind({
        modelName: "other",
        inputs: [{ name: "x", dtype: "INT32", shape: [2] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
        inferFunc: batch(({ x }) => ({ y: x })),
        config: {
          modelWarmup: [
            { name: "long", inputs: { x: { ...shape, data: [1, 2, 3] } } },
            { name: "text", inputs: { x: { ...shape, data: ["a", "b"] } } },
          ],
        },
      });
    expect(thrownBy(other)).toBe(
      "INVALID_ARG cannot bind model 'other':\n" +
        "- data of input 'x' in warmup sample 'long': expected shape [2], got [3]\n" +
        "- data of input 'x' in warmup sample 'text' (INT32): expected an integer in [-2^31, 2^31), got string",
    );
  });
});
