import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { run } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

const TYPES = ["BOOL", "UINT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "STRING"];

/** A model with an output of each type, a variable dimension, a reshape, and a batch axis. */
const mixed = `name: "mixed"
platform: "onnxruntime_onnx"
max_batch_size: 4
input [ { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] }, { name: "text" data_type: TYPE_STRING dims: [ 1 ] reshape: { shape: [ 1, 1 ] } } ]
output [ ${TYPES.map((type) => `{ name: "out_${type}" data_type: TYPE_${type} dims: [ -1, 2 ] }`).join(", ")} ]`;
const single = `backend: "onnxruntime"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 5 ] } ]`;
const speech = `backend: "onnxruntime"
max_batch_size: 64
input [ { name: "speech" data_type: TYPE_FP32 dims: [ -1, 80 ] }, { name: "lengths" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } } ]
output [ { name: "out" data_type: TYPE_FP32 dims: [ -1, 256 ] }, { name: "lens" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } } ]`;
const ensemble = `platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 5 ] } ]
ensemble_scheduling { step [ { model_name: "single" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }`;

async function stub(...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(["stub", ...args], terminal);
  return { code, output: terminal.output, errors: terminal.errors };
}

describe("the command stub", () => {
  it("writes files that load and answer in the shapes of the configurations", async () => {
    await using models = await RepositoryOnDisk.create({
      "mixed/config.pbtxt": mixed,
      "single/config.pbtxt": single,
      "chain/config.pbtxt": ensemble,
      "speech/config.pbtxt": speech,
    });
    const { code, output, errors } = await stub(models.path);
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    expect(output.trim().split("\n")).toEqual([
      "chain is an ensemble: its steps have the files",
      `wrote ${join(models.path, "mixed/1/model.onnx")}`,
      `wrote ${join(models.path, "single/1/model.onnx")}`,
      `wrote ${join(models.path, "speech/1/model.onnx")}`,
    ]);
    await using triton = new Triton({
      modelRepository: models.path,
      logger: { error() {}, warn() {}, info() {}, debug() {} },
    });
    const answer = await triton.infer("mixed", {
      ids: [
        [7, 8, 9],
        [1, 2, 3],
      ],
      text: [["a"], ["b"]],
    });
    for (const type of TYPES) expect([type, answer[`out_${type}`]!.shape]).toEqual([type, [2, 3, 2]]);
    expect([...answer.out_FP32!.data]).toEqual(new Array(12).fill(0));
    expect(Buffer.from(answer.out_STRING!.data[0] as Uint8Array).toString()).toBe("");
    const frames = Array.from({ length: 2 }, () => new Array(80).fill(0.5));
    const { out, lens } = await triton.infer("speech", { speech: [frames, frames], lengths: [[2], [2]] });
    expect([out!.shape, lens!.shape]).toEqual([
      [2, 2, 256],
      [2, 1],
    ]);
    const { y } = await triton.infer("chain", {
      x: [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2, 3, 4],
      ],
    });
    expect(y!.shape).toEqual([5]);
  });

  it("keeps files that exist, and writes to another repository with --out", async () => {
    await using models = await RepositoryOnDisk.create({
      "single/config.pbtxt": single,
      "single/1/model.onnx": "weights",
    });
    await using other = await RepositoryOnDisk.create({});
    expect((await stub(join(models.path, "single"))).output).toContain("exists: kept as it is");
    expect(await readFile(join(models.path, "single/1/model.onnx"), "utf8")).toBe("weights");
    const { code } = await stub(join(models.path, "single/config.pbtxt"), "--out", other.path);
    expect(code).toBe(0);
    await using triton = new Triton({
      modelRepository: other.path,
      logger: { error() {}, warn() {}, info() {}, debug() {} },
    });
    await triton.ready();
    expect(triton.service.model("single", "").config.output[0]!.dims).toEqual([5]);
  });

  it.each([
    ["without dims", single.replace("dims: [ 5 ]", ""), "model 'm', output 'y': expected dims, got none"],
    [
      "without a data type",
      single.replace("data_type: TYPE_FP32 dims: [ 5 ]", "dims: [ 5 ]"),
      "model 'm', output 'y': expected data_type",
    ],
    ["without tensors", 'backend: "onnxruntime"', "model 'm': expected at least one input, got none"],
    ["with an output of BF16", single.replace("TYPE_FP32 dims: [ 5 ]", "TYPE_BF16 dims: [ 5 ]"), "got BF16"],
    ["that cannot be read", "oops", 'has no field named "oops"'],
  ])("refuses a configuration %s, and writes the others", async (_, config, reason) => {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": config,
      "single/config.pbtxt": single,
    });
    const { code, output, errors } = await stub(models.path);
    expect([code, errors]).toEqual([1, expect.stringContaining(reason)]);
    expect(output).toContain("single/1/model.onnx");
  });

  it("refuses a path without configurations", async () => {
    await using empty = await RepositoryOnDisk.create({});
    expect((await stub(empty.path)).errors).toContain(
      "expected a config.pbtxt, a directory of a model, or a repository",
    );
    expect((await stub(join(empty.path, "nothing"))).code).toBe(1);
  });
});
