import { once } from "node:events";
import { mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chainConfig, identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";

const good = { "good/config.pbtxt": identityConfig(), "good/1/": "" };

/** A decoupled model, and an ensemble of it with a response cache. */
const repeatedTensors = `input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] }, { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]`;
const repeater = {
  "r/config.pbtxt": `backend: "repeat" ${repeatedTensors} model_transaction_policy { decoupled: true }`,
  "r/1/": "",
};
const mapOf = (kind: string, names: readonly string[]) =>
  names.map((name) => `${kind} { key: "${name}" value: "${name}" }`).join(" ");
const cachedEnsemble = `platform: "ensemble" ${repeatedTensors} response_cache { enable: true }
ensemble_scheduling { step [ { model_name: "r" model_version: -1
  ${mapOf("input_map", ["IN", "DELAY", "WAIT"])} ${mapOf("output_map", ["OUT", "IDX"])} } ] }`;

const CONFIG = "config.pbtxt";
/** More than 64 MiB, all of them zeros, which take no place on the disk. */
const HUGE = Symbol();

/** Files of a broken model, and the reason in the index. */
const broken: Readonly<Record<string, readonly [Record<string, string | typeof HUGE>, RegExp]>> = {
  nothing: [{ "1/": "" }, /Could not determine backend for model 'nothing'/],
  renamed: [{ [CONFIG]: identityConfig('name: "x"') }, /unexpected directory name 'renamed' for model 'x'/],
  dims: [
    { [CONFIG]: identityConfig().replaceAll("[ -1 ]", "[ -2 ]") },
    /dimension must be integer >= 1, or -1/,
  ],
  version_0: [{ [CONFIG]: identityConfig(), "0/": "" }, /at least one version must be available/],
  version_01: [{ [CONFIG]: identityConfig(), "01/": "" }, /at least one version must be available/],
  "version_-1": [{ [CONFIG]: identityConfig(), "-1/": "" }, /at least one version must be available/],
  empty_version: [{ [CONFIG]: 'platform: "onnxruntime_onnx"' }, /failed to stat file .*model.onnx/],
  corrupt: [{ "1/model.onnx": "this is no model" }, /cannot read the ONNX model '.*': it is a text file/],
  directory: [{ [`${CONFIG}/`]: "" }, /Is a directory/],
  invalid: [{ [CONFIG]: "oops" }, /has no field named "oops"/],
  huge: [{ [CONFIG]: HUGE }, /config.pbtxt: expected at most 67108864 bytes, got 68157440/],
  deep: [{ [CONFIG]: "input { ".repeat(20_000) }, /Error parsing text-format/],
  unknown: [{ [CONFIG]: 'backend: "nosuch"' }, /unable to find backend library for backend 'nosuch'/],
  tensorrt: [
    { [CONFIG]: 'platform: "tensorrt_plan"', "1/model.plan": "" },
    /put the ONNX file that it was built from \(trtexec --onnx=<file>\) into the version directory/,
  ],
  circle: [
    { [CONFIG]: chainConfig("circle") },
    /circular dependency between ensembles: circle -> \.\.\. -> circle -> circle/,
  ],
  ghost: [{ [CONFIG]: chainConfig("missing") }, /not available or ambiguous: missing/],
  cached: [
    { [CONFIG]: cachedEnsemble },
    /Response Cache does not currently support model cached with 'decoupled' transaction policy/,
  ],
  decoupled: [
    {
      [CONFIG]: `${chainConfig("good")} response_cache { enable: true } model_transaction_policy { decoupled: true }`,
    },
    /Response Cache does not currently support model decoupled with 'decoupled' transaction policy/,
  ],
  labels: [
    {
      [CONFIG]: identityConfig().replace(
        'name: "OUTPUT0"',
        'name: "OUTPUT0" label_filename: "../../etc/passwd"',
      ),
    },
    /expected a path inside the model's directory, got '..\/..\/etc\/passwd'/,
  ],
};

describe("models that cannot be served", () => {
  it("are reported in the index and the log, and the others serve", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, ...repeater });
    for (const [name, [files]] of Object.entries(broken)) {
      const version = Object.keys(files).some((file) => file.endsWith("/") && file !== `${CONFIG}/`);
      for (const [file, text] of Object.entries(version ? files : { "1/": "", ...files })) {
        await models.write({ [`${name}/${file}`]: text === HUGE ? "" : text });
        if (text === HUGE) await truncate(join(models.path, name, file), 65 * 1024 * 1024);
      }
    }
    const log: string[] = [];
    await using triton = serverOf(models.path, log);
    await triton.ready();
    const index = await serviceOf(triton).repositoryIndex(false);
    for (const [name, [, reason]] of Object.entries(broken)) {
      expect(index.filter((row) => row.name === name)).toEqual([
        expect.objectContaining({ state: "UNAVAILABLE", reason: expect.stringMatching(reason) }),
      ]);
      expect(log.filter((line) => line.includes(name)).join("\n")).toMatch(reason);
    }
    expect([...(await triton.infer("good", { INPUT0: [[1]] })).OUTPUT0!.data]).toEqual([1]);
  });

  it("keep serve() from opening unless errors are allowed, and are named", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, "m/config.pbtxt": "oops", "m/1/": "" });
    await using triton = new Triton({
      logger: quiet([]),
      extensions: [repository({ modelRepository: models.path })],
    });
    await expect(triton.serve({ frontends: [] })).rejects.toThrow(/failed to load all models\nm: .*oops/);
  });
});

