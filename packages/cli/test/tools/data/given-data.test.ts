import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { TestedModel } from "../../../src/data/data-set.js";
import { loadDataSet } from "../../../src/data/load-data-set.js";

const folder = mkdtempSync(join(tmpdir(), "tritonjs-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

const model: TestedModel = {
  name: "m",
  version: "",
  maxBatchSize: 4,
  decoupled: false,
  isSequenceModel: false,
  inputs: [
    { name: "a", datatype: "FP32", dims: [2], optional: false, isShapeTensor: false },
    { name: "b", datatype: "INT64", dims: [-1], optional: true, isShapeTensor: false },
  ],
  outputs: [{ name: "y", datatype: "FP32" }],
  composingModels: [],
};

let files = 0;
function file(text: string): string {
  const path = join(folder, `${files++}.json`);
  writeFileSync(path, text);
  return path;
}

const load = (text: string, options = {}) => loadDataSet(model, { inputData: [file(text)], ...options });

describe("a file of input data", () => {
  it("may have NaN, Infinity, long integers, base64 and shapes", async () => {
    const { payloads } = await load(`{"data": [
      {"a": [NaN, -Infinity], "b": {"content": [9007199254740993], "shape": [1]}},
      {"a": {"b64": "AACAPwAAAEA="}, "b": [1, 2, 3]}
    ]}`);
    const values = payloads.map(({ inputs }) =>
      inputs.map(({ datatype, bytes }) =>
        datatype === "FP32"
          ? [...new Float32Array(Uint8Array.from(bytes).buffer)]
          : [...new BigInt64Array(Uint8Array.from(bytes).buffer)],
      ),
    );
    expect(values).toEqual([
      [[Number.NaN, Number.NEGATIVE_INFINITY], [9007199254740993n]],
      [
        [1, 2],
        [1n, 2n, 3n],
      ],
    ]);
    expect(payloads[1]!.inputs[1]!.shape).toEqual([1, 3]);
  });

  it("fills batches with its entries in turn", async () => {
    const entries = [1, 2, 3].map((value) => ({ a: [value, 0] }));
    const { payloads } = await load(JSON.stringify({ data: entries }), { batchSize: 2 });
    const firsts = payloads.map(({ inputs: [a] }) => {
      const floats = new Float32Array(Uint8Array.from(a!.bytes).buffer);
      return [floats[0], floats[2]];
    });
    expect(firsts).toEqual([
      [1, 2],
      [3, 1],
      [2, 3],
    ]);
  });

  it.each([
    ['{"data": [{"a": [1]}]}', "data[0]: input 'a': expected 8 bytes for FP32 of shape [2], got 4"],
    ['{"data": [{"b": [1]}]}', "data[0]: expected data for input 'a' of model 'm', got none"],
    ['{"data": [{"a": [1, 2], "c": [1]}]}', "data[0]: expected inputs of model 'm' ('a', 'b'), got 'c'"],
    ['{"data": [{"a": [1, "x"]}]}', "data[0]: input 'a'"],
    [
      '{"data": [{"a": {"content": [1], "shape": [1]}}]}',
      "input 'a': expected a shape that matches [2], got [1]",
    ],
    ['{"data": [{"a": {"b64": "***"}}]}', 'input \'a\': "b64": expected base64 text, got "***"'],
    [
      '{"data": [[{"a": [1, 2]}], {"a": [1, 2]}]}',
      "expected entries that are all objects, or all lists of objects",
    ],
    [
      '{"data": [{"a": [1, 2]}], "validation_data": []}',
      "validation_data: expected the streams and entries of data",
    ],
    ['{"data": []}', "--input-data: expected entries, got none"],
    ["[1]", 'expected an object with a list "data", got [1]'],
    ["{", "expected JSON: "],
  ])("names what is wrong in %s", async (text, expected) => {
    await expect(load(text)).rejects.toThrow(expected);
  });

  it("needs shapes for generated data of variable inputs, and batches that the model takes", async () => {
    const open = { ...model, inputs: [{ ...model.inputs[1]!, optional: false }] };
    await expect(loadDataSet(open)).rejects.toThrow(
      "input 'b' of model 'm' has the variable shape [-1]: expected its shape, as in --shape b:1",
    );
    await expect(loadDataSet(model, { batchSize: 5 })).rejects.toThrow(
      "expected at most 4, the maximum of model 'm'",
    );
    await expect(loadDataSet(model, { shapes: { z: [1] } })).rejects.toThrow(
      "--shape: expected an input of model 'm'",
    );
  });
});
