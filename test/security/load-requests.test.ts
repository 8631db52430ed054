import { cpSync, existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { lineLogger } from "@tritonjs/core/internal";
import type { RepositoryAgent } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { fakeBackend } from "@tritonjs/testing";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { identityOnnx } from "../support/onnx-models.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { openServer, useServer } from "./support/open-server.js";

describe("configurations of load requests", async () => {
  /*
   * The configuration of a load request names paths that the operator did not allow. The folder `outside` has what an
   * attack would open, run or overwrite, and must look the same afterwards.
   */

  const IO = `input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }`;

  const io = {
    input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
    output: [{ name: "y", data_type: "TYPE_FP32", dims: [1] }],
  };

  const PYTHON_MODEL = `import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", r.inputs()[0].as_numpy())]) for r in requests]
`;

  type Config = object;

  const withParameters = (backend: string, parameters: Readonly<Record<string, string>>) => ({
    backend,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, { string_value: value }]),
    ),
  });

  const onnx = (parameters: Readonly<Record<string, string>>) => withParameters("onnxruntime", parameters);

  const accelerated = (name: string, parameters: Readonly<Record<string, string>>): Config => ({
    backend: "onnxruntime",
    optimization: { execution_accelerators: { cpu_execution_accelerator: [{ name, parameters }] } },
  });

  const python = (path: string) => ({ ...withParameters("python", { EXECUTION_ENV_PATH: path }), ...io });

  const ctc = (parameters: Readonly<Record<string, string>>) => ({
    ...withParameters("ctc_decoder", parameters),
    max_batch_size: 8,
  });

  /** A backend of the program that declares none of its parameters. */
  const plain = (parameters: Readonly<Record<string, string>>) => ({
    ...withParameters("plain", parameters),
    ...io,
  });

  const outside = await mkdtemp(join(tmpdir(), "tritonjs-outside-"));

  const models = await RepositoryOnDisk.create({
    "onnx/1/model.onnx": identityOnnx("FLOAT", [1]),
    "python/1/model.py": PYTHON_MODEL,
    "python/config.pbtxt": `backend: "python" ${IO}`,
    "ctc/1/units.txt": "<blank> 0\na 1\n",
    "ctc/config.pbtxt":
      'backend: "ctc_decoder" max_batch_size: 8 parameters { key: "vocabulary" value { string_value: "units.txt" } }',
    "plain/1/note.txt": "note",
    "plain/config.pbtxt": `backend: "plain" ${IO}
    parameters { key: "home" value { string_value: "${outside}/secret" } }`,
  });

  await writeFile(join(outside, "secret"), "secret 0\n");

  const stories = join(repositoryRoot, "examples/text-generation/models/stories");

  cpSync(stories, join(models.path, "stories"), { recursive: true });

  await symlink(join(outside, "secret"), join(models.path, "ctc/1/link.txt"));

  await symlink(outside, join(models.path, "ctc/1/folder"));

  await symlink(join(models.path, "ctc/1/units.txt"), join(models.path, "ctc/1/inner.txt"));

  afterAll(async () => {
    await models[Symbol.asyncDispose]();
    await rm(outside, { recursive: true });
  });

  /** What the backend and the agent of the program have seen. */
  const seen: unknown[] = [];

  const agent: RepositoryAgent = (_action, { parameters }) => void seen.push(parameters);

  const options = {
    modelRepository: models.path,
    modelControlMode: "explicit",
    logger: lineLogger(
      () => {},
      () => "default",
    ),
    backends: { plain: fakeBackend() },
    repositoryAgents: { agent },
  } as const;

  const server = useServer(() => ({ triton: options }));

  /** All files below the folder outside, with their contents. */
  async function evidence(): Promise<Readonly<Record<string, string>>> {
    const names = (await readdir(outside, { recursive: true })).sort();
    const contents = names.map((name) => readFile(join(outside, name), "hex").catch(() => "a directory"));
    return Object.fromEntries((await Promise.all(contents)).map((content, i) => [names[i], content]));
  }

  const UP = "$$TRITON_MODEL_DIRECTORY/../../outside";

  /** Attacks by the model that they load: the parameter, or field, at which each is refused, and the configuration. */
  const attacks: readonly (readonly [model: string, parameter: string, config: Config])[] = [
    ["onnx", "library", onnx({ library: `${outside}/evil.so`, engine: "native" })],
    ["onnx", "library", onnx({ library: "../evil.so" })],
    ["onnx", "library", onnx({ library: "libevil.so" })],
    ["onnx", "library", onnx({ library: "\\\\host\\share\\evil.dll" })],
    ...[
      "session.optimized_model_filepath",
      "session.optimized_model_external_initializers_file_name",
      "session.collect_node_memory_stats_to_file",
      "session.node_partition_config_file",
      "session.model_external_initializers_file_folder_path",
      "session.enable_profiling",
      "session.one_of_a_later_release",
      "optimization.memory_optimizer_config",
    ].map((name) => ["onnx", name, onnx({ [name]: `${outside}/secret` })] as const),
    ["onnx", "session.optimized_model_filepath", onnx({ "session.optimized_model_filepath": "made.onnx" })],
    ...[
      ["tensorrt", "trt_engine_cache_path"],
      ["tensorrt", "trt_timing_cache_path"],
      ["tensorrt", "trt_engine_cache_prefix"],
      ["tensorrt", "trt_extra_plugin_lib_paths"],
      ["tensorrt", "trt_ep_context_file_path"],
      ["tensorrt", "int8_calibration_table_name"],
      ["openvino", "cache_dir"],
      ["openvino", "load_config"],
      ["coreml", "ModelCacheDirectory"],
      ["qnn", "backend_path"],
      ["qnn", "profiling_file_path"],
      ["vitisai", "config_file"],
      ["migraphx", "migraphx_model_cache_dir"],
      ["cuda", "dump_everything_to"],
    ].map(([name, option]) => ["onnx", option!, accelerated(name!, { [option!]: outside })] as const),
    ["python", "EXECUTION_ENV_PATH", python(join(outside, "environment"))],
    ["python", "EXECUTION_ENV_PATH", python("environment")],
    ["python", "EXECUTION_ENV_PATH", python("")],
    ["python", "EXECUTION_ENV_PATH", python(` ${join(models.path, "python")}`)],
    ["python", "EXECUTION_ENV_PATH", python(UP)],
    ["python", "EXECUTION_ENV_PATH", python(`file://${outside}/environment`)],
    [
      "stories",
      "prefix_directory",
      withParameters("text_generation", { prefix_directory: `${outside}/made` }),
    ],
    ["stories", "prefix_directory", withParameters("llamacpp", { prefix_directory: `${outside}/made` })],
    ["stories", "file", withParameters("text_generation", { file: `${outside}/secret` })],
    ["stories", "file", withParameters("text_generation", { file: "../../../outside/model.onnx" })],
    ["ctc", "vocabulary", ctc({ vocabulary: `${outside}/secret` })],
    ...["../../secret", "link.txt", "folder/secret", `file://${outside}/secret`, "s3://bucket/units.txt"].map(
      (path) => ["ctc", "vocabulary", ctc({ vocabulary: path })] as const,
    ),
    ...["hot_words", "hotwords_path", "ngram", "lm_path"].map(
      (name) =>
        [
          "ctc",
          name,
          ctc({ vocabulary: "units.txt", method: "greedy", [name]: `${outside}/secret` }),
        ] as const,
    ),
    ["plain", "urls", withParameters("remote", { urls: "http://127.0.0.1:9" })],
    ["plain", "urls", withParameters("remote", { urls: "unix:/run/docker.sock" })],
    ...[
      "/etc/passwd",
      "//etc/passwd",
      "a,/etc/passwd",
      'prefix={"file": "/etc/passwd"}',
      "../../secret",
      "notes/../../../secret",
      "~/secret",
      "$HOME/secret",
      UP,
      "file:///etc/passwd",
      "http://169.254.169.254/latest",
      "s3://bucket/secret",
      "C:\\secret",
      "C:/secret",
      "\\\\host\\share",
      "..\\secret",
      "unix:/run/docker.sock",
    ].map((text) => ["plain", "anything", plain({ anything: text })] as const),
    ["plain", "home", { ...withParameters("identity", { home: `${outside}/secret` }), ...io }],
    [
      "plain",
      "place",
      {
        ...plain({}),
        model_repository_agents: { agents: [{ name: "agent", parameters: { place: `${outside}/secret` } }] },
      },
    ],
    [
      "plain",
      "MD5:../../secret",
      {
        ...plain({}),
        model_repository_agents: { agents: [{ name: "checksum", parameters: { "MD5:../../secret": "0" } }] },
      },
    ],
    ["onnx", "default_model_filename", { backend: "onnxruntime", default_model_filename: `../../../secret` }],
    [
      "plain",
      "label_filename",
      { ...plain({}), output: [{ ...io.output[0], label_filename: "../../secret" }] },
    ],
    [
      "plain",
      "data file",
      {
        ...plain({}),
        model_warmup: [
          {
            name: "warm",
            batch_size: 1,
            inputs: { x: { data_type: "TYPE_FP32", dims: [1], input_data_file: "../../../secret" } },
          },
        ],
      },
    ],
    ["plain", "../../secret", { backend: "../../secret", ...io }],
    ["plain", "../../secret", { ...plain({}), runtime: "../../secret" }],
  ];

  describe("the configuration of a load request", () => {
    it.each([...new Set(attacks.map(([model]) => model))])(
      "names no path that the operator did not allow: %s",
      async (attacked) => {
        const before = await evidence();
        for (const [i, [model, parameter, config]] of attacks.entries()) {
          if (model !== attacked) continue;
          const client = server.clients[i % 2]!;
          const given = { config: JSON.stringify(config) };
          const error = await client.loadModel(model, given).catch((thrown: unknown) => thrown);
          expect(error, `attack ${i}`).toMatchObject({
            code: "INVALID_ARG",
            message: expect.stringContaining(parameter),
          });
          expect(error).toMatchObject({ message: expect.stringContaining(`'${model}'`) });
          expect(seen, `attack ${i}`).toEqual([]);
        }
        expect(await evidence()).toEqual(before);
        expect(existsSync("made.onnx")).toBe(false);
        await server.serves();
      },
    );

    it("may name paths inside the repository, and texts that are not paths", async () => {
      const allowed: readonly (readonly [string, Config])[] = [
        ["ctc", ctc({ vocabulary: "units.txt" })],
        ["ctc", ctc({ vocabulary: "inner.txt" })],
        ["ctc", ctc({ vocabulary: join(models.path, "ctc/1/units.txt") })],
        ["onnx", onnx({ "session.log_id": "a", "session.load_model_format": "ONNX", engine: "native" })],
        ["onnx", onnx({ "session.set_denormal_as_zero": "1", gpu_mem_limit: "0" })],
        ["plain", plain({ anything: join(models.path, "plain/1/note.txt") })],
        ["plain", plain({ anything: "1/255, image/png; a..b ... 50% é" })],
      ];
      for (const [i, [model, config]] of allowed.entries())
        await server.clients[i % 2]!.loadModel(model, { config: JSON.stringify(config) });
    });

    it("keeps the paths that the operator wrote, while the rest changes", async () => {
      const home = join(outside, "secret");
      for (const client of server.clients) {
        await client.loadModel("plain", {
          config: { ...plain({ home }), instance_group: [{ count: 2, kind: "KIND_CPU" }] },
        });
        await expect(client.loadModel("plain", { config: plain({ home: `${home}s` }) })).rejects.toThrow(
          "'home' of model 'plain': expected no path outside of the model repository",
        );
        await expect(client.loadModel("plain", { config: plain({ other: home }) })).rejects.toThrow(
          "'other'",
        );
      }
    });

    it("that is refused leaves the version in service, and is not the next load's", async () => {
      const { triton, clients } = server;
      const config = plain({ anything: "/etc/passwd" });
      const parameters = () => Object.keys(serviceOf(triton).modelConfig("plain", "").parameters);
      for (const client of clients) {
        await client.loadModel("plain", { config: plain({ mine: "1" }) });
        await expect(client.loadModel("plain", { config })).rejects.toThrow("'anything'");
        expect([await client.isModelReady("plain"), parameters()]).toEqual([true, ["mine"]]);
        await client.loadModel("plain");
        await client.unloadModel("plain");
        await client.loadModel("plain");
        expect(parameters()).toEqual(["home"]);
      }
    });

    it("is checked again when a file of the model has become a link that leads out", async () => {
      await models.write({ "ctc/1/late.txt": "<blank> 0\nb 1\n" });
      const [client] = server.clients;
      await client.loadModel("ctc", { config: ctc({ vocabulary: "late.txt" }) });
      await models.delete("ctc/1/late.txt");
      await symlink(join(outside, "secret"), join(models.path, "ctc/1/late.txt"));
      const config = ctc({ vocabulary: "late.txt", beam: "2" });
      await expect(client.loadModel("ctc", { config })).rejects.toThrow("'vocabulary'");
      // The directory has changed, so a load without a configuration reads that of the operator.
      await client.loadModel("ctc");
      expect(serviceOf(server.triton).modelConfig("ctc", "").parameters.vocabulary?.stringValue).toBe(
        "units.txt",
      );
    });
  });

  describe("who may name any path", () => {
    it("the program in process", async () => {
      const { triton } = server;
      await triton.loadModel("plain", { config: JSON.stringify(plain({ anything: "/etc/passwd" })) });
      // A client may change nothing about what the program chose, except by a configuration of its own.
      for (const client of server.clients) await client.loadModel("plain");
      expect(serviceOf(triton).modelConfig("plain", "").parameters.anything?.stringValue).toBe("/etc/passwd");
      await triton.unloadModel("plain");
    });

    it("clients of a server that allows files of loads", async () => {
      const open = await openServer({ triton: { ...options, allowModelFileOverride: true } });
      for (const [i, client] of open.clients.entries()) {
        await client.loadModel("plain", { config: plain({ anything: "/etc/passwd" }) });
        const made = join(outside, `made-${i}.onnx`);
        await client.loadModel("onnx", { config: onnx({ "session.optimized_model_filepath": made }) });
        expect(existsSync(made)).toBe(true);
      }
    });
  });
});

