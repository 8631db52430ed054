import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { type Logger, Tensor, Triton, TritonError } from "@tritonjs/core";
import { type BackendFactory, callbackExecutor } from "@tritonjs/core/backend";
import { emptyConfig } from "@tritonjs/protocol/config";
import { repository, type Substitute } from "@tritonjs/repository";
import { inspectRepository } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import { type InferenceRequest, VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { sendRequest } from "../../../test/support/send-request.js";
import { servedOptions } from "../../../test/support/served-options.js";
import { findBackend } from "../src/backends/find-backend.js";

const tensor = (name: string, type: string, dims: string) =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }`;

const REPEAT = `backend: "repeat" model_transaction_policy { decoupled: true }
  input [ ${tensor("IN", "INT32", "-1")}, ${tensor("DELAY", "UINT32", "-1")}, ${tensor("WAIT", "UINT32", "1")} ]
  output [ ${tensor("OUT", "INT32", "1")}, ${tensor("IDX", "UINT32", "1")} ]`;

/** The responses of a decoupled model. */
async function responses(name: string, config: string, inputs: Record<string, Tensor>): Promise<number[][]> {
  await using models = await RepositoryOnDisk.create({
    [`${name}/config.pbtxt`]: config,
    [`${name}/1/`]: "",
  });
  await using triton = new Triton({ extensions: [repository({ modelRepository: models.path })] });
  await triton.ready();
  return new Promise((resolve, reject) => {
    const answers: number[][] = [];
    const given = new Map(Object.entries(inputs));
    sendRequest(serviceOf(triton).model(name, ""), { inputs: given }, (outcome, final) => {
      if (TritonError.is(outcome)) reject(outcome);
      else if (outcome !== undefined) answers.push([...(outcome.outputs.get("OUT")!.elements as Int32Array)]);
      if (final) resolve(answers);
    });
  });
}

const int32 = (...values: number[]) => Tensor.fromElements("INT32", [values.length], Int32Array.from(values));

const uint32 = (...values: number[]) =>
  Tensor.fromElements("UINT32", [values.length], Uint32Array.from(values));

describe("backends", () => {
  it("a custom backend gets the place of its model and may complete its configuration", async () => {
    const seen: string[] = [];
    const doubling: BackendFactory = ({ name, version, directory, versionDirectory, settings }) => {
      seen.push(`${name} ${version} ${versionDirectory.slice(directory.length)} ${settings.mode}`);
      return {
        backendName: "doubling",
        platform: "",
        describe: () => undefined,
        completeConfig: (config) => {
          config.addInput({ name: "x", dataType: "TYPE_FP32", dims: [-1] });
          config.addOutput({ name: "y", dataType: "TYPE_FP32", dims: [-1] });
          config.setMaxBatchSize(8);
        },
        createExecutor: (context) =>
          callbackExecutor(
            (requests: readonly { inputs: object }[]) => requests.map(() => ({ y: [[2]] })),
            context,
          ),
      };
    };
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": 'backend: "doubling"',
      "m/3/": "",
    });
    await using triton = new Triton({
      extensions: [
        repository({
          modelRepository: models.path,
          backends: { doubling },
          backendConfig: { doubling: { mode: "fast" } },
        }),
      ],
    });
    const { y } = await triton.infer("m", { x: [[1]] });
    expect([...y!.data]).toEqual([2]);
    expect(seen).toEqual(["m 3 /3 fast"]);
    expect(serviceOf(triton).modelConfig("m", "")).toMatchObject({ maxBatchSize: 8, input: [{ name: "x" }] });
  });
});

describe("the test backends", () => {
  it("identity returns its inputs, and zeros for omitted inputs", async () => {
    const config = `backend: "identity" max_batch_size: 4
      input [ ${tensor("INPUT0", "FP32", "2")}, { name: "INPUT1" data_type: TYPE_INT32 dims: [ -1 ] optional: true } ]
      output [ ${tensor("OUTPUT0", "FP32", "2")}, ${tensor("OUTPUT1", "INT32", "-1")} ]`;
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({ extensions: [repository({ modelRepository: models.path })] });
    const { OUTPUT0, OUTPUT1 } = await triton.infer("m", { INPUT0: [[1, 2]] });
    expect([[...OUTPUT0!.data], [...OUTPUT1!.data], OUTPUT1!.shape]).toEqual([[1, 2], [0], [1, 1]]);
  });

  it("repeat responds once for each element", async () => {
    const inputs = { IN: int32(4, 5, 6), DELAY: uint32(0, 0, 0), WAIT: uint32(0) };
    expect(await responses("repeat", REPEAT, inputs)).toEqual([[4], [5], [6]]);
  });

  it("repeat sends the first response only for a model that is not decoupled", async () => {
    const inputs = { IN: int32(4, 5, 6), DELAY: uint32(0, 0, 0), WAIT: uint32(0) };
    const plain = REPEAT.replace("decoupled: true", "decoupled: false");
    expect(await responses("repeat", plain, inputs)).toEqual([[4]]);
  });

  it("identity refuses a sequence whose id is a text", async () => {
    const config = `backend: "identity" max_batch_size: 1 sequence_batching {}
      input [ ${tensor("INPUT0", "INT32", "1")} ] output [ ${tensor("OUTPUT0", "INT32", "1")} ]`;
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({ extensions: [repository({ modelRepository: models.path })] });
    const ask = (id: string | bigint) =>
      triton.infer("m", { INPUT0: [[1]] }, { sequence: { id, start: true, end: true } });
    expect([...(await ask(7n)).OUTPUT0!.data]).toEqual([1]);
    await expect(ask("seven")).rejects.toThrow("correlation ID in request is not an unsigned int");
  });

  it("square responds n times with n", async () => {
    const config = `backend: "square" model_transaction_policy { decoupled: true }
      input [ ${tensor("IN", "INT32", "1")} ] output [ ${tensor("OUT", "INT32", "1")} ]`;
    expect(await responses("square", config, { IN: int32(3) })).toEqual([[3], [3], [3]]);
    expect(await responses("square", config, { IN: int32(0) })).toEqual([]);
  });

  it("repeat ends a cancelled request at once during its wait, and stops", async () => {
    const clock = new VirtualClock();
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": REPEAT, "m/1/": "" });
    const triton = new Triton({ clock, extensions: [repository({ modelRepository: models.path })] });
    await triton.ready();
    const days = 49 * 24 * 3_600_000;
    const ended: unknown[] = [];
    const ask = (DELAY: number, WAIT: number) => {
      const inputs = new Map(Object.entries({ IN: int32(1), DELAY: uint32(DELAY), WAIT: uint32(WAIT) }));
      return sendRequest(
        serviceOf(triton).model("m", ""),
        { inputs },
        (outcome, final) => void (final && ended.push(outcome)),
      ) as InferenceRequest;
    };
    const request = ask(days, days);
    await clock.advance(1);
    expect(request.executing).toBe(true);
    request.cancel();
    await clock.advance(0);
    ask(0, days);
    await clock.advance(0);
    expect(ended).toEqual([expect.objectContaining({ code: "CANCELLED" }), undefined]);
    const closed = triton.close();
    await clock.advance(60_000);
    await closed;
  });

  it.each([
    [
      "identity",
      identityConfig().replace('"OUTPUT0" data_type: TYPE_FP32', '"OUTPUT0" data_type: TYPE_INT32'),
      "expected input and output datatype to match, got TYPE_FP32 and TYPE_INT32",
    ],
    [
      "identity",
      identityConfig('parameters { key: "execute_delay_ms" value { string_value: "x" } }'),
      "parameter 'execute_delay_ms' of model 'm': expected an integer of at least 0, got 'x'",
    ],
    ["square", 'backend: "square"', "expected 1 input, got 0"],
    [
      "repeat",
      'backend: "repeat" max_batch_size: 1',
      "repeat backend only supports models with max_batch_size == 0",
    ],
  ])("%s rejects a configuration that it cannot serve", async (_name, config, reason) => {
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [repository({ modelRepository: models.path })],
    });
    await expect(triton.ready()).rejects.toThrow(reason);
  });
});

const quiet: Logger = { error() {}, warn() {}, info() {}, debug() {} };

/** A backend whose models are files with a number. */
const scaling = `
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "./read/parse.mjs";

