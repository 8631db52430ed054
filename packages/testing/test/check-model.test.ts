import { batch, groupByKeys, sample, Triton } from "@tritonjs/core";
import { type CheckModelOptions, checkModel, fakeModel } from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let triton: Triton;
beforeEach(() => {
  triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
});
afterEach(() => triton.close());

const x = { name: "x", dtype: "FP32", shape: [3] } as const;
const y = { name: "y", dtype: "FP32", shape: [3] } as const;
/** Without the check for kept memory, which collects garbage several times. */
const quick: CheckModelOptions = { skip: ["memory"] };

/** Rows of a batch, as lists of numbers. */
const rows = (array: { toArray(): unknown }) => array.toArray() as number[][];

async function failuresOf(model: Parameters<typeof checkModel>[0], options = quick) {
  const { checks } = await checkModel(model, options);
  return Object.fromEntries(
    checks.filter(({ outcome }) => outcome === "failed").map(({ name, text }) => [name, text]),
  );
}

/** Binds a model from rows to rows. */
const bindRows = (compute: (rows: number[][]) => number[][]) =>
  triton.bind({
    modelName: "m",
    inputs: [x],
    outputs: [y],
    inferFunc: batch(({ x }) => ({ y: compute(rows(x)) })),
    config: { maxBatchSize: 8 },
  });

it("a model that treats each row by itself passes all checks", async () => {
  const model = bindRows((rows) => rows.map((row) => row.map((value) => 2 * value + 1)));
  const report = await checkModel(model, { runs: 10 });
  expect(report.checks.filter(({ outcome }) => outcome === "failed")).toEqual([]);
  expect(report).toMatchObject({ model: "m", ok: true });
  expect(report.checks.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
    "repeatability passed",
    "batch passed",
    "order passed",
    "company passed",
    "padding skipped",
    "results passed",
    "instances passed",
    "extremes passed",
    "empty-batch passed",
    "memory passed",
  ]);
  expect(model.instances()).toHaveLength(1);
});

describe("planted faults are found:", () => {
  it("statistics over the batch", async () => {
    const model = bindRows((rows) => {
      const mean = rows.flat().reduce((sum, value) => sum + value, 0) / (3 * rows.length);
      return rows.map((row) => row.map((value) => value - mean));
    });
    expect(Object.keys(await failuresOf(model))).toEqual(expect.arrayContaining(["batch", "company"]));
  });

  it("statistics over the batch that copies of a sample do not show", async () => {
    // A quantity that only outliers change.
    const model = bindRows((rows) => {
      const largest = Math.max(1, ...rows.flat().map(Math.abs));
      return rows.map((row) => row.map((value) => value / largest));
    });
    expect(Object.keys(await failuresOf(model))).toContain("company");
  });

  it("another order of rows", async () => {
    const model = bindRows((rows) => rows.toSorted((a, b) => a[0]! - b[0]!));
    const failures = await failuresOf(model);
    expect(failures.batch).toMatch(/sample \d in a batch: output 'y': at \[0, 0\] expected /);
    expect(failures).toHaveProperty("order");
  });

  it("padding that leaks into the answer", async () => {
    const model = triton.bind({
      modelName: "m",
      inputs: [{ ...x, shape: [-1], allowRaggedBatch: true }],
      outputs: [{ ...y, shape: [1] }],
      // Each sample is padded to the longest of its batch, and the mean counts the padding.
      inferFunc: async (requests) => {
        await new Promise((resolve) => setImmediate(resolve));
        const longest = Math.max(...requests.map(({ inputs }) => inputs.x.shape[1]!));
        return requests.map(({ inputs }) => {
          const sums = rows(inputs.x).map((row) => row.reduce((sum, value) => sum + value, 0));
          return { y: sums.map((sum) => [sum / longest]) };
        });
      },
      config: { maxBatchSize: 8 },
    });
    const failures = await failuresOf(model);
    expect(failures.padding).toMatch(/a sample of length \d beside longer ones: output 'y'/);
    expect(failures).not.toHaveProperty("batch");
  });

  it("a buffer that rows share", async () => {
    const shared = new Array<number>(3).fill(0);
    const model = bindRows((rows) =>
      rows.map((row) => {
        for (const [i, value] of row.entries()) shared[i] = value;
        return shared;
      }),
    );
    expect(await failuresOf(model)).toHaveProperty("batch");
  });

  it("a buffer that instances share", async () => {
    const shared = new Float32Array(3);
    const model = triton.bind({
      modelName: "m",
      inputs: [x],
      outputs: [y],
      inferFunc: sample(async ({ x }) => {
        shared.set(x.data);
        await new Promise((resolve) => setImmediate(resolve));
        return { y: shared };
      }),
    });
    expect(Object.keys(await failuresOf(model))).toEqual(["instances"]);
  });

  it("dropout that is left on", async () => {
    let seed = 1;
    const isDropped = () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed % 2 === 0;
    };
    const model = bindRows((rows) => rows.map((row) => row.map((value) => (isDropped() ? 0 : value))));
    expect(await failuresOf(model)).toHaveProperty("repeatability");
  });

  it("memory that is kept", async () => {
    const kept: unknown[] = [];
    const model = bindRows((rows) => {
      kept.push(Array.from({ length: 500 }, (_, i) => ({ i })));
      return rows;
    });
    const failures = await failuresOf(model, { runs: 400 });
    expect(failures.memory).toMatch(/memory grows by \d+ bytes with each run, over 400 runs/);
  });

  it("an extreme that spoils later answers", async () => {
    let sum = 0;
    const model = bindRows((rows) =>
      rows.map((row) =>
        row.map((value) => {
          if (!Number.isFinite(value)) sum += value;
          return value + sum;
        }),
      ),
    );
    const failures = await failuresOf(model);
    expect(failures.extremes).toMatch(/after input 'x' with infinities another sample differs/);
  });
});

