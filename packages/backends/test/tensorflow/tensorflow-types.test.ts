import { join } from "node:path";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const shape = { dim: [{ size: "-1" }, { size: "-1" }] };

/** A graph in which each input goes through one operation to an output with the operation's name. */
function graphOf(rows: readonly (readonly [input: string, type: string, op: string, twice?: boolean])[]) {
  const tensor = (name: string, dtype: string) => ({ name: `${name}:0`, dtype, tensorShape: shape });
  return JSON.stringify({
    format: "graph-model",
    signature: {
      inputs: Object.fromEntries(rows.map(([input, type]) => [input, tensor(input, type)])),
      outputs: Object.fromEntries(rows.map(([, type, op]) => [op, tensor(op, type)])),
    },
    modelTopology: {
      versions: { producer: 1 },
      node: rows.flatMap(([input, type, op, twice]) => [
        { name: input, op: "Placeholder", input: [], attr: { dtype: { type }, shape: { shape } } },
        { name: op, op, input: twice ? [input, input] : [input], attr: { T: { type } } },
      ]),
    },
    weightsManifest: [],
  });
}

const files = {
  "types/model.json": graphOf([
    ["flags", "DT_BOOL", "LogicalNot"],
    ["counts", "DT_INT32", "AddV2", true],
    ["words", "DT_STRING", "Identity"],
  ]),
  "squares/model.json": graphOf([["x", "DT_FLOAT", "Square"]]),
};

describe.each(["wasm", "cpu"] as const)("TensorFlow.js on %s", (runtime) => {
  let folder: RepositoryOnDisk;
  let triton: Triton;

  beforeAll(async () => {
    folder = await RepositoryOnDisk.create(files);
    triton = new Triton();
    for (const modelName of ["types", "squares"]) {
      const model = join(folder.path, modelName, "model.json");
      triton.bind({
        modelName,
        inferFunc: tensorflow({ model, runtime }),
        config: { batcher: { maxQueueDelayMicroseconds: 1000 } },
      });
    }
  });

  afterAll(async () => {
    await triton.close();
    await folder[Symbol.asyncDispose]();
  });

  const given = {
    flags: [
      [true, false, true],
      [false, false, true],
    ],
    counts: [
      [1, -2],
      [2 ** 30 - 1, -(2 ** 30)],
    ],
    words: [
      ["", "naïve", "日本語", "\u0000"],
      ["a", "b", "c", "d"],
    ],
  };

  it("accepts and returns booleans, integers and strings in the shapes of the requests", async () => {
    const { LogicalNot, AddV2, Identity } = await triton.infer("types", given);
    expect([LogicalNot!.dtype, AddV2!.dtype, Identity!.dtype]).toEqual(["uint8", "int32", "array"]);
    expect([LogicalNot!.shape, AddV2!.shape, Identity!.shape]).toEqual([
      [2, 3],
      [2, 2],
      [2, 4],
    ]);
    expect([...LogicalNot!.data].map(Boolean)).toEqual([false, true, false, true, true, false]);
    expect([...AddV2!.data]).toEqual([2, -4, 2 ** 31 - 2, -(2 ** 31)]);
    expect([...Identity!.data].map((word) => Buffer.from(word as Uint8Array).toString())).toEqual(
      given.words.flat(),
    );
  });

  it("runs two models at once, each with batches of its own shapes", async () => {
    const asked = Array.from({ length: 24 }, (_, i) => i);
    const answers = await Promise.all(
      asked.map(async (i) => {
        const row = Array.from({ length: 1 + (i % 3) }, (_, at) => i + at);
        const { Square } = await triton.infer("squares", { x: [row] });
        const { AddV2 } = await triton.infer("types", { ...given, counts: [row, row] });
        return [[...Square!.data], [...AddV2!.data], row];
      }),
    );
    for (const [squares, sums, row] of answers) {
      expect(squares).toEqual(row!.map((x) => Number(x) ** 2));
      expect(sums).toEqual([...row!, ...row!].map((x) => 2 * Number(x)));
    }
  });
});
