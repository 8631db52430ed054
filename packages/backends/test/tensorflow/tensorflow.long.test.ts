import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const folder = join(repositoryRoot, "examples", "tfjs-model", "models");
const layersModel = join(folder, "flowers-layers", "1", "model.json");
const graphModel = join(folder, "flowers-graph", "1", "model.json");

const setosa = [5.1, 3.5, 1.4, 0.2];
const virginica = [7.7, 2.6, 6.9, 2.3];

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe("a TensorFlow.js model that is bound", () => {
  it.each(["wasm", "cpu"] as const)(
    "runs on %s, and a GraphModel answers as the LayersModel",
    async (runtime) => {
      const layers = triton.bind({
        modelName: "layers",
        inferFunc: tensorflow({ model: layersModel, runtime }),
      });
      const graph = triton.bind({
        modelName: "graph",
        inferFunc: tensorflow({ model: graphModel, runtime }),
      });
      expect(layers.metadata()).toMatchObject({
        platform: "tensorflow_tfjs",
        inputs: [{ name: "hidden_input", datatype: "FP32", shape: [-1, 4] }],
        outputs: [{ name: "scores", datatype: "FP32", shape: [-1, 3] }],
      });
      expect(graph.metadata()).toMatchObject({
        inputs: [{ name: "measures", datatype: "FP32", shape: [-1, 4] }],
        outputs: [
          { name: "scores", datatype: "FP32", shape: [-1, 3] },
          { name: "kind", datatype: "INT64", shape: [-1] },
        ],
      });
      const flowers = [setosa, virginica];
      const { scores } = await triton.infer("layers", { hidden_input: flowers });
      const answer = await triton.infer("graph", { measures: flowers });
      expect([...answer.scores!.data].map((x) => Number(x).toFixed(4))).toEqual(
        [...scores!.data].map((x) => Number(x).toFixed(4)),
      );
      expect([...answer.kind!.data]).toEqual([0n, 2n]);
      expect(layers.instances()[0]).toMatchObject({ details: { runtime } });
    },
  );

  it("batches, and runs in processes too", async () => {
    const handle = triton.bind({
      modelName: "m",
      inferFunc: tensorflow({ model: graphModel, runtime: "cpu" }),
      config: {
        instanceGroup: { isolation: "process" },
        batcher: { maxQueueDelayMicroseconds: 50_000, preferredBatchSize: [3] },
      },
    });
    await handle.ready();
    const answers = await Promise.all(
      [setosa, virginica, setosa].map((measures) => triton.infer("m", { measures: [measures] })),
    );
    expect(answers.map(({ kind }) => kind!.data[0])).toEqual([0n, 2n, 0n]);
    expect(handle.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 1 });
  });

  it("is rejected by bind when it is missing or cannot be described", () => {
    const bind = (model: string, runtime?: "tfjs-node") =>
      thrownBy(() =>
        triton.bind({ modelName: "m", inferFunc: tensorflow({ model, ...(runtime && { runtime }) }) }),
      );
    expect(bind("/nowhere/model.json")).toMatch(
      /^NOT_FOUND cannot find the TensorFlow model '\/nowhere\/model.json'/,
    );
    expect(bind(join(repositoryRoot, "package.json"))).toMatch(
      /^INVALID_ARG .* is not a TensorFlow.js model: it has no modelTopology/,
    );
    expect(bind(folder)).toMatch(
      /^NOT_FOUND cannot open the TensorFlow model '.*models\/saved_model\.pb': ENOENT/,
    );
    expect(bind(layersModel, "tfjs-node")).toMatch(
      /^UNAVAILABLE TensorFlow.js is not installed: install @tensorflow\/tfjs-node/,
    );
  });
});

/** The checked-in graph under another name. */
async function graphFiles(
  name: string,
  leaveOut: readonly string[] = [],
): Promise<Record<string, Uint8Array>> {
  const files = ["model.json", "group1-shard1of2.bin", "group1-shard2of2.bin"].filter(
    (file) => !leaveOut.includes(file),
  );
  return Object.fromEntries(
    await Promise.all(
      files.map(async (file) => [
        `${name}/1/${file}`,
        await readFile(join(folder, "flowers-graph", "1", file)),
      ]),
    ),
  );
}

async function indexOf(
  files: RepositoryFiles,
): Promise<{ reason: string; served: Triton; end(): Promise<void> }> {
  const models = await RepositoryOnDisk.create(files);
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  const served = new Triton({
    logger,
    extensions: [repository({ modelRepository: models.path, exitOnError: false })],
  });
  await served.ready().catch(() => {});
  const rows = await serviceOf(served).repositoryIndex(false);
  const end = async () => {
    await served.close();
    await models[Symbol.asyncDispose]();
  };
  return { reason: rows.find(({ name }) => name === "m")?.reason ?? "", served, end };
}