describe("a repository", () => {
  it("leaves a server that is never ready when it does not exist", async () => {
    await using triton = serverOf("/there/is/nothing/here", []);
    await triton.serve({ frontends: [] });
    expect([serviceOf(triton).isLive(), serviceOf(triton).isReady()]).toEqual([false, false]);
    await expect(serviceOf(triton).repositoryIndex(false)).rejects.toThrow("Server not ready");
  });

  it("shares no model name with another repository", async () => {
    await using one = await RepositoryOnDisk.create({
      ...good,
      "m/config.pbtxt": identityConfig(),
      "m/1/": "",
    });
    await using two = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
    await using triton = serverOf([one.path, two.path], []);
    await triton.ready();
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "good", version: "1", state: "READY" },
      { name: "m", state: "UNAVAILABLE", reason: "model appears in two or more repositories" },
    ]);
  });
});

describe("a symbolic link inside the repository", () => {
  const config = identityConfig().replace('"identity"', '"javascript"');

  it("leads to a file, a version, a configuration or a whole model of another one", async () => {
    await using models = await RepositoryOnDisk.create({
      ...good,
      "a/config.pbtxt": config,
      "a/1/model.mjs":
        "export default (requests) => requests.map(({ inputs }) => ({ OUTPUT0: inputs.INPUT0 }));",
      "file/config.pbtxt": config,
      "file/1/": "",
      "version/config.pbtxt": identityConfig(),
      "configuration/1/": "",
    });
    for (const [target, link] of [
      ["a/1/model.mjs", "file/1/model.mjs"],
      ["good/1", "version/1"],
      ["good/config.pbtxt", "configuration/config.pbtxt"],
      ["good", "model"],
    ] as const) {
      await symlink(join(models.path, target), join(models.path, link));
    }
    const log: string[] = [];
    await using triton = serverOf(models.path, log);
    await triton.ready();
    expect(log.join("\n")).not.toContain("link");
    for (const name of ["file", "version", "configuration", "model"])
      expect([...(await triton.infer(name, { INPUT0: [[3]] })).OUTPUT0!.data]).toEqual([3]);
  });

  it("that loops is a missing file", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, "m/config.pbtxt": config, "m/1/": "" });
    await symlink("model.mjs", join(models.path, "m/1/model.mjs"));
    expect(await reasonFor(models)).toMatch(/unable to find|model.mjs/);
  });
});

