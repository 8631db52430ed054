import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batch, Tensor, Triton } from "@tritonjs/core";
import {
  assertTensorSnapshot,
  assertTensors,
  outputsDifference,
  type TensorMatchers,
  tensorMatchers,
} from "@tritonjs/core/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

expect.extend(tensorMatchers);

declare module "vitest" {
  interface Matchers<T> extends TensorMatchers<T> {}
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tensor-assertions-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function result() {
  await using triton = new Triton();
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [
      { name: "y", dtype: "FP32", shape: [2, 2] },
      { name: "ids", dtype: "INT64", shape: [1] },
      { name: "half", dtype: "FP16", shape: [2] },
      { name: "word", dtype: "BYTES", shape: [1] },
    ],
    inferFunc: batch(() => ({
      y: [
        [
          [1, 2],
          [NaN, -0],
        ],
      ],
      ids: [[2n ** 60n]],
      half: [[0.5, Infinity]],
      word: [["hé"]],
    })),
  });
  return await model.inferSample({ x: [1, 2] });
}

it("matchers compare results within a tolerance, and say where they differ", async () => {
  const outputs = await result();
  const expected = {
    y: [
      [1, 2],
      [NaN, 0],
    ],
    ids: [2n ** 60n],
    half: [0.5, Infinity],
    word: ["hé"],
  };
  expect(outputs).toMatchTensors(expected);
  expect(outputs).toMatchTensors(
    {
      ...expected,
      y: [
        [1, 2.001],
        [NaN, 0],
      ],
    },
    { absolute: 0.01 },
  );
  expect(outputs).not.toMatchTensors({ ...expected, ids: [2n ** 60n + 1n] });
  expect(outputs.y).toMatchTensor(new Float32Array([1, 2, NaN, 0]));
  const wrong = {
    y: [
      [1, 2.5],
      [3, 0],
    ],
    ids: [1n],
    half: [0.5],
    word: ["he"],
    more: [1],
  };
  expect(outputsDifference(outputs, wrong)).toBe(
    [
      "'y': at [0, 1] expected 2.5, got 2; 2 of 4 elements differ, by at most Infinity",
      "'ids': at [0] expected 1, got 1152921504606846976",
      "'half': expected shape [1], got [2]",
      "'word': at [0] expected 'he', got 'hé'",
      "'more': missing",
    ].join("\n"),
  );
  expect(() => assertTensors(outputs, wrong)).toThrow(/the tensors differ:\n'y': at \[0, 1\]/);
  expect(
    outputsDifference({ a: Tensor.fromElements("FP32", [1], Float32Array.of(1)), b: outputs.y }, {}),
  ).toBe("'a': not expected\n'b': not expected");
});

it("a snapshot is written once, compared within a tolerance, and written anew when told", async () => {
  vi.stubEnv("CI", "");
  vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "");
  const outputs = await result();
  const file = pathToFileURL(join(folder, "snapshots/m.json"));
  await assertTensorSnapshot(outputs, file);
  await assertTensorSnapshot(outputs, file);
  await expect(outputs).toMatchTensorSnapshot(file);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace('"1152921504606846976"', '"7"'));
  await expect(assertTensorSnapshot(outputs, file)).rejects.toThrow(/m\.json:\n'ids': at \[0\] expected 7/);
  vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "1");
  await assertTensorSnapshot(outputs, file);
  expect(await readFile(file, "utf8")).toBe(text);
  vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "");
  await writeFile(file, "{");
  await expect(assertTensorSnapshot(outputs, file)).rejects.toThrow(/cannot read the snapshot .*m\.json/);
  vi.stubEnv("CI", "true");
  await expect(assertTensorSnapshot(outputs, join(folder, "other.json"))).rejects.toThrow("does not exist");
});

it("a long tensor and bytes that are not text survive a snapshot", async () => {
  const outputs = {
    long: Tensor.fromElements(
      "FP64",
      [2_000],
      Float64Array.from({ length: 2_000 }, (_, i) => Math.sin(i)),
    ),
    bytes: Tensor.fromElements("BYTES", [2], [Uint8Array.of(0xff, 0), new Uint8Array()]),
    flags: Tensor.fromElements("BOOL", [2], Uint8Array.of(1, 0)),
  };
  const file = join(folder, "long.json");
  await assertTensorSnapshot(outputs, file, { update: true });
  await assertTensorSnapshot(outputs, file, { update: false });
});
