import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TensorPayload, TestedModel } from "../../src/data/data-set.js";
import { loadDataSet, loadOpenAiData } from "../../src/data/load-data-set.js";

const tested = (inputs: TestedModel["inputs"]): TestedModel => ({
  name: "m",
  version: "",
  maxBatchSize: 4,
  decoupled: false,
  isSequenceModel: false,
  inputs,
  outputs: [{ name: "y", datatype: "FP32" }],
  composingModels: [],
});

const model = tested([
  { name: "x", datatype: "FP32", dims: [2], optional: false, isShapeTensor: false },
  { name: "s", datatype: "BYTES", dims: [2], optional: false, isShapeTensor: false },
  { name: "other", datatype: "INT64", dims: [1], optional: true, isShapeTensor: false },
]);

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-data-"));
});

afterAll(() => rm(folder, { recursive: true }));

const bytesOf = (payload: TensorPayload, name: string) =>
  Buffer.from(payload.inputs.find((input) => input.name === name)!.bytes);

function floatsOf(payload: TensorPayload): number[] {
  const bytes = bytesOf(payload, "x");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

function stringsOf(payload: TensorPayload): string[] {
  const bytes = bytesOf(payload, "s");
  const strings: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    strings.push(bytes.toString("utf8", at + 4, at + 4 + length));
    at += 4 + length;
  }
  return strings;
}

describe("generated data", () => {
  it("is zeros and empty strings with --input-data zero", async () => {
    const { payloads } = await loadDataSet(model, { inputData: "zero", batchSize: 3 });
    expect(payloads.length).toBe(1);
    expect(floatsOf(payloads[0]!)).toEqual(Array(6).fill(0));
    expect(stringsOf(payloads[0]!)).toEqual(Array(6).fill(""));
    expect(payloads[0]!.inputs.map(({ shape }) => shape)).toEqual([
      [3, 2],
      [3, 2],
    ]);
  });

  it("has the text of --string-data in all strings, also with zeros", async () => {
    for (const inputData of ["random", "zero"] as const) {
      const { payloads } = await loadDataSet(model, { inputData, stringData: "héllo" });
      for (const payload of payloads) expect(stringsOf(payload)).toEqual(["héllo", "héllo"]);
    }
  });

  it("has strings of --string-length characters of perf_analyzer's alphabet, 128 by default", async () => {
    for (const stringLength of [undefined, 1, 17]) {
      const { payloads } = await loadDataSet(model, { stringLength });
      for (const payload of payloads)
        for (const text of stringsOf(payload)) {
          expect(text.length).toBe(stringLength ?? 128);
          expect(text).toMatch(/^[A-Za-z0-9 .?!]*$/);
        }
    }
  });

  it("is the same for all requests with --same-data, and differs between the rows of a batch", async () => {
    const { payloads } = await loadDataSet(model, { freshData: false, batchSize: 2 });
    expect(payloads.length).toBe(1);
    expect(payloads[0]!.inputs.every(({ fresh }) => fresh === undefined)).toBe(true);
    const [a, b, c, d] = floatsOf(payloads[0]!);
    expect([a, b]).not.toEqual([c, d]);
    expect((await loadDataSet(model)).payloads.length).toBeGreaterThan(100);
  });

  it("is repeated by its seed, and differs with another one", async () => {
    const dataOf = async (seed: number) => (await loadDataSet(model, { seed })).payloads.map(floatsOf);
    expect(await dataOf(3)).toEqual(await dataOf(3));
    expect(await dataOf(3)).not.toEqual(await dataOf(4));
  });
});

describe("a directory of input data", () => {
  it("has a file for each input, optional ones aside, and may have files of outputs", async () => {
    await writeFile(join(folder, "x"), new Uint8Array(Float32Array.of(1.5, -2).buffer));
    await writeFile(join(folder, "s"), "first line\r\nzweite Zeile ß\n");
    await writeFile(join(folder, "y"), new Uint8Array([1, 2, 3, 4]));
    const { payloads, hasGivenSteps } = await loadDataSet(model, { inputData: [folder], batchSize: 2 });
    expect([payloads.length, hasGivenSteps]).toEqual([1, true]);
    expect(floatsOf(payloads[0]!)).toEqual([1.5, -2, 1.5, -2]);
    expect(stringsOf(payloads[0]!).slice(0, 2)).toEqual(["first line", "zweite Zeile ß"]);
    expect(payloads[0]!.expected).toMatchObject([{ name: "y", datatype: "FP32" }]);
  });

  it("names the file that is missing, or that has the wrong size", async () => {
    const empty = await mkdtemp(join(folder, "empty-"));
    await expect(loadDataSet(model, { inputData: [empty] })).rejects.toThrow(
      `${empty}: expected a file 'x' for the input of model 'm', got none`,
    );
    await writeFile(join(empty, "x"), "123");
    await expect(loadDataSet(model, { inputData: [empty] })).rejects.toThrow(
      `${join(empty, "x")}: expected 8 bytes for FP32 of shape [2], got 3`,
    );
    await expect(loadDataSet(model, { inputData: [empty, empty] })).rejects.toThrow(
      "--input-data: expected one directory",
    );
  });
});

describe("given data", () => {
  const model = tested([
    { name: "a", datatype: "FP32", dims: [2], optional: false, isShapeTensor: false },
    { name: "b", datatype: "INT64", dims: [-1], optional: true, isShapeTensor: false },
  ]);

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
});

describe("load openai data", () => {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-openai-data-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  let files = 0;

  function load(data: unknown) {
    const path = join(folder, `${files++}.json`);
    writeFileSync(path, JSON.stringify({ data }));
    return loadOpenAiData([path], { sessions: true });
  }

  const turn = (session_id: unknown, more = {}) => ({ payload: [{ messages: [] }], session_id, ...more });

  it("groups the turns of sessions, in the order of their first turns", async () => {
    const { sessions } = await load([
      turn(["b"], { delay: [20] }),
      turn(["a"]),
      turn(["b"], { delay: [1.5] }),
      turn("a"),
    ]);
    expect(sessions).toEqual([
      {
        id: "b",
        turns: [
          { payload: 0, delayMs: 20 },
          { payload: 2, delayMs: 1.5 },
        ],
      },
      {
        id: "a",
        turns: [
          { payload: 1, delayMs: 0 },
          { payload: 3, delayMs: 0 },
        ],
      },
    ]);
  });

  it.each([
    [turn(undefined), 'data[0]: "session_id": expected the name of a session in a list, got undefined'],
    [turn([7]), 'data[0]: "session_id": expected the name of a session in a list, got [7]'],
    [turn(["a"], { delay: [-1] }), 'data[0]: "delay": expected milliseconds in a list, got [-1]'],
  ])("refuses an entry with what was expected: %j", async (entry, text) => {
    await expect(load([entry])).rejects.toThrow(text);
  });
});