describe("files outside of the repository", () => {
  let outside: RepositoryOnDisk;
  beforeEach(async () => {
    outside = await RepositoryOnDisk.create({
      "m/config.pbtxt": identityConfig(),
      "m/1/": "",
      "weights.bin": "secret",
    });
  });
  afterEach(() => outside[Symbol.asyncDispose]());

  it("are not reached through a symbolic link for a model", async () => {
    await using models = await RepositoryOnDisk.create(good);
    await symlink(join(outside.path, "m"), join(models.path, "m"));
    expect(await reasonFor(models)).toMatch(/leads out of .* through a symbolic link/);
  });

  it("are not reached through a symbolic link for a version or a configuration", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, "m/config.pbtxt": identityConfig() });
    await symlink(join(outside.path, "m", "1"), join(models.path, "m", "1"));
    expect(await reasonFor(models)).toMatch(/leads out of .* through a symbolic link/);
    await using others = await RepositoryOnDisk.create({ ...good, "m/1/": "" });
    await symlink(join(outside.path, "m", "config.pbtxt"), join(others.path, "m", "config.pbtxt"));
    expect(await reasonFor(others)).toMatch(/leads out of .* through a symbolic link/);
  });

  it("are not reached by the external data of an ONNX model", async () => {
    for (const location of ["../../../weights.bin", join(outside.path, "weights.bin")]) {
      await using models = await RepositoryOnDisk.create({
        ...good,
        "m/1/model.onnx": withExternalData(location),
      });
      expect(await reasonFor(models)).toMatch(
        /external data of the ONNX model '.*': expected a path inside the model's directory, got '.*'/,
      );
    }
    await using linked = await RepositoryOnDisk.create({
      ...good,
      "m/1/model.onnx": withExternalData("w.bin"),
    });
    await symlink(join(outside.path, "weights.bin"), join(linked.path, "m/1/w.bin"));
    expect(await reasonFor(linked)).toMatch(/leads out of .* through a symbolic link/);
  });

  it("are not written by a load with files", async () => {
    await using models = await RepositoryOnDisk.create(good);
    await using triton = new Triton({
      logger: quiet([]),
      extensions: [repository({ modelRepository: models.path, modelControlMode: "explicit" })],
    });
    const files = new Map([["../escape.txt", new Uint8Array()]]);
    const load = triton.loadModel("good", { config: "{}", files });
    await expect(load).rejects.toMatchObject({
      message: "failed to load 'good', failed to poll from model repository",
      cause: { message: expect.stringContaining("must stay within model directory") },
    });
  });
});

it("special files are never read and never waited for", async () => {
  const files: Record<string, string> = {};
  for (const name of ["config", "labels", "warmup", "onnx"]) {
    files[`${name}/1/`] = "";
    if (name === "onnx") files[`${name}/config.pbtxt`] = 'platform: "onnxruntime_onnx"';
    else if (name !== "config") files[`${name}/config.pbtxt`] = identityConfig();
  }
  files["labels/config.pbtxt"] = identityConfig().replace(
    'name: "OUTPUT0"',
    'name: "OUTPUT0" label_filename: "s"',
  );
  files["warmup/config.pbtxt"] = identityConfig(`model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0"
    value { data_type: TYPE_FP32 dims: 1 input_data_file: "s" } } }`);
  files["warmup/warmup/"] = "";
  await using models = await RepositoryOnDisk.create({ ...good, ...files });
  const places = ["config/config.pbtxt", "labels/s", "warmup/warmup/s", "onnx/1/model.onnx"];
  const sockets = places.map((place) => createServer().listen(join(models.path, place)));
  await Promise.all(sockets.map((socket) => once(socket, "listening")));
  await using triton = serverOf(models.path, []);
  await triton.ready();
  const reasons = (await serviceOf(triton).repositoryIndex(false)).map(({ name, reason }) => [name, reason]);
  for (const socket of sockets) socket.close();
  expect(reasons).toEqual([
    ["config", expect.stringContaining("config.pbtxt: No such device or address")],
    ["good", undefined],
    ["labels", expect.stringContaining("s: No such device or address")],
    ["onnx", expect.stringMatching(/cannot read .*model\.onnx: it is not a regular file/)],
    ["warmup", expect.stringContaining("s: No such device or address")],
  ]);
});

