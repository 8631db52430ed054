import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { describe, expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

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

  it("may name them where the operator allows it", async () => {
    const { clients, place } = await start("--allow-model-file-override=true");
    await clients[0].loadModel("m", { config: config("javascript", rollout(join(place, "made"))) });
    await expect.poll(() => readdir(place)).toEqual(["made"]);
  });
});
