import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  chainConfig,
  identityConfig,
  RepositoryOnDisk,
} from "../../../../test/support/repository-on-disk.js";

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

/** Broken models, each with the reason in the index. */
const broken: readonly (readonly [
  what: string,
  files: Record<string, string | Uint8Array>,
  reason: RegExp,
])[] = [
  ["without a configuration or a model file", { "m/1/": "" }, /Could not determine backend for model 'm'/],
  [
    "with another name",
    { "m/config.pbtxt": identityConfig('name: "x"'), "m/1/": "" },
    /unexpected directory name 'm' for model 'x'/,
  ],
  [
    "with impossible dims",
    { "m/config.pbtxt": identityConfig().replaceAll("[ -1 ]", "[ -2 ]"), "m/1/": "" },
    /dimension must be integer >= 1, or -1/,
  ],
  [
    "with only version 0",
    { "m/config.pbtxt": identityConfig(), "m/0/": "" },
    /at least one version must be available/,
  ],
  [
    "with only version 01",
    { "m/config.pbtxt": identityConfig(), "m/01/": "" },
    /at least one version must be available/,
  ],
  [
    "with only version -1",
    { "m/config.pbtxt": identityConfig(), "m/-1/": "" },
    /at least one version must be available/,
  ],
  [
    "with an empty version",
    { "m/config.pbtxt": 'platform: "onnxruntime_onnx"', "m/1/": "" },
    /failed to stat file .*model.onnx/,
  ],
  [
    "with a corrupt file",
    { "m/1/model.onnx": "this is no model" },
    /cannot read the ONNX model '.*': it is a text file/,
  ],
  ["with a directory in place of its configuration", { "m/config.pbtxt/": "", "m/1/": "" }, /Is a directory/],
  [
    "with an invalid configuration text",
    { "m/config.pbtxt": "oops", "m/1/": "" },
    /has no field named "oops"/,
  ],
  [
    "with a huge text",
    { "m/config.pbtxt": new Uint8Array(65 * 1024 * 1024).fill(0x20), "m/1/": "" },
    /config.pbtxt: expected at most 67108864 bytes, got 68157440/,
  ],
  [
    "with deep nesting",
    { "m/config.pbtxt": "input { ".repeat(20_000), "m/1/": "" },
    /Error parsing text-format/,
  ],
  [
    "of an unknown backend",
    { "m/config.pbtxt": 'backend: "nosuch"', "m/1/": "" },
    /unable to find backend library for backend 'nosuch'/,
  ],
  [
    "of a platform that the library does not run",
    { "m/config.pbtxt": 'platform: "tensorrt_plan"', "m/1/model.plan": "" },
    /put the ONNX file that it was built from \(trtexec --onnx=<file>\) into the version directory/,
  ],
  [
    "that is an ensemble of itself",
    { "m/config.pbtxt": chainConfig("m"), "m/1/": "" },
    /circular dependency between ensembles: m -> \.\.\. -> m -> m/,
  ],
  [
    "that is an ensemble of a missing model",
    { "m/config.pbtxt": chainConfig("ghost"), "m/1/": "" },
    /not available or ambiguous: ghost/,
  ],
  [
    "that is a cached ensemble of a decoupled model",
    { ...repeater, "m/config.pbtxt": cachedEnsemble, "m/1/": "" },
    /Response Cache does not currently support model m with 'decoupled' transaction policy/,
  ],
  [
    "that is a cached ensemble and calls itself decoupled",
    {
      "m/config.pbtxt": `${chainConfig("good")} response_cache { enable: true } model_transaction_policy { decoupled: true }`,
      "m/1/": "",
    },
    /Response Cache does not currently support model m with 'decoupled' transaction policy/,
  ],
  [
    "with labels outside its directory",
    {
      "m/config.pbtxt": identityConfig().replace(
        'name: "OUTPUT0"',
        'name: "OUTPUT0" label_filename: "../../etc/passwd"',
      ),
      "m/1/": "",
    },
    /expected a path inside the model's directory, got '..\/..\/etc\/passwd'/,
  ],
];

