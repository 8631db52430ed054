import { batch, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { type GpuOptions, gpu } from "../../src/gpu/index.js";

const onGpus = (groups: string) => `${identityConfig()}\ninstance_group [ ${groups} ]`;

function serverOf(models: string, options: GpuOptions, warnings: string[]): Triton {
  return new Triton({
    logger: { error() {}, warn: (text) => void warnings.push(text), info() {}, debug() {} },
    extensions: [repository({ modelRepository: models, exitOnError: false }), gpu(options)],
  });
}

describe("instances of KIND_GPU on a machine without a GPU", () => {
  it("run on the CPU with the fallback, as many as on one GPU, and the log says so once a model", async () => {
    await using models = await RepositoryOnDisk.create({
      "open/config.pbtxt": onGpus("{ kind: KIND_GPU }"),
      "open/1/": "",
      "listed/config.pbtxt": onGpus(
        "{ kind: KIND_GPU count: 3 gpus: [ 0, 1 ] }, { kind: KIND_CPU count: 2 }",
      ),
      "listed/1/": "",
    });
    const warnings: string[] = [];
    await using triton = serverOf(models.path, { numbers: [], fallback: "cpu" }, warnings);
    await triton.ready();
    const groupsOf = (name: string) =>
      serviceOf(triton)
        .model(name, "")
        .config.instanceGroup.map(({ kind, count, gpus }) => ({ kind, count, gpus }));
    expect(groupsOf("open")).toEqual([{ kind: "KIND_CPU", count: 1, gpus: [] }]);
    expect(groupsOf("listed")).toEqual([
      { kind: "KIND_CPU", count: 3, gpus: [] },
      { kind: "KIND_CPU", count: 2, gpus: [] },
    ]);
    const told = warnings.filter((text) => text.includes("KIND_GPU"));
    expect(told.sort()).toEqual(
      ["listed", "open"].map(
        (name) => `the instances of KIND_GPU of model '${name}' run on the CPU: there is no GPU`,
      ),
    );
    expect([...(await triton.infer("listed", { INPUT0: [[1]] })).OUTPUT0!.data]).toEqual([1]);
  });

  it("are refused without it, and with it where the machine has other GPUs", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": onGpus("{ kind: KIND_GPU gpus: [ 2 ] }"),
      "m/1/": "",
    });
    for (const [options, reason] of [
      [{ numbers: [] }, "has kind KIND_GPU but server does not support GPUs"],
      [{ numbers: [0], fallback: "cpu" }, "invalid or unsupported gpu id 2"],
    ] as const) {
      await using triton = serverOf(models.path, options, []);
      await triton.ready();
      const [row] = await serviceOf(triton).repositoryIndex(false);
      expect(row!.reason).toContain(reason);
    }
  });

  it("of a bound model run on the CPU too", async () => {
    await using triton = new Triton({
      extensions: [gpu({ numbers: [], fallback: "cpu" })],
      logger: { error() {}, warn() {}, info() {}, debug() {} },
    });
    const model = triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
      config: { instanceGroup: { kind: "KIND_GPU", count: 2 } },
    });
    expect((await model.inferSample({ x: [4] })).y.get(0)).toBe(8);
    expect(model.instances().map(({ kind }) => kind)).toEqual(["KIND_CPU", "KIND_CPU"]);
  });
});