/* The command is attacked over its own ports. `load-configurations.test.ts` has the attacks in their breadth. */

const command = join(repositoryRoot, "packages/cli/dist/main.js");

const IO =
  'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }';

const MODEL = "export default (requests) => requests.map(({ inputs }) => ({ y: inputs.x }));\n";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "tritonjs-attack-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Starts the command in an empty directory, and returns its clients and what it has written. */
async function start(...args: string[]) {
  const models = await RepositoryOnDisk.create({
    "m/1/model.mjs": MODEL,
    "m/2/model.mjs": MODEL,
    "m/config.pbtxt": `backend: "javascript" version_policy { all {} } ${IO}`,
    "pair/1/": "",
    "pair/2/": "",
  });
  onTestFinished(() => models[Symbol.asyncDispose]());
  const place = await folder();
  const program = Program.node(
    command,
    [
      ...["serve", `--model-repository=${models.path}`, "--model-control-mode=explicit", "--load-model=m"],
      ...["http", "grpc", "metrics"].map((name) => `--${name}-port=0`),
      ...["http", "grpc"].map((name) => `--${name}-address=127.0.0.1`),
      ...args,
    ],
    place,
  );
  onTestFinished(async () => {
    program.signal("SIGTERM");
    await program.ended;
  });
  const log = await program.untilOutput("Started Metrics Service", "stderr");
  const address = (name: string) => new RegExp(`Started ${name} at ([\\d.]+:\\d+)`).exec(log)![1]!;
  const clients = [
    new HttpClient(address("HTTPService")),
    new GrpcClient(address("GRPCInferenceService")),
  ] as const;
  onTestFinished(async () => {
    for (const client of clients) await client.close();
  });
  const written = async () => [
    ...(await readdir(place)),
    ...(await readdir(models.path, { recursive: true })).sort(),
  ];
  return { clients, place, written };
}

