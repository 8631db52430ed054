import { join } from "node:path";
import { readPrototxt } from "@tritonjs/repository/config";
import { describe, expect, it } from "vitest";
import { RepositoryInS3, S3_KEYS } from "../../../../test/support/repository-in-s3.js";
import { identityConfig } from "../../../../test/support/repository-on-disk.js";
import type { CheckReport } from "../../src/commands/config-command.js";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const identity = 'backend: "identity" max_batch_size: 4';

const x = 'input { name: "INPUT0" data_type: TYPE_FP32 dims: 4 }';

const y = 'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 }';

async function check(folder: TemporaryFolder, ...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(["config", "check", folder.path, ...args], terminal);
  return { code, text: terminal.output.replaceAll(folder.path, "<REPO>"), errors: terminal.errors };
}

async function findings(folder: TemporaryFolder, ...args: string[]) {
  const { text } = await check(folder, "--json", ...args);
  const report = JSON.parse(text) as CheckReport;
  return report.findings.map(({ model, severity, path, line, column, message, fix }) => ({
    model,
    severity,
    place: [path.replace("<REPO>/", ""), line, column].filter((part) => part !== undefined).join(":"),
    message,
    fix,
  }));
}

describe("config command check", () => {
  it("config check accepts a repository without faults and exits with 0", async () => {
    await using folder = await TemporaryFolder.create({
      "m/config.pbtxt": `${identity} ${x} ${y}`,
      "m/1/": "",
      "m/warmup/": "",
      "c/1/model.onnx": sampleModel(),
      "c/config.pbtxt": "max_batch_size: 8",
    });
    expect(await check(folder)).toEqual({ code: 0, text: "2 models: 0 errors, 0 warnings\n", errors: "" });
  });

  it("config check knows the parameters of extensions, for backends that refuse unknown ones too", async () => {
    const parameters = (texts: Record<string, string>) =>
      Object.entries(texts)
        .map(([key, text]) => `parameters { key: "${key}" value { string_value: "${text}" } }`)
        .join(" ");
    const asked = { deadlines: "true", deadline_level_ms: "1=50", load_on_demand: "true", rollout_to: "2" };
    await using folder = await TemporaryFolder.create({
      "wave/config.pbtxt": `backend: "audio" max_batch_size: 4 dynamic_batching { } ${parameters(asked)}`,
      "wave/1/": "",
      "m/config.pbtxt": `${identity} ${x} ${y} ${parameters({ deadlines: "perhaps" })}`,
      "m/1/": "",
    });
    expect(
      (await findings(folder)).map(({ model, severity, message }) => ({ model, severity, message })),
    ).toEqual([
      {
        model: "m",
        severity: "error",
        message: "parameter 'deadlines' of model 'm': expected true or false, got 'perhaps'",
      },
    ]);
  });

  it("config check names line and column of a syntax error", async () => {
    await using folder = await TemporaryFolder.create({
      "m/config.pbtxt": `${identity}\nmax_batch: 3\n`,
      "m/1/": "",
    });
    expect(await findings(folder)).toEqual([
      {
        model: "m",
        severity: "error",
        place: "m/config.pbtxt:2:10",
        message: 'Message type "inference.ModelConfig" has no field named "max_batch".',
        fix: "remove 'max_batch', or look up its name in docs/model-configuration.md",
      },
    ]);
  });

  it("config check reports all problems of all models at once, each with a fix, and exits with 1", async () => {
    await using folder = await TemporaryFolder.create({
      "sizes/config.pbtxt": `${identity} input { name: "INPUT0" data_type: TYPE_FP32 dims: 0 } output { name: "OUTPUT0" dims: 4 }`,
      "sizes/1/": "",
      "renamed/config.pbtxt": `name: "other" ${identity} ${x} ${y} dynamic_batching { preferred_batch_size: 9 }`,
      "renamed/1/": "",
      "agents/config.pbtxt": `${identity} ${x} ${y} instance_group { profile: "0" } optimization { eager_batching: true }`,
      "agents/1/": "",
      "nothing/1/": "",
      "versions/config.pbtxt": `${identity} ${x} ${y} version_policy { specific { versions: [ 2 ] } }`,
      "versions/01/": "",
      "plan/config.pbtxt": `platform: "tensorrt_plan" ${x} ${y}`,
      "plan/1/": "",
      "misnamed/config.prototxt": identity,
      "misnamed/1/model.onnx": sampleModel(),
    });
    const { code } = await check(folder);
    expect(code).toBe(1);
    const found = await findings(folder);
    const of = (model: string) => found.filter((finding) => finding.model === model);
    expect(of("sizes").map(({ message }) => message)).toEqual([
      "expected input and output datatype to match, got TYPE_FP32 and TYPE_INVALID",
      expect.stringContaining("dimension must be integer >= 1"),
      expect.stringContaining("must specify 'data_type'"),
    ]);
    expect(of("renamed").map(({ message }) => message)).toEqual([
      "dynamic batching preferred size must be <= max batch size for other",
      "unexpected directory name 'renamed' for model 'other', directory name must equal model name",
    ]);
    expect(of("agents")).toMatchObject([
      { severity: "error", message: expect.stringContaining("'instance_group.profile' chooses a profile") },
      {
        severity: "warning",
        message: expect.stringContaining("'optimization.eager_batching' has no effect"),
      },
      { severity: "error", message: expect.stringContaining("specifies profile field") },
    ]);
    expect(of("nothing")).toMatchObject([
      { message: expect.stringContaining("Could not determine backend") },
    ]);
    expect(of("versions").map(({ severity, fix }) => [severity, fix])).toEqual([
      ["warning", "rename it without the zeros"],
      ["warning", "create the directory '2', or remove that version from 'version_policy'"],
      ["error", "create a version directory '1' with the model's file, or change 'version_policy'"],
    ]);
    expect(of("plan")).toMatchObject([
      { message: expect.stringContaining("the ONNX file that it was built from") },
    ]);
    expect(of("misnamed")).toMatchObject([
      { severity: "warning", fix: "rename it to 'config.pbtxt'" },
      { severity: "warning", message: expect.stringContaining("autofilled max_batch_size to 4") },
    ]);
  });

  it("config check compares the configuration with the model file and checks that named files exist", async () => {
    await using folder = await TemporaryFolder.create({
      "wrong/1/model.onnx": sampleModel(),
      "wrong/config.pbtxt":
        'max_batch_size: 8 input { name: "features" data_type: TYPE_INT64 dims: 4 } output { name: "odds" data_type: TYPE_FP32 dims: 3 }',
      "missing/1/": "",
      "missing/config.pbtxt": 'backend: "onnxruntime"',
      "broken/1/model.onnx": "no model",
      "labels/1/": "",
      "labels/config.pbtxt": `${identity} ${x} output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 label_filename: "names.txt" }`,
      "warm/1/": "",
      "warm/config.pbtxt": `${identity} ${x} ${y} model_warmup { name: "s" batch_size: 1 inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: 4 input_data_file: "x.bin" } } }`,
    });
    const found = await findings(folder);
    expect(found.map(({ model, severity }) => `${model} ${severity}`)).toEqual([
      "broken error",
      "labels error",
      "missing error",
      "warm error",
      "wrong error",
      "wrong error",
    ]);
    const messages = found.map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining("failed to open text file for read"));
    expect(messages).toContainEqual(expect.stringMatching(/missing\/1\/model\.onnx/));
    expect(messages).toContainEqual(
      expect.stringContaining("warmup sample 's': cannot read the data of input 'INPUT0'"),
    );
    const fixes = found.filter(({ model }) => model === "wrong").map(({ fix }) => fix);
    expect(fixes).toEqual([
      expect.stringContaining("write 'data_type: TYPE_FP32' for 'features'"),
      "use one of the names in the file: probabilities",
    ]);
  });

  it("config check checks ensembles against their member models", async () => {
    const step = (model: string, version = -1) =>
      `platform: "ensemble" max_batch_size: 4 ${x} ${y} ensemble_scheduling { step { model_name: "${model}" model_version: ${version} ` +
      'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }';
    await using folder = await TemporaryFolder.create({
      "good/config.pbtxt": `${identity} ${x} ${y}`,
      "good/1/": "",
      "bad/config.pbtxt": "no config",
      "small/config.pbtxt": `backend: "identity" max_batch_size: 2 ${x} ${y}`,
      "small/1/": "",
      "e-good/config.pbtxt": step("good"),
      "e-good/1/": "",
      "e-absent/config.pbtxt": step("nobody"),
      "e-absent/1/": "",
      "e-bad/config.pbtxt": step("bad"),
      "e-bad/1/": "",
      "e-circle/config.pbtxt": step("e-circle"),
      "e-circle/1/": "",
      "e-small/config.pbtxt": step("small"),
      "e-small/1/": "",
      "e-version/config.pbtxt": step("good", 7),
      "e-version/1/": "",
    });
    const found = (await findings(folder)).filter(({ model }) => model.startsWith("e-"));
    expect(found.map(({ model, message }) => [model, message])).toEqual([
      ["e-absent", "ensemble e-absent contains models that are not available or ambiguous: nobody"],
      ["e-bad", "ensemble 'e-bad' depends on 'bad' which is not valid."],
      ["e-circle", expect.stringContaining("circular dependency between ensembles")],
      ["e-small", expect.stringContaining("which only allows maximum batch size to be 2")],
      ["e-version", "ensemble 'e-version' depends on 'good' whose required version 7 is not loaded."],
    ]);
  });

  it("config check reports models that exist in two repositories", async () => {
    await using folder = await TemporaryFolder.create({
      "m/config.pbtxt": `${identity} ${x} ${y}`,
      "m/1/": "",
    });
    await using other = await TemporaryFolder.create({
      "m/config.pbtxt": `${identity} ${x} ${y}`,
      "m/1/": "",
    });
    const { code, text } = await check(folder, other.path);
    expect(code).toBe(1);
    expect(text.match(/not unique across all model repositories/g)).toHaveLength(2);
  });

  it("config check loads the models when asked to", async () => {
    await using folder = await TemporaryFolder.create({
      "c/1/model.onnx": sampleModel(),
      "c/config.pbtxt":
        'backend: "onnxruntime" max_batch_size: 8 model_warmup { name: "bad" batch_size: 1 inputs { key: "nobody" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
    });
    expect((await check(folder)).code).toBe(0);
    const { code, text } = await check(folder, "--load");
    expect(text).toMatch(/c: error: version 1 cannot be loaded: .*nobody/);
    expect(code).toBe(1);
  });

  it("config check accepts one model as well as a repository, and fails when there is no model", async () => {
    await using folder = await TemporaryFolder.create({
      "m/config.pbtxt": `${identity} ${x} ${y}`,
      "m/1/": "",
    });
    const terminal = new TestTerminal();
    expect(await run(["config", "check", join(folder.path, "m")], terminal)).toBe(0);
    expect(terminal.output).toBe("1 model: 0 errors, 0 warnings\n");
    expect(await run(["config", "check", join(folder.path, "nowhere")], terminal)).toBe(1);
    expect(terminal.errors).toBe(`error: Internal: failed to stat file ${join(folder.path, "nowhere")}\n`);
  });
});

