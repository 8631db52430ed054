import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const onnx = (more = "") => `backend: "openvino" default_model_filename: "model.onnx" ${more}`;

let models: RepositoryOnDisk;
let triton: Triton;
const lines: string[] = [];

beforeAll(async () => {
  const parameter = (key: string, value: string) =>
    `parameters [ { key: "${key}" value { string_value: "${value}" } } ]`;
  models = await RepositoryOnDisk.create({
    "runs/1/model.onnx": identityOnnx("FLOAT", ["n"]),
    "runs/config.pbtxt": onnx(
      `${parameter("INFERENCE_NUM_THREADS", "1")} ${parameter("TARGET_DEVICE", "NPU")} ${parameter("NUM_STREAMS", "AUTO")}`,
    ),
    "gpu/1/model.onnx": identityOnnx("FLOAT", ["n"]),
    "gpu/config.pbtxt": onnx("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"),
    "ir/1/model.xml": "<net/>",
    "ir/1/model.bin": "",
    "paddle/1/model.pdmodel": "",
    "paddle/config.pbtxt": 'backend: "openvino" default_model_filename: "model.pdmodel"',
    "saved/1/model.saved_model/saved_model.pb": "",
    "saved/config.pbtxt": 'backend: "openvino" default_model_filename: "model.saved_model"',
  });
  const write = (message: string) => void lines.push(message);
  triton = new Triton({
    modelRepository: models.path,
    exitOnError: false,
    gpus: [0],
    logger: { error: write, warn: write, info: write, debug: write },
  });
  await triton.ready();
});

afterAll(async () => {
  await triton.close();
  await models[Symbol.asyncDispose]();
});

const reasonOf = async (name: string) =>
  (await triton.service.repositoryIndex(false)).find((row) => row.name === name)?.reason ?? "";

it("ONNX Runtime runs ONNX models of the backend openvino, and the log says so", async () => {
  const { y } = await triton.infer("runs", { x: Float32Array.of(1, 2) });
  expect(y!.data).toEqual(Float32Array.of(1, 2));
  expect(lines).toContain("model 'runs': ONNX Runtime runs this model of backend 'openvino'");
  expect(lines).toContain(
    "model 'runs': parameters 'TARGET_DEVICE', 'NUM_STREAMS' of OpenVINO have no effect in ONNX Runtime",
  );
});

it("instances on a GPU are refused with Triton's words", async () => {
  expect(await reasonOf("gpu")).toContain("Triton OpenVINO backend supports only Kind CPU and AUTO");
});

it("other files are refused with the command that converts them", async () => {
  expect(await reasonOf("ir")).toMatch(/model\.xml' runs only in OpenVINO.*torch\.onnx\.export/);
  expect(await reasonOf("paddle")).toContain("convert it: paddle2onnx --model_dir");
  expect(await reasonOf("saved")).toContain("convert it: python -m tf2onnx.convert --saved-model");
});