export default class Scale {
  static autoCompleteConfig(config) {
    config.addInput({ name: "x", dataType: "FP32", dims: [1] });
    config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
    config.setMaxBatchSize(8);
  }
  async initialize({ modelDirectory }) {
    this.factor = parse(await readFile(join(modelDirectory, "factor.txt"), "utf8"));
  }
  execute(requests) {
    return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => value * this.factor) }));
  }
}`;

describe("javascript backends", () => {
  it("models of a JavaScript backend share its module, and have the directories of their versions", async () => {
    await using backends = await RepositoryOnDisk.create({
      "scale/backend.js": scaling,
      "scale/package.json": '{ "type": "module" }',
      "scale/read/parse.mjs": "export const parse = Number;",
    });
    await using models = await RepositoryOnDisk.create({
      "thrice/config.pbtxt": 'backend: "scale" version_policy { all {} }',
      "thrice/1/factor.txt": "3",
      "thrice/2/factor.txt": "30",
    });
    const options = { backendDirectory: backends.path };
    await using triton = new Triton(
      servedOptions({ modelRepository: models.path, logger: quiet, ...options }),
    );
    await triton.ready();
    const ask = async (modelVersion: number) => {
      const { y } = await triton.infer("thrice", { x: [[1], [2]] }, { modelVersion });
      return Array.from(y!.data as Float32Array);
    };
    expect(await ask(1)).toEqual([3, 6]);
    expect(await ask(2)).toEqual([30, 60]);
    const inspections = await inspectRepository([models.path], options);
    expect(inspections.map(({ name, config, findings }) => [name, config?.runtime, findings])).toEqual([
      ["thrice", "backend.js", []],
    ]);
  });

  it("a broken JavaScript backend is the reason of its models, and the others are served", async () => {
    await using outside = await RepositoryOnDisk.create({ "backend.mjs": scaling });
    await using backends = await RepositoryOnDisk.create({
      "throws/backend.mjs": 'throw new Error("no licence");',
      "empty/backend.mjs": "export const nothing = 1;",
      "syntax/backend.mjs": "export default class {",
      "absent/backend.mjs": 'import "package-that-nobody-has";',
      "fine/backend.mjs": scaling.replace(
        "./read/parse.mjs",
        "data:text/javascript,export const parse = Number;",
      ),
      "linked/README": "",
    });
    await symlink(join(outside.path, "backend.mjs"), join(backends.path, "linked/backend.mjs"));
    const names = ["throws", "empty", "syntax", "absent", "fine", "linked"];
    const files = names.flatMap((name) => [
      [`${name}/config.pbtxt`, `backend: "${name}"`],
      [`${name}/1/factor.txt`, "3"],
    ]);
    await using models = await RepositoryOnDisk.create(Object.fromEntries(files));
    await using triton = new Triton({
      logger: quiet,
      extensions: [
        repository({ modelRepository: models.path, backendDirectory: backends.path, exitOnError: false }),
      ],
    });
    await triton.ready();
    const index = await serviceOf(triton).repositoryIndex(false);
    const reasonOf = (name: string) => index.find((row) => row.name === name)?.reason;
    expect(reasonOf("throws")).toMatch(/no licence/);
    expect(reasonOf("empty")).toMatch(/backend\.mjs.*export|export.*backend\.mjs/s);
    expect(reasonOf("syntax")).toMatch(/backend\.mjs/);
    expect(reasonOf("absent")).toMatch(/package-that-nobody-has/);
    expect(reasonOf("linked")).toMatch(/linked/);
    const { y } = await triton.infer("fine", { x: [[2]] });
    expect(Array.from(y!.data as Float32Array)).toEqual([6]);
  });
});

const engine = identityConfig().replace('backend: "identity"', 'platform: "tensorrt_plan"');

const module =
  "export default async (requests) => requests.map(({ inputs }) => ({ OUTPUT0: inputs.INPUT0 }));";

function serverOf(modelRepository: string, substitutes: readonly Substitute[], log: string[] = []): Triton {
  const write = (text: string) => void log.push(text);
  return new Triton({
    logger: { error: write, warn: write, info() {}, debug() {} },
    extensions: [repository({ modelRepository, substitutes, exitOnError: false })],
  });
}

describe("a substitute", () => {
  it("runs another file with another backend, and is named in the log, the index and the configuration", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": `${engine} instance_group [ { kind: KIND_CPU profile: [ "1" ] } ]`,
      "m/1/model.plan": "engine",
      "m/1/other.mjs": module,
    });
    const log: string[] = [];
    const use = { backend: "javascript", file: "other.mjs", parameters: { mode: "fast" } };
    await using triton = serverOf(models.path, [{ platform: "tensorrt_plan", use }], log);
    await triton.ready();
    const stands = "for 'tensorrt_plan': backend 'javascript' with 'other.mjs'";
    expect(log).toEqual([`model 'm' has a substitute ${stands}`]);
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "m", version: "1", state: "READY", reason: `a substitute ${stands}` },
    ]);
    expect(serviceOf(triton).model("m", "").config).toMatchObject({
      backend: "javascript",
      defaultModelFilename: "other.mjs",
      parameters: { substitute: { stringValue: stands }, mode: { stringValue: "fast" } },
    });
    expect([...(await triton.infer("m", { INPUT0: [[5]] })).OUTPUT0!.data]).toEqual([5]);
  });

  it("is for the models that all of its fields name; the first rule counts", async () => {
    await using models = await RepositoryOnDisk.create({
      "a/config.pbtxt": engine,
      "a/1/": "",
      "b/config.pbtxt": engine,
      "b/1/": "",
      "c/config.pbtxt": identityConfig(),
      "c/1/": "",
    });
    await using triton = serverOf(models.path, [
      { model: "a", platform: "onnxruntime_onnx", use: { backend: "javascript" } },
      { model: "a", platform: "tensorrt_plan", use: { backend: "identity" } },
      { platform: "tensorrt_plan", use: { backend: "square" } },
    ]);
    await triton.ready();
    const rows = await serviceOf(triton).repositoryIndex(false);
    expect(rows.map(({ name, state }) => [name, state])).toEqual([
      ["a", "READY"],
      ["b", "UNAVAILABLE"],
      ["c", "READY"],
    ]);
    expect(rows[1]!.reason).toContain("Invalid argument");
    expect(rows[2]!.reason).toBeUndefined();
  });

  it("for a model that does not exist is reported, and the others serve", async () => {
    await using models = await RepositoryOnDisk.create({ "c/config.pbtxt": identityConfig(), "c/1/": "" });
    const log: string[] = [];
    await using triton = serverOf(models.path, [{ model: "ghost", use: { backend: "identity" } }], log);
    await triton.ready();
    expect(log).toEqual(["a substitute is for model 'ghost', but no repository has such a model"]);
    expect(serviceOf(triton).isModelReady("c", "")).toBe(true);
  });

  it.each<[rules: unknown, fault: string]>([
    [{}, "substitutes: expected a list of rules, got object"],
    [[{ use: { backend: "identity" } }], "substitutes[0]: expected model, backend or platform, got none"],
    [[{ model: "a", us: {} }], "substitutes[0] has an unknown option 'us': did you mean 'use'?"],
    [[{ model: 5, use: { backend: "" } }], "substitutes[0].model: expected a text, got 5"],
    [
      [{ model: "a", use: { backend: "x", parameters: { n: 1 } } }],
      "parameters.n: expected a string, got number",
    ],
    [["a"], "substitutes[0]: expected an object, got string"],
  ])("with a fault is refused: %j", (rules, fault) => {
    expect(() => serverOf("/nowhere", rules as Substitute[])).toThrow(fault);
  });
});

const own: BackendFactory = () => {
  throw new Error("not called");
};

/** Looks for the backend of a model `m` in /models/m/1. */
async function look(
  backend: string,
  {
    runtime = "",
    root,
    backends = {},
  }: { runtime?: string; root?: string; backends?: Record<string, BackendFactory> } = {},
) {
  const config = { ...emptyConfig(), name: "m", backend, runtime };
  return findBackend(config, "/models/m", 1, { backends, backendDirectory: root });
}

async function reasonOf(...args: Parameters<typeof look>): Promise<string> {
  return look(...args).then(
    () => "found",
    (error) => `${TritonError.from(error).code}: ${TritonError.from(error).message}`,
  );
}

describe("a backend of a backend directory", () => {
  it("is found by its name, and its configuration names the program", async () => {
    await using disk = await RepositoryOnDisk.create({
      "p/model.py": "",
      "j/backend.js": "",
      "m/backend.mjs": "",
      "both/model.py": "",
      "both/backend.js": "",
    });
    const found = async (name: string, runtime = "") => {
      const { config, inherits } = await look(name, { root: disk.path, runtime });
      return [config.runtime, inherits];
    };
    expect(await found("p")).toEqual(["model.py", "python"]);
    expect(await found("j")).toEqual(["backend.js", "javascript"]);
    expect(await found("m")).toEqual(["backend.mjs", "javascript"]);
    expect(await found("both")).toEqual(["model.py", "python"]);
    expect(await found("both", "backend.js")).toEqual(["backend.js", "javascript"]);
  });

  it("comes after those of the program and of the library, unless runtime names it", async () => {
    await using disk = await RepositoryOnDisk.create({
      "identity/model.py": "",
      "mine/model.py": "",
      "pytorch/model.py": "",
    });
    const root = disk.path;
    const { factory, config } = await look("mine", { root, backends: { mine: own } });
    expect(factory).toBe(own);
    expect(config.runtime).toBe("");
    expect((await look("identity", { root })).config.runtime).toBe("");
    expect((await look("identity", { root, runtime: "model.py" })).inherits).toBe("python");
    expect((await look("pytorch", { root, runtime: "model.py" })).config.runtime).toBe("model.py");
  });

  it("runs in the environment beside its program, unless the model names one", async () => {
    await using disk = await RepositoryOnDisk.create({
      "p/model.py": "",
      "p/pb_exec_env_model.py.tar.gz": "",
    });
    const { config } = await look("p", { root: disk.path });
    expect(config.parameters.EXECUTION_ENV_PATH?.stringValue).toBe(
      `${disk.path}/p/pb_exec_env_model.py.tar.gz`,
    );
  });

  it("is refused when its name or its runtime leads to another directory", async () => {
    await using disk = await RepositoryOnDisk.create({ "p/model.py": "", "inner/q/model.py": "" });
    const root = `${disk.path}/inner`;
    for (const name of ["../p", "..", ".", "q/../q", "a/b"]) {
      expect(await reasonOf(name, { root })).toBe(
        `INVALID_ARG: unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
      );
    }
    expect(await reasonOf("q", { root, runtime: "../../p/model.py" })).toBe(
      `INVALID_ARG: backend library name '../../p/model.py' escapes backend directory '${root}/q', for model 'm', check ` +
        "model config runtime field",
    );
  });
});