Object.assign(process.env, S3_KEYS);

async function command(...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(args, terminal);
  return { code, text: terminal.output, errors: terminal.errors };
}

describe("config command cloud", () => {
  it("config check finds problems in a bucket and names them by their paths in the bucket", async () => {
    await using bucket = await RepositoryInS3.create({
      "good/config.pbtxt": identityConfig(),
      "good/1/": "",
      "bad/config.pbtxt": `${identityConfig()}\nmax_batch: 3\n`,
      "bad/01/": "",
    });
    const { path } = bucket;
    const { code, text } = await command("config", "check", path, "--load");
    expect(code).toBe(1);
    expect(text).toContain(`${path}/bad/config.pbtxt:6:10: error: Message type`);
    expect(text).toContain(`${path}/bad: warning: ignore version directory '01'`);
    expect(text).toContain("2 models: 1 error, 1 warning");
  });

  it("config show and types read models from a bucket", async () => {
    await using bucket = await RepositoryInS3.create({
      "m/config.pbtxt": identityConfig(),
      "m/1/": "",
      "other/config.pbtxt": "broken",
    });
    const shown = await command("config", "show", `${bucket.path}/m/`);
    expect(shown.code).toBe(0);
    expect(shown.text).toContain('name: "m"');
    expect(bucket.downloads).toEqual(["m/config.pbtxt"]);
    const types = await command("types", bucket.path);
    expect(types.text).toContain('"m": {');
    expect(types.errors).toContain(`${bucket.path}/other/config.pbtxt`);
  });

  it("config check ends with the reason when the bucket cannot be reached", async () => {
    const bucket = await RepositoryInS3.create({});
    await bucket[Symbol.asyncDispose]();
    const { code, errors } = await command("config", "check", bucket.path);
    expect(code).not.toBe(0);
    expect(errors).toMatch(/Could not list contents of directory at s3:.*ECONNREFUSED/);
  });
});

