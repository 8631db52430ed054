import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

/** Node reports each worker thread that starts. */
let threads = 0;
const onThread = () => void threads++;
beforeEach(() => {
  threads = 0;
  subscribe("worker_threads", onThread);
});
afterEach(() => void unsubscribe("worker_threads", onThread));

const files = (config: string, model = identityOnnx("FLOAT", ["batch", 2])) => ({
  "m/config.pbtxt": `backend: "onnxruntime" ${config}`,
  "m/1/model.onnx": model,
});
const logger = { error() {}, warn() {}, info() {}, debug() {} };
const options = { modelControlMode: "explicit", logger } as const;
const negation = onnxModel({
  name: "negation",
  opset: 17,
  inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 2] }],
  outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 2] }],
  nodes: [{ op: "Neg", inputs: ["x"], outputs: ["y"] }],
});

describe("a repository model", () => {
  it("uses one thread for each instance, including the one that describes the model", async () => {
    await using models = await RepositoryOnDisk.create(files("instance_group [ { count: 3 } ]"));
    await using triton = new Triton({ ...options, modelRepository: models.path });
    await triton.loadModel("m");
    expect(threads).toBe(3);
    expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
  });

  it("reuses the threads of an unloaded model and answers from its own file", async () => {
    await using models = await RepositoryOnDisk.create(files("instance_group [ { count: 1 } ]"));
    await using triton = new Triton({ ...options, modelRepository: models.path });
    await triton.loadModel("m");
    await triton.unloadModel("m");
    const before = threads;
    await models.write({ "m/1/model.onnx": negation });
    await triton.loadModel("m");
    expect(threads - before).toBe(0);
    expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([-1, -2]);
  });

  it("leaves its thread to the next model when it is rejected after opening", async () => {
    const wrong = 'instance_group [ { count: 1 } ] output [ { name: "z" data_type: TYPE_FP32 dims: [ 2 ] } ]';
    await using models = await RepositoryOnDisk.create(files(wrong));
    await using triton = new Triton({ ...options, modelRepository: models.path });
    expect(await outcomeOf(triton.loadModel("m"))).toContain("unexpected inference output 'z'");
    const before = threads;
    await models.write(files("instance_group [ { count: 1 } ]"));
    await triton.loadModel("m");
    expect(threads - before).toBe(0);
    expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
  });

  it("ends its thread when it cannot be opened, and the error names the reason", async () => {
    const broken = onnxModel({
      name: "broken",
      opset: 17,
      inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch"] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch"] }],
      nodes: [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
    });
    await using models = await RepositoryOnDisk.create(files("", broken));
    await using triton = new Triton({ ...options, modelRepository: models.path });
    expect(await outcomeOf(triton.loadModel("m"))).toMatch(/cannot load the ONNX model .*NoSuchOperator/);
    await models.write(files(""));
    await triton.loadModel("m");
    expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
  });

  it("is opened in a process, without a thread, when its instances are processes", async () => {
    const webgpu = 'execution_accelerators { gpu_execution_accelerator : [ { name : "webgpu" } ] }';
    const config = `instance_group [ { count: 1 } ] optimization { ${webgpu} }`;
    await using models = await RepositoryOnDisk.create(files(config));
    await using triton = new Triton({ ...options, modelRepository: models.path });
    await triton.loadModel("m");
    expect(threads).toBe(0);
    expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
  });
});
