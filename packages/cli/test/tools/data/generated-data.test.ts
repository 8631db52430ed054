import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TensorPayload, TestedModel } from "../../../src/data/data-set.js";
import { loadDataSet } from "../../../src/data/load-data-set.js";

const model: TestedModel = {
  name: "m",
  version: "",
  maxBatchSize: 4,
  decoupled: false,
  isSequenceModel: false,
  inputs: [
    { name: "x", datatype: "FP32", dims: [2], optional: false, isShapeTensor: false },
    { name: "s", datatype: "BYTES", dims: [2], optional: false, isShapeTensor: false },
    { name: "other", datatype: "INT64", dims: [1], optional: true, isShapeTensor: false },
  ],
  outputs: [{ name: "y", datatype: "FP32" }],
  composingModels: [],
};

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