describe("a model that cannot be served", () => {
  it.each(broken)(
    "a model %s is reported in the index and the log, and the others serve",
    async (_what, files, reason) => {
      await using models = await RepositoryOnDisk.create({ ...good, ...files });
      const log: string[] = [];
      await using triton = serverOf(models.path, log);
      await triton.ready();
      const rows = (await triton.service.repositoryIndex(false)).filter(({ name }) => name === "m");
      expect(rows).toEqual([
        expect.objectContaining({ state: "UNAVAILABLE", reason: expect.stringMatching(reason) }),
      ]);
      expect(log.join("\n")).toMatch(reason);
      expect([...(await triton.infer("good", { INPUT0: [[1]] })).OUTPUT0!.data]).toEqual([1]);
    },
  );

  it("keeps serve() from opening unless errors are allowed, and is named", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, "m/config.pbtxt": "oops", "m/1/": "" });
    await using triton = new Triton({ modelRepository: models.path, logger: quiet([]) });
    await expect(triton.serve({ frontends: [] })).rejects.toThrow(/failed to load all models\nm: .*oops/);
  });
});

describe("a repository", () => {
  it("leaves a server that is never ready when it does not exist", async () => {
    await using triton = serverOf("/there/is/nothing/here", []);
    await triton.serve({ frontends: [] });
    expect([triton.service.isLive(), triton.service.isReady()]).toEqual([false, false]);
    await expect(triton.service.repositoryIndex(false)).rejects.toThrow("Server not ready");
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
    expect(await triton.service.repositoryIndex(false)).toEqual([
      { name: "good", version: "1", state: "READY" },
      { name: "m", state: "UNAVAILABLE", reason: "model appears in two or more repositories" },
    ]);
  });
});

describe("a symbolic link inside the repository", () => {
  const module =
    "export default async (requests) => requests.map(({ inputs }) => ({ OUTPUT0: inputs.INPUT0 }));";
  const config = identityConfig().replace('"identity"', '"javascript"');

  it.each([
    ["a file", "a/1/model.mjs", "b/1/model.mjs"],
    ["a version", "a/1", "b/1"],
    ["a configuration", "a/config.pbtxt", "b/config.pbtxt"],
    ["a model", "a", "b"],
  ])("leads to %s of another model", async (_, target, link) => {
    const files = { "b/config.pbtxt": config, "b/1/model.mjs": module };
    const own = Object.entries(files).filter(([path]) => !`${path}/`.startsWith(`${link}/`));
    await using models = await RepositoryOnDisk.create({
      "a/config.pbtxt": config,
      "a/1/model.mjs": module,
      ...Object.fromEntries(own),
    });
    await mkdir(join(models.path, link, ".."), { recursive: true });
    await symlink(join(models.path, target), join(models.path, link));
    const log: string[] = [];
    await using triton = serverOf(models.path, log);
    await triton.ready();
    expect(log.join("\n")).not.toContain("link");
    expect([...(await triton.infer("b", { INPUT0: [[3]] })).OUTPUT0!.data]).toEqual([3]);
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
      modelRepository: models.path,
      modelControlMode: "explicit",
      logger: quiet([]),
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
  const reasons = (await triton.service.repositoryIndex(false)).map(({ name, reason }) => [name, reason]);
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
  const reasons = (await triton.service.repositoryIndex(false)).map(({ name, reason }) => [name, reason]);
  expect(reasons).toEqual([
    ["good", undefined],
    ["m", expect.any(String)],
    ["x", expect.any(String)],
  ]);
});

async function reasonFor(models: RepositoryOnDisk): Promise<string> {
  await using triton = serverOf(models.path, []);
  await triton.ready();
  expect(triton.service.isModelReady("good", "")).toBe(true);
  return (await triton.service.repositoryIndex(false)).find(({ name }) => name === "m")?.reason ?? "";
}

function serverOf(modelRepository: string | string[], log: string[]): Triton {
  return new Triton({ modelRepository, exitOnError: false, logger: quiet(log) });
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
