import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const config = (name: string) => `
  name: "${name}" backend: "javascript" max_batch_size: 8
  input { name: "x" data_type: TYPE_FP32 dims: 2 }
  output { name: "y" data_type: TYPE_FP32 dims: 2 }`;

/** A module with a plain callback. */
const model = (compute: string) => `export default (requests) => requests.map(({ inputs }) => {
  const { data } = inputs.x;
  return { y: ${compute} };
});`;

const quick = ["--runs", "20", "--samples", "2", "--skip", "memory,instances,extremes"];

describe("check command", () => {
  it("checks the models of a repository and prints a report of each", async () => {
    await using folder = await TemporaryFolder.create({
      "broken/config.pbtxt": "no config",
      "double/config.pbtxt": config("double"),
      "double/1/model.js": model("data.map((value) => 2 * value)"),
      "random/config.pbtxt": config("random"),
      "random/1/model.js": model("data.map(() => Math.random())"),
    });
    const terminal = new TestTerminal();
    expect(await run(["check", folder.path, ...quick], terminal)).toBe(1);
    expect(terminal.output).toMatch(/^double: \d passed, 0 failed, \d skipped\n {2}ok {4}repeatability$/m);
    expect(terminal.output).toMatch(
      /^random: \d passed, \d failed, \d skipped\n {2}FAIL {2}repeatability {2}sample 0 answered again: output 'y': /m,
    );
    expect(terminal.errors).toContain("broken: cannot be checked: ");
    const one = new TestTerminal();
    expect([await run(["check", join(folder.path, "double"), ...quick, "--json"], one), one.errors]).toEqual([
      0,
      "",
    ]);
    expect(JSON.parse(one.output)).toMatchObject([{ model: "double", ok: true }]);
  });

  it("checks a model file, with inputs that a module makes", async () => {
    await using folder = await TemporaryFolder.create({
      "classifier.onnx": sampleModel(),
      "inputs.mjs": "export default (index, random) => ({ features: [index, random(), 2, 3] });",
      "none.mjs": "export const inputs = 1;",
      "other.txt": "text",
    });
    const at = (name: string) => join(folder.path, name);
    const terminal = new TestTerminal();
    const args = ["check", at("classifier.onnx"), "--inputs", at("inputs.mjs"), "--runs", "20"];
    expect([await run(args, terminal), terminal.errors]).toEqual([0, ""]);
    expect(terminal.output).toMatch(/^classifier: 10 passed, 0 failed, 0 skipped$/m);
    for (const [more, text] of [
      [["check", at("classifier.onnx"), "--inputs", at("none.mjs")], "--inputs: expected a function"],
      [
        ["check", at("classifier.onnx"), "--runs", "many"],
        "--runs: expected a number of at least 0, got 'many'",
      ],
      [
        ["check", at("other.txt")],
        "expected a model repository, a model in one, or a model file, got another file",
      ],
      [["check", at("gone")], "got a path that does not exist"],
      [["check", at("classifier.onnx"), "--skip", "all"], "skip: expected repeatability, batch"],
    ] as const) {
      const other = new TestTerminal();
      expect(await run(more, other)).toBe(1);
      expect(other.errors).toContain(text);
    }
  });
});

describe("init command", () => {
  it("init writes a repository that passes the check and serves at once", async () => {
    await using folder = await TemporaryFolder.create();
    const repository = join(folder.path, "models");
    expect(await run(["init", repository], new TestTerminal())).toBe(0);
    const checked = new TestTerminal();
    expect(await run(["config", "check", repository], checked)).toBe(0);
    expect(checked.output).toBe("1 model: 0 errors, 0 warnings\n");
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: repository })] });
    await triton.ready();
    const outputs = await triton.infer("classifier", { features: [[0, 0, 0, 0]] });
    expect(Array.from(outputs.probabilities!.data as Float32Array)).toEqual(
      Array(3).fill(Math.fround(1 / 3)),
    );
    expect(serviceOf(triton).model("classifier", "").labels.get("probabilities")).toEqual([
      "small",
      "medium",
      "large",
    ]);
  });

  it("init does not overwrite existing files", async () => {
    await using folder = await TemporaryFolder.create({ "classifier/config.pbtxt": "mine" });
    const terminal = new TestTerminal();
    expect(await run(["init", folder.path], terminal)).toBe(1);
    expect(await readFile(join(folder.path, "classifier/config.pbtxt"), "utf8")).toBe("mine");
    expect(terminal.errors).toBe(`${join(folder.path, "classifier/config.pbtxt")} exists: kept as it is\n`);
  });

  it("init refuses a template that it does not have", async () => {
    const terminal = new TestTerminal();
    expect(await run(["init", "--template", "website"], terminal)).toBe(1);
    expect(terminal.errors).toContain("Allowed choices are repository, app, service");
  });

  it("the package contains the sample model that its script makes", async () => {
    const script = fileURLToPath(new URL("../../scripts/generate-sample.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
    const source = fileURLToPath(new URL("../../src/commands/sample-model.ts", import.meta.url));
    expect(await readFile(source, "utf8")).toBe(stdout);
  });
});

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
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [withRepository({ modelRepository: models.path })],
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
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [withRepository({ modelRepository: other.path })],
    });
    await triton.ready();
    expect(serviceOf(triton).model("single", "").config.output[0]!.dims).toEqual([5]);
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