it("an unreadable file is reported as the reason", async () => {
  await using models = await RepositoryOnDisk.create({ ...good, "m/1/": "" });
  const loop = join(models.path, "m", "config.pbtxt");
  await symlink(loop, loop);
  await mkdir(join(models.path, "x"));
  await writeFile(join(models.path, "x", "1"), "no directory");
  await using triton = serverOf(models.path, []);
  await triton.ready();
  const reasons = (await serviceOf(triton).repositoryIndex(false)).map(({ name, reason }) => [name, reason]);
  expect(reasons).toEqual([
    ["good", undefined],
    ["m", expect.any(String)],
    ["x", expect.any(String)],
  ]);
});

async function reasonFor(models: RepositoryOnDisk): Promise<string> {
  await using triton = serverOf(models.path, []);
  await triton.ready();
  expect(serviceOf(triton).isModelReady("good", "")).toBe(true);
  return (await serviceOf(triton).repositoryIndex(false)).find(({ name }) => name === "m")?.reason ?? "";
}

function serverOf(modelRepository: string | string[], log: string[]): Triton {
  return new Triton({
    logger: quiet(log),
    extensions: [repository({ modelRepository, exitOnError: false })],
  });
}

function quiet(log: string[]) {
  const keep = (message: string) => void log.push(message);
  return { error: keep, warn: keep, info() {}, debug() {} };
}

/** An ONNX file whose only tensor is in another file; the rest of it is invalid. */
function withExternalData(location: string): Uint8Array {
  const entry = message(1, text("location")).concat(message(2, text(location)));
  const tensor = message(8, text("w")).concat(message(13, entry));
  return Uint8Array.from(message(7, message(5, tensor)));
}

function text(value: string): number[] {
  return [...new TextEncoder().encode(value)];
}

function message(field: number, bytes: readonly number[]): number[] {
  const length: number[] = [];
  for (let left = bytes.length; ; left = Math.floor(left / 128)) {
    length.push(left < 128 ? left : (left % 128) + 128);
    if (left < 128) break;
  }
  return [field * 8 + 2, ...length, ...bytes];
}

describe("start up errors", () => {
  /** A logger that keeps its error lines. */
  function errorLines() {
    const lines: string[] = [];
    return { lines, logger: { error: (line: string) => lines.push(line), warn() {}, info() {}, debug() {} } };
  }

  const broken = identityConfig().replace(/(output .*)TYPE_FP32/, "$1TYPE_INT32");

  it("a server that ignores load errors logs that not all models are loaded, after the reasons", async () => {
    await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
    const { lines, logger } = errorLines();
    await using triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: models.path, exitOnError: false })],
    });
    await triton.ready();
    expect(lines).toEqual([
      expect.stringContaining("failed to load 'x' version 1: "),
      "Internal: failed to load all models",
    ]);
  });

  it("a failed load that rejects ready() does not log that line", async () => {
    await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
    const { lines, logger } = errorLines();
    await using triton = new Triton({ logger, extensions: [repository({ modelRepository: models.path })] });
    await expect(triton.ready()).rejects.toThrow("failed to load all models");
    expect(lines).toEqual([expect.stringContaining("failed to load 'x' version 1: ")]);
  });

  it("a server that ignores load errors logs that its repository is missing", async () => {
    const { lines, logger } = errorLines();
    await using triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: "/nonexistent/repo", exitOnError: false })],
    });
    await triton.ready();
    expect(lines).toEqual(["Internal: failed to stat file /nonexistent/repo"]);
    expect(serviceOf(triton).isReady()).toBe(false);
  });

  it("an empty repository path does not mean the current directory", async () => {
    const { logger } = errorLines();
    await using triton = new Triton({ logger, extensions: [repository({ modelRepository: "" })] });
    await expect(triton.ready()).rejects.toThrow(/^failed to stat file $/);
  });
});