describe("a TensorFlow.js model of a repository", () => {
  it("completes its configuration by Triton's rules", async () => {
    const { served, reason, end } = await indexOf(await graphFiles("m"));
    expect(reason).toBe("");
    expect(serviceOf(served).modelConfig("m", "")).toMatchObject({
      backend: "tensorflow",
      platform: "tensorflow_tfjs",
      maxBatchSize: 4,
      dynamicBatching: {},
      instanceGroup: [{ kind: "KIND_CPU", count: 2 }],
      input: [{ name: "measures", dataType: "TYPE_FP32", dims: [4] }],
      output: [
        { name: "scores", dataType: "TYPE_FP32", dims: [3] },
        { name: "kind", dataType: "TYPE_INT64", dims: [1], reshape: { shape: [] } },
      ],
    });
    const { kind } = await served.infer("m", { measures: [virginica] });
    expect([...kind!.data]).toEqual([2n]);
    await end();
  });

  it.each<[what: string, files: () => Promise<RepositoryFiles>, reason: RegExp]>([
    [
      "a missing shard",
      () => graphFiles("m", ["group1-shard2of2.bin"]),
      /the weights '.*group1-shard2of2.bin' of the TensorFlow.js model '.*' is missing/,
    ],
    [
      "a short shard",
      async () => ({ ...(await graphFiles("m")), "m/1/group1-shard2of2.bin": "short" }),
      /expected 272 bytes, got 55/,
    ],
    [
      "a broken model.json",
      async () => ({ "m/1/model.json": "{" }),
      /cannot read the TensorFlow.js model '.*'/,
    ],
    [
      "weights outside of its directory",
      async () => {
        const files = await graphFiles("m");
        const text = Buffer.from(files["m/1/model.json"]!)
          .toString()
          .replace("group1-shard1of2.bin", "../../../etc/passwd");
        return { ...files, "m/1/model.json": text };
      },
      /weights of the TensorFlow.js model '.*': expected a path inside the model's directory, got '.*passwd'/,
    ],
    [
      "an unknown operation",
      async () => {
        const files = await graphFiles("m");
        return {
          ...files,
          "m/1/model.json": Buffer.from(files["m/1/model.json"]!)
            .toString()
            .replace('"Relu"', '"Frobnicate"'),
        };
      },
      /TensorFlow\.js lacks its operations Frobnicate \(node 'relu'\)/,
    ],
    [
      "a frozen graph",
      async () => ({ "m/1/model.graphdef": "x" }),
      /cannot read the frozen graph '.*model\.graphdef': expected a protobuf message 'Graph', got 1 bytes/,
    ],
    [
      "a broken SavedModel",
      async () => ({ "m/1/model.savedmodel/saved_model.pb": "x" }),
      /cannot read the SavedModel '.*model\.savedmodel': expected a protobuf message 'SavedModel', got 1 bytes/,
    ],
    [
      "a missing GPU",
      async () => ({
        ...(await graphFiles("m")),
        "m/config.pbtxt": 'backend: "tensorflow" instance_group [ { kind: KIND_GPU gpus: [ 63 ] } ]',
      }),
      /^Unavailable: TensorFlow\.js is not installed: install @tensorflow\/tfjs-node-gpu/,
    ],
    [
      "an unknown runtime",
      async () => ({
        ...(await graphFiles("m")),
        "m/config.pbtxt":
          'backend: "tensorflow" parameters { key: "runtime" value { string_value: "cuda" } }',
      }),
      /parameter 'runtime' of model 'm': expected one of tfjs-node-gpu, tfjs-node, wasm, cpu, got 'cuda'/,
    ],
  ])("%s is the reason in the index, and the others serve", async (_what, files, expected) => {
    const good = await graphFiles("good");
    const { served, reason, end } = await indexOf({ ...good, ...(await files()) });
    expect(reason).toMatch(expected);
    const { kind } = await served.infer("good", { measures: [setosa] });
    expect([...kind!.data]).toEqual([0n]);
    await end();
  });

  it("accepts integers within the safe range and rejects others", async () => {
    const node = (name: string, op: string, input: string[], attr: object) => ({ name, op, input, attr });
    const shape = { dim: [{ size: "-1" }, { size: "2" }] };
    const type = { type: "DT_INT64" };
    const model = {
      format: "graph-model",
      signature: {
        inputs: { x: { name: "x:0", dtype: "DT_INT64", tensorShape: shape } },
        outputs: { y: { name: "y:0", dtype: "DT_INT64", tensorShape: shape } },
      },
      modelTopology: {
        versions: { producer: 1 },
        node: [
          node("x", "Placeholder", [], { dtype: type, shape: { shape } }),
          node("y", "AddV2", ["x", "x"], { T: type }),
        ],
      },
      weightsManifest: [],
    };
    const { served, end } = await indexOf({ "m/1/model.json": JSON.stringify(model) });
    const { y } = await served.infer("m", { x: [[3n, -4n]] });
    expect([...y!.data]).toEqual([6n, -8n]);
    expect(await outcomeOf(served.infer("m", { x: [[2n ** 40n, 0n]] }))).toBe(
      "INVALID_ARG input 'x': expected integers of 32 bits, which TensorFlow.js has, got 1099511627776",
    );
    await end();
  });
});