it("checks models without a batch axis, with streams, sequences, texts and optional inputs", async () => {
  const streaming = triton.bind({
    modelName: "stream",
    inferFunc: fakeModel({
      inputs: [{ name: "n", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
      decoupled: true,
      answer: ({ n }) => [{ left: [n.get(0)] }, { left: [0] }],
    }),
  });
  const sequence = triton.bind({
    modelName: "sequence",
    inputs: [{ name: "text", dtype: "BYTES", shape: [-1] }],
    outputs: [{ name: "length", dtype: "INT64", shape: [1] }],
    inferFunc: (requests) => requests.map(({ inputs }) => ({ length: [BigInt(inputs.text.size)] })),
    config: { sequence: {}, batching: false },
  });
  const optional = triton.bind({
    modelName: "optional",
    inputs: [x, { name: "scale", dtype: "FP16", shape: [1], optional: true }],
    outputs: [y],
    inferFunc: groupByKeys(batch(({ x }) => ({ y: x! }))),
    config: { maxBatchSize: 4 },
  });
  for (const model of [streaming, sequence, optional] as const) {
    const { checks } = await checkModel(model, quick);
    expect([model.name, checks.filter(({ outcome }) => outcome === "failed")]).toEqual([model.name, []]);
  }
});

it("uses samples that the caller makes, and fails where the model answers none", async () => {
  const model = triton.bind({
    modelName: "picky",
    inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: sample(({ text }) => ({ y: [(JSON.parse(text.text(0)) as { value: number }).value] })),
  });
  await expect(checkModel(model, quick)).rejects.toThrow(/JSON/);
  const report = await checkModel(model, {
    ...quick,
    sample: (index, random) => ({ text: JSON.stringify({ value: index + random() }) }),
  });
  expect(report.checks.filter(({ outcome }) => outcome === "failed")).toEqual([]);
  expect(report.checks.at(-1)).toEqual({ name: "memory", outcome: "skipped", text: "left out" });
  await expect(checkModel(model, { skip: ["memroy" as "memory"] })).rejects.toThrow("got 'memroy'");
  await expect(checkModel(model, { run: 1 } as object)).rejects.toThrow(/checkModel\(\).*run/s);
});