describe("config command show", () => {
  it("config show prints the completed configuration as config.pbtxt or as JSON", async () => {
    await using folder = await TemporaryFolder.create({ "c/1/model.onnx": sampleModel() });
    const text = new TestTerminal();
    expect(await run(["config", "show", join(folder.path, "c")], text)).toBe(0);
    expect(readPrototxt(text.output)).toMatchObject({
      name: "c",
      backend: "onnxruntime",
      maxBatchSize: 4,
      input: [{ name: "features", dataType: "TYPE_FP32", dims: [4] }],
    });
    const json = new TestTerminal();
    expect(await run(["config", "show", "--json", join(folder.path, "c")], json)).toBe(0);
    expect(JSON.parse(json.output)).toMatchObject({ name: "c", max_batch_size: 4 });
  });

  it("config show fails with the reason when there is no configuration", async () => {
    await using folder = await TemporaryFolder.create({ "c/1/": "" });
    const terminal = new TestTerminal();
    expect(await run(["config", "show", join(folder.path, "c")], terminal)).toBe(1);
    expect(terminal.output).toBe("");
    expect(terminal.errors).toContain("Could not determine backend for model 'c'");
    expect(await run(["config", "show", join(folder.path, "d")], terminal)).toBe(1);
    expect(terminal.errors).toContain("cannot find the model directory");
  });
});