describe("a backend that is not there is refused with Triton's words", () => {
  it("without a program of its name", async () => {
    expect(await reasonOf("nosuch", { root: "/nowhere" })).toBe(
      "INVALID_ARG: unable to find backend library for backend 'nosuch', try specifying runtime on the model configuration.",
    );
  });

  it("for a runtime that the directory does not have", async () => {
    expect(await reasonOf("nosuch", { root: "/nowhere", runtime: "model.py" })).toBe(
      "INVALID_ARG: unable to find Python backend based backend library 'model.py' for model 'm', searched: '/nowhere/nosuch/model.py'",
    );
    expect(await reasonOf("identity", { root: "/nowhere", runtime: "libtriton_other.so" })).toBe(
      "INVALID_ARG: unable to find backend library 'libtriton_other.so' for model 'm', searched: '/models/m/1' '/models/m' '/nowhere/identity' ",
    );
    expect(await reasonOf("identity", { runtime: "libtriton_identity.so" })).toBe("found");
  });

  it("and with what to do, where the directory is not set or has only a shared library", async () => {
    expect(await reasonOf("identity", { runtime: "model.py" })).toContain(
      "there is no backend directory; set backendDirectory (--backend-directory)",
    );
    await using disk = await RepositoryOnDisk.create({ "native/libtriton_native.so": "" });
    expect(await reasonOf("native", { root: disk.path })).toContain(
      "'libtriton_native.so' is a shared library for tritonserver, which cannot be loaded here",
    );
    expect(await reasonOf("vllm")).toContain("<backend directory>/vllm");
    expect(await reasonOf("tensorrt")).toContain("trtexec --onnx=<file>");
  });
});