const config = (backend: string, parameters: Readonly<Record<string, string>>, more = {}) => ({
  backend,
  version_policy: { all: {} },
  input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
  output: [{ name: "y", data_type: "TYPE_FP32", dims: [1] }],
  parameters: Object.fromEntries(
    Object.entries(parameters).map(([name, text]) => [name, { string_value: text }]),
  ),
  ...more,
});
const rollout = (directory: string) => ({ rollout_from: "1", rollout_to: "2", rollout_directory: directory });
const step = { model_name: "m", model_version: -1, input_map: { x: "x" }, output_map: { y: "y" } };
const ensemble = { backend: "", platform: "ensemble", ensemble_scheduling: { step: [step] } };

describe("a load request to the command", () => {
  it("writes and runs nothing that it names, with a frontend thread", async () => {
    const { clients, place, written } = await start("--frontend-threads=1");
    const attacks: readonly (readonly [model: string, names: string, config: ReturnType<typeof config>])[] = [
      ["m", "rollout_directory", config("javascript", rollout(join(place, "made")))],
      ["m", "rollout_directory", config("javascript", rollout("made"))],
      ["pair", "rollout_directory", config("", rollout("made"), ensemble)],
      ["m", "EXECUTION_ENV_PATH", config("python", { EXECUTION_ENV_PATH: place })],
      ["m", "prefix_directory", config("text_generation", { prefix_directory: join(place, "made") })],
      ["m", "default_model_filename", config("javascript", {}, { default_model_filename: "../../../x.mjs" })],
    ];
    const before = await written();
    for (const client of clients) {
      for (const [model, names, given] of attacks) {
        const error = await client.loadModel(model, { config: given }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: "INVALID_ARG", message: expect.stringContaining(names) });
      }
      const files = { "1/model.mjs": new TextEncoder().encode(MODEL) };
      await expect(client.loadModel("m", { config: config("javascript", {}), files })).rejects.toThrow(
        "Files of load requests are disabled",
      );
      // The next load is the operator's.
      await client.loadModel("m");
      const { outputs } = await client.infer("m", {
        inputs: { x: { datatype: "FP32", shape: [1], data: [7] } },
      });
      expect([...outputs.y!.data]).toEqual([7]);
    }
    expect(await written()).toEqual(before);
  });
});
