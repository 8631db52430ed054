import { access, mkdtemp, readFile, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sample, Tensor, Triton, TritonError } from "@tritonjs/core";
import { type BackendFactory, callbackExecutor } from "@tritonjs/core/backend";
import type { ModelConfig } from "@tritonjs/protocol";
import { emptyModelConfig } from "@tritonjs/protocol/config";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { repositoryRoot } from "../../../test/support/repository.js";
import { chainConfig, identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { RollingTriton } from "../../../test/support/rolling-triton.js";
import { readVersionDirectories, versionsToLoad } from "../src/directories/model-directory.js";
import { Dependencies, type DependencyNode, keyOf } from "../src/loading/dependencies.js";
import { Locks } from "../src/loading/repository-changes.js";

/** An ensemble with a step for each member; a plain model if there are no members. */
function ensembleConfig(name: string, members: readonly string[]): ModelConfig {
  const config = { ...emptyModelConfig(), name };
  if (members.length === 0) return config;
  const step = members.map((modelName) => ({
    modelName,
    modelVersion: -1,
    inputMap: {},
    outputMap: {},
    modelNamespace: "",
  }));
  return { ...config, ensembleScheduling: { step } };
}

const iris = await readFile(join(repositoryRoot, "examples/quickstart/iris/iris.onnx"));

describe("directories", () => {
  it("a server serves models of directories beside bound ones", async () => {
    await using models = await RepositoryOnDisk.create({
      "echo/config.pbtxt": identityConfig(),
      "echo/1/": "",
    });
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: models.path })] });
    triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    });
    const [{ OUTPUT0 }, { y }] = await Promise.all([
      triton.infer("echo", { INPUT0: [[1, 2]] }),
      triton.infer("double", { x: [3] }),
    ]);
    expect([[...OUTPUT0!.data], [...y!.data]]).toEqual([[1, 2], [6]]);
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "double", version: "1", state: "READY" },
      { name: "echo", version: "1", state: "READY" },
    ]);
  });

  it("an ONNX model without a configuration gets one from its file", async () => {
    await using models = await RepositoryOnDisk.create({ "iris/1/model.onnx": iris });
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: models.path })] });
    await triton.ready();
    const config = serviceOf(triton).modelConfig("iris", "");
    expect(config).toMatchObject({
      name: "iris",
      backend: "onnxruntime",
      platform: "onnxruntime_onnx",
      defaultModelFilename: "model.onnx",
      maxBatchSize: 4,
    });
    const [input] = config.input;
    const outputs = await triton.infer("iris", { [input!.name]: [[5.1, 3.5, 1.4, 0.2]] });
    expect(Object.keys(outputs)).toEqual(config.output.map(({ name }) => name));
  });

  it("an ensemble may combine repository members and bound ones in any order", async () => {
    await using models = await RepositoryOnDisk.create({
      "echo/config.pbtxt": identityConfig(),
      "echo/1/": "",
      "chain/config.pbtxt": chainConfig("echo", "plus"),
      "chain/1/": "",
    });
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = new Triton({
      logger,
      extensions: [withRepository({ modelRepository: models.path, exitOnError: false })],
    });
    await triton.ready();
    expect(serviceOf(triton).isModelReady("chain", "")).toBe(false);
    const ready = new Promise<void>((resolve) => {
      const stop = serviceOf(triton).onChange(() => {
        if (!serviceOf(triton).isModelReady("chain", "")) return;
        stop();
        resolve();
      });
    });
    triton.bind({
      modelName: "plus",
      inputs: [{ name: "INPUT0", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "OUTPUT0", dtype: "FP32", shape: [-1] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ OUTPUT0: inputs.INPUT0 })),
      config: { maxBatchSize: 4 },
    });
    await ready;
    expect(serviceOf(triton).isReady()).toBe(true);
  });

  it("labels, warm-up data and file names are read from the directory", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": identityConfig(`default_model_filename: "weights.bin"
      model_warmup [ { name: "w" batch_size: 1 inputs { key: "INPUT0" value {
        data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "two" } } } ]`).replace(
        'output [ { name: "OUTPUT0"',
        'output [ { label_filename: "labels.txt" name: "OUTPUT0"',
      ),
      "m/labels.txt": "cat\ndog\n",
      "m/warmup/two": new Uint8Array(8),
      "m/1/weights.bin": "",
    });
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: models.path })] });
    await triton.ready();
    expect(serviceOf(triton).model("m", "").labels.get("OUTPUT0")).toEqual(["cat", "dog"]);
    expect(serviceOf(triton).statistics("m", "")[0]?.executionCount).toBe(1);
  });

  it("a configuration of another name is read where a model has one", async () => {
    await using models = await RepositoryOnDisk.create({
      "a/config.pbtxt": identityConfig(),
      "a/configs/small.pbtxt": identityConfig().replace("max_batch_size: 4", "max_batch_size: 2"),
      "a/1/": "",
      "b/config.pbtxt": identityConfig(),
      "b/1/": "",
    });
    await using triton = new Triton({
      extensions: [withRepository({ modelRepository: models.path, modelConfigName: "small" })],
    });
    await triton.ready();
    expect(["a", "b"].map((name) => serviceOf(triton).modelConfig(name, "").maxBatchSize)).toEqual([2, 4]);
  });

  it("namespaces distinguish equal model names of two repositories, also in metrics", async () => {
    await using one = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
    await using two = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
    const modelRepository = [one.path, two.path];
    await using triton = new Triton({
      extensions: [withRepository({ modelRepository, modelNamespacing: true })],
    });
    await triton.ready();
    await expect(triton.infer("m", { INPUT0: [[1]] })).rejects.toThrow(
      "There are 2 identifiers of model 'm' in global map, model namespace must be provided to resolve ambiguity.",
    );
    const page = await serviceOf(triton).metrics();
    for (const path of modelRepository) expect(page).toContain(`namespace="${path}"`);
  });

  it("a bound model and a repository model cannot share a name", async () => {
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: models.path })] });
    await triton.ready();
    const bind = () =>
      triton.bind({ modelName: "m", modelVersion: 2, inputs: [], outputs: [], inferFunc: () => [] });
    expect(bind).toThrow("model 'm' version 2 is already bound: choose another name or version");
  });
});

const key = (name: string) => keyOf({ namespace: "", name });

/** Models by name with the names of their members; a star marks models that were loaded by name. */
function dependencies(models: Readonly<Record<string, readonly string[]>>, bound: readonly string[] = []) {
  const nodes = Object.entries(models).map(([marked, members]): [string, DependencyNode] => {
    const name = marked.replace("*", "");
    const config = ensembleConfig(name, members);
    return [key(name), { id: { namespace: "", name }, config, explicit: marked.endsWith("*") }];
  });
  return new Dependencies(new Map(nodes), (name) => bound.includes(name));
}

const names = (keys: Iterable<string>) => [...keys].map((one) => one.slice(1)).sort();

describe("dependencies between models", () => {
  it("reach from a model to all ensembles above it", () => {
    const graph = dependencies({ a: [], b: [], inner: ["a"], outer: ["inner", "b"] });
    expect(names(graph.withDependents([key("a")]))).toEqual(["a", "inner", "outer"]);
    expect(names(graph.withDependents([key("outer")]))).toEqual(["outer"]);
  });

  it("name the missing members of an ensemble, except models that the program binds", () => {
    const graph = dependencies({ ens: ["z", "a", "bound"] }, ["bound"]);
    expect(graph.problemOf(key("ens"))).toBe(
      "ensemble ens contains models that are not available or ambiguous: a, z",
    );
  });

  it("may not form a circle", () => {
    const graph = dependencies({ x: ["y"], y: ["x"], self: ["self"] });
    expect(graph.problemOf(key("x"))).toBe("circular dependency between ensembles: x -> ... -> y -> x");
    expect(graph.problemOf(key("self"))).toBe(
      "circular dependency between ensembles: self -> ... -> self -> self",
    );
  });

  it("include members that no other ensemble needs and that were not loaded by name", () => {
    const graph = dependencies({ "a*": [], b: [], c: [], one: ["a", "b", "c"], two: ["c"] });
    expect(names(graph.withOrphans([key("one")]))).toEqual(["b", "one"]);
    expect(names(graph.withOrphans([key("one"), key("two")]))).toEqual(["b", "c", "one", "two"]);
  });
});

describe("load files", () => {
  const config = JSON.stringify({
    backend: "note",
    input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
    output: [{ name: "y", data_type: "TYPE_FP32", dims: [1] }],
  });

  const filesWith = (text: string, path = "1/note.txt") => new Map([[path, new TextEncoder().encode(text)]]);

  /** Directories from which versions were created, in order. */
  let directories: string[];
  let models: RepositoryOnDisk;
  let triton: Triton;

  const note: BackendFactory = ({ directory, versionDirectory }) => {
    directories.push(directory);
    return {
      backendName: "note",
      platform: "",
      describe: () => undefined,
      checkConfig: () => {
        if (versionDirectory.endsWith("9")) throw new TritonError("INVALID_ARG", "not this one");
      },
      createExecutor: (context) =>
        callbackExecutor(
          sample(({ x }) => ({ y: x! })),
          context,
        ),
    };
  };

  beforeEach(async () => {
    directories = [];
    models = await RepositoryOnDisk.create({ "disk/": "" });
    triton = new Triton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [
        withRepository({ modelRepository: models.path, modelControlMode: "explicit", backends: { note } }),
      ],
    });
  });

  afterEach(async () => {
    await triton.close();
    await models[Symbol.asyncDispose]();
  });

  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );

  const left = async () => {
    const found = await Promise.all(directories.map(async (path) => [path, await isThere(path)] as const));
    return found.filter(([, there]) => there).map(([path]) => path);
  };

  describe("files of a load request", () => {
    it("create a model outside any repository, and exist as long as it does", async () => {
      await triton.loadModel("m", { config, files: filesWith("a") });
      expect([...(await triton.infer("m", { x: [3] })).y!.data]).toEqual([3]);
      expect(await left()).toEqual(directories);
      await triton.unloadModel("m");
      await expect.poll(left).toEqual([]);
    });

    it("are deleted when the server closes while their model serves", async () => {
      await triton.loadModel("m", { config, files: filesWith("a") });
      await triton.close();
      expect(directories).toHaveLength(1);
      expect(await left()).toEqual([]);
    });

    it("are deleted when loading fails and when others replace them", async () => {
      await expect(triton.loadModel("m", { config, files: filesWith("a", "9/note.txt") })).rejects.toThrow(
        "load failed for model 'm': version 9 is at UNAVAILABLE state: Invalid argument: not this one;\n",
      );
      expect(await left()).toEqual([]);
      await triton.loadModel("m", { config, files: filesWith("b") });
      await triton.loadModel("m", { config, files: filesWith("c") });
      await expect.poll(left).toEqual(directories.slice(-1));
    });

    it("leave nothing behind after many loads and unloads", async () => {
      for (let i = 0; i < 50; i++) {
        await triton.loadModel("m", { config, files: filesWith(String(i)) });
        if (i % 2 === 0) await triton.unloadModel("m");
      }
      expect(new Set(directories).size).toBe(50);
      await triton.close();
      expect(await left()).toEqual([]);
    });

    it("are rejected without a configuration", async () => {
      await expect(triton.loadModel("m", { files: filesWith("a") })).rejects.toMatchObject({
        code: "INTERNAL",
        cause: { message: "Load parameter 'config' must be specified for model file override" },
      });
    });

    it.each(["../up", "/../up", "1/../../up", "1", "", "a\0b"])(
      "are rejected at the path %j",
      async (path) => {
        const files = new Map([...filesWith("a"), [path, new Uint8Array()]]);
        await expect(triton.loadModel("m", { config, files })).rejects.toMatchObject({
          message: "failed to load 'm', failed to poll from model repository",
        });
        expect(directories).toEqual([]);
      },
    );
  });
});

const files = { "model/config.pbtxt": `name: "model"\n${identityConfig()}`, "model/1/": "" };

const input = { INPUT0: [[1, 2]] };

describe("registered repositories", () => {
  it("models of a registered directory load on request, under the names that were given", async () => {
    await using models = await RepositoryOnDisk.create({
      ...files,
      "own/config.pbtxt": identityConfig(),
      "own/1/": "",
    });
    await using triton = new Triton({ extensions: [withRepository({ modelControlMode: "explicit" })] });
    await triton.registerModelRepository(models.path, { model: "echo-7" });
    await triton.loadModel("echo-7");
    await triton.loadModel("own");
    expect([...(await triton.infer("echo-7", input)).OUTPUT0!.data]).toEqual([1, 2]);
    expect(serviceOf(triton).modelConfig("echo-7", "").name).toBe("echo-7");
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "echo-7", version: "1", state: "READY" },
      { name: "own", version: "1", state: "READY" },
    ]);
    await expect(triton.loadModel("model")).rejects.toThrow("failed to load 'model'");
  });

  it("an unregistered directory keeps its models in service until they are unloaded", async () => {
    await using models = await RepositoryOnDisk.create(files);
    await using triton = new Triton({ extensions: [withRepository({ modelControlMode: "explicit" })] });
    await triton.registerModelRepository(models.path);
    await triton.loadModel("model");
    triton.unregisterModelRepository(models.path);
    expect([...(await triton.infer("model", input)).OUTPUT0!.data]).toEqual([1, 2]);
    await triton.unloadModel("model");
    await expect(triton.loadModel("model")).rejects.toThrow("failed to load 'model'");
  });

  it("refuses a directory that is absent or registered, bad names, and servers that load no models on request", async () => {
    await using models = await RepositoryOnDisk.create(files);
    await using triton = new Triton({ extensions: [withRepository({ modelControlMode: "explicit" })] });
    await triton.registerModelRepository(models.path);
    await expect(triton.registerModelRepository(models.path)).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
    });
    await expect(triton.registerModelRepository("/no/such/directory")).rejects.toThrow(
      "repository not found",
    );
    await expect(triton.registerModelRepository(models.path, { "../x": "a" })).rejects.toThrow(
      "path traversal",
    );
    await expect(triton.registerModelRepository(models.path, { model: "" })).rejects.toThrow(
      "cannot be empty",
    );
    expect(() => triton.unregisterModelRepository("/no/such/directory")).toThrow("repository not found");
    await using other = new Triton();
    await expect(other.registerModelRepository(models.path)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("repository presence", () => {
  it("a server whose repository directory is missing stays ready and logs one warning", async () => {
    const path = await mkdtemp(join(tmpdir(), "tritonjs-gone-"));
    onTestFinished(() => rmdir(path).catch(() => {}));
    const warn = vi.fn();
    const clock = new VirtualClock();
    const logger = { error() {}, warn, info() {}, debug() {} };
    const triton = new Triton({ clock, logger, extensions: [withRepository({ modelRepository: path })] });
    onTestFinished(() => triton.close());
    await triton.ready();
    const probe = async () => {
      await clock.advance(10_000);
      return serviceOf(triton).checkReady();
    };
    expect(await probe()).toBe(true);
    await rmdir(path);
    for (let i = 0; i < 3; i++) expect(await probe()).toBe(true);
    const text = `failed to stat file ${path}: its loaded models stay in service, but none of its models can be loaded`;
    await expect.poll(() => warn.mock.calls).toEqual([[text]]);
  });
});

const planFor = (locks: Locks, ...locked: string[]) => locks.plan(async () => ({ value: locked, locked }));

describe("locks", () => {
  it("changes of different models run at the same time", async () => {
    const locks = new Locks();
    const [a, b] = await Promise.all([planFor(locks, "a"), planFor(locks, "b")]);
    expect([a.value, b.value]).toEqual([["a"], ["b"]]);
  });

  it("a change waits for another one of the same model and is then planned again", async () => {
    const locks = new Locks();
    const first = await planFor(locks, "a", "b");
    let plans = 0;
    const waiting = locks.plan(async () => ({ value: ++plans, locked: ["b"] }));
    await planFor(locks, "c");
    expect(plans).toBe(1);
    first.release();
    expect((await waiting).value).toBe(2);
  });

  it("a plan that fails locks nothing", async () => {
    const locks = new Locks();
    const failing = locks.plan(async () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect((await planFor(locks, "a")).value).toEqual(["a"]);
  });
});

describe("version directories of a model", () => {
  it("are those with integer names of at least 1", () => {
    expect(readVersionDirectories(["10", "2", "1", "warmup", "initial_state", "configs"])).toEqual({
      versions: [1, 2, 10],
      ignored: [],
    });
  });

  it("are ignored, with a reason, when they have any other name", () => {
    const names = ["0", "01", "-1", "abc", "2x", "+1", "99999999999999999999"];
    expect(readVersionDirectories(names)).toEqual({
      versions: [],
      ignored: [
        "ignore version directory '0' which is not a version: expected an integer of at least 1",
        "ignore version directory '01' which contains leading zeros in its directory name",
        "ignore version directory '-1' which is not a version: expected an integer of at least 1",
        "ignore version directory 'abc' which fails to convert to integral number",
        "ignore version directory '2x' which fails to convert to integral number",
        "ignore version directory '+1' which fails to convert to integral number",
        "ignore version directory '99999999999999999999' which is too large for a version",
      ],
    });
  });
});

describe("a version policy", () => {
  const existing = [1, 2, 3, 7];

  it("serves all versions when it is empty, as Triton does", () => {
    expect(versionsToLoad(existing, {})).toEqual({ versions: existing, missing: [] });
  });

  it("serves the latest versions up to its number", () => {
    expect(versionsToLoad(existing, { latest: { numVersions: 2 } }).versions).toEqual([3, 7]);
    expect(versionsToLoad(existing, { latest: { numVersions: 9 } }).versions).toEqual(existing);
    expect(versionsToLoad(existing, { latest: { numVersions: 0 } }).versions).toEqual([]);
  });

  it("serves all versions", () => {
    expect(versionsToLoad(existing, { all: {} }).versions).toEqual(existing);
  });

  it("serves specific versions and reports the missing ones", () => {
    expect(versionsToLoad(existing, { specific: { versions: [7, 1, 5] } })).toEqual({
      versions: [1, 7],
      missing: [5],
    });
  });
});

/** A backend that answers with the version. */
const versions: BackendFactory = ({ version }) => ({
  backendName: "versions",
  platform: "",
  describe: () => undefined,
  createExecutor: () => ({
    details: {},
    mustFinish: false,
    start: async () => {},
    execute: async ({ requests }) =>
      requests.map(
        () => new Map([["OUTPUT0", Tensor.fromElements("FP32", [1, 1], Float32Array.of(version))]]),
      ),
    stop: async () => {},
  }),
});

const ensemble = (name: string) => `
  name: "${name}" platform: "ensemble" max_batch_size: 4
  input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
  ensemble_scheduling { step { model_name: "m" model_version: -1
    input_map { key: "INPUT0" value: "IN" } output_map { key: "OUTPUT0" value: "OUT" } } }`;

describe("namespaces", () => {
  it("a rollout tells versions of equal names in two repositories apart", async () => {
    const config = identityConfig("version_policy { all {} }")
      .replace('"identity"', '"versions"')
      .replaceAll("TYPE_INT32", "TYPE_FP32");
    const repository = (name: string) =>
      RepositoryOnDisk.create({
        "m/config.pbtxt": config,
        "m/1/": "",
        "m/2/": "",
        [`${name}/config.pbtxt`]: ensemble(name),
        [`${name}/1/`]: "",
      });
    await using one = await repository("e1");
    await using two = await repository("e2");
    await using triton = new RollingTriton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [
        withRepository({
          modelRepository: [one.path, two.path],
          modelNamespacing: true,
          backends: { versions },
        }),
      ],
    });
    await triton.ready();
    const ask = async (name: string) => (await triton.infer(name, { IN: [[1]] })).OUT!.data[0];
    expect([await ask("e1"), await ask("e2")]).toEqual([2, 2]);

    const list = [one.path, two.path].map((path) => `'${path}'`);
    const text = "rollout of model 'm', option 'namespace': expected a repository that has the model";
    await expect(triton.rollout("m", { from: 2, to: 1 })).rejects.toThrow(text);
    await expect(triton.rollout("m", { from: 2, to: 1, namespace: "/elsewhere" })).rejects.toThrow(
      "got '/elsewhere'",
    );
    for (const path of list) await expect(triton.rollout("m", { to: 1 })).rejects.toThrow(path);

    const rollout = await triton.rollout("m", { from: 2, to: 1, share: 100, namespace: one.path });
    expect([await ask("e1"), await ask("e2")]).toEqual([1, 2]);
    rollout.promote();
    expect([await ask("e1"), await ask("e2")]).toEqual([1, 2]);
    rollout.remove();
    const other = await triton.rollout("m", { from: 2, to: 1, share: 100, namespace: two.path });
    expect([await ask("e1"), await ask("e2")]).toEqual([2, 1]);
    other.rollBack();
    expect([await ask("e1"), await ask("e2")]).toEqual([2, 2]);
  });
});
