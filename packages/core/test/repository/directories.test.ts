import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sample, Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import {
  chainConfig,
  identityConfig,
  RepositoryOnDisk,
} from "../../../../test/support/repository-on-disk.js";

const iris = await readFile(join(repositoryRoot, "examples/quickstart/iris/iris.onnx"));

it("a server serves models of directories beside bound ones", async () => {
  await using models = await RepositoryOnDisk.create({
    "echo/config.pbtxt": identityConfig(),
    "echo/1/": "",
  });
  await using triton = new Triton({ modelRepository: models.path });
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
  expect(await triton.service.repositoryIndex(false)).toEqual([
    { name: "double", version: "1", state: "READY" },
    { name: "echo", version: "1", state: "READY" },
  ]);
});

it("an ONNX model without a configuration gets one from its file", async () => {
  await using models = await RepositoryOnDisk.create({ "iris/1/model.onnx": iris });
  await using triton = new Triton({ modelRepository: models.path });
  await triton.ready();
  const config = triton.service.modelConfig("iris", "");
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
  await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger });
  await triton.ready();
  expect(triton.service.isModelReady("chain", "")).toBe(false);
  const ready = new Promise<void>((resolve) => {
    const stop = triton.service.onChange(() => {
      if (!triton.service.isModelReady("chain", "")) return;
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
  expect(triton.service.isReady()).toBe(true);
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
  await using triton = new Triton({ modelRepository: models.path });
  await triton.ready();
  expect(triton.service.model("m", "").labels.get("OUTPUT0")).toEqual(["cat", "dog"]);
  expect(triton.service.statistics("m", "")[0]?.executionCount).toBe(1);
});

it("a configuration of another name is read where a model has one", async () => {
  await using models = await RepositoryOnDisk.create({
    "a/config.pbtxt": identityConfig(),
    "a/configs/small.pbtxt": identityConfig().replace("max_batch_size: 4", "max_batch_size: 2"),
    "a/1/": "",
    "b/config.pbtxt": identityConfig(),
    "b/1/": "",
  });
  await using triton = new Triton({ modelRepository: models.path, modelConfigName: "small" });
  await triton.ready();
  expect(["a", "b"].map((name) => triton.service.modelConfig(name, "").maxBatchSize)).toEqual([2, 4]);
});

it("namespaces distinguish equal model names of two repositories, also in metrics", async () => {
  await using one = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
  await using two = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
  const modelRepository = [one.path, two.path];
  await using triton = new Triton({ modelRepository, modelNamespacing: true });
  await triton.ready();
  await expect(triton.infer("m", { INPUT0: [[1]] })).rejects.toThrow(
    "There are 2 identifiers of model 'm' in global map, model namespace must be provided to resolve ambiguity.",
  );
  const page = await triton.service.metrics();
  for (const path of modelRepository) expect(page).toContain(`namespace="${path}"`);
});

it("a bound model and a repository model cannot share a name", async () => {
  await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
  await using triton = new Triton({ modelRepository: models.path });
  await triton.ready();
  const bind = () =>
    triton.bind({ modelName: "m", modelVersion: 2, inputs: [], outputs: [], inferFunc: () => [] });
  expect(bind).toThrow("model 'm' version 2 is already bound: choose another name or version");
});
