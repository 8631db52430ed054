import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type Logger, Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const device = {
  modelName: "m",
  inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
  outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
  inferFunc: new URL("../../../core/test/behaviours/fixtures/tells-its-device.mjs", import.meta.url),
} as const;

/** A logger that keeps warnings. */
function keeping(warnings: string[]): Logger {
  return { error() {}, warn: (line) => void warnings.push(line), info() {}, debug() {} };
}

describe.skipIf(process.platform === "win32")("on a machine with two GPUs", () => {
  it("instances run on each listed GPU, with Triton's names, and know their device", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(2));
    await using triton = new Triton();
    const handle = triton.bind({
      ...device,
      config: { maxBatchSize: 1, instanceGroup: { kind: "KIND_GPU", count: 1, gpus: [0, 1] } },
    });
    await handle.ready();
    expect(handle.instances().map(({ name, kind, deviceId }) => [name, kind, deviceId])).toEqual([
      ["m_0_0", "KIND_GPU", 0],
      ["m_0_0", "KIND_GPU", 1],
    ]);
    const seen = new Set<string>();
    while (seen.size < 2) {
      const answers = await Promise.all([1, 2, 3, 4].map((x) => handle.infer({ x: [[x]] })));
      for (const { y } of answers) seen.add([...y.data].join());
    }
    expect([...seen].sort()).toEqual(["0,0", "1,1"]);
  });

  it("a group without a list uses all GPUs", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(2));
    await using triton = new Triton();
    const handle = triton.bind({ ...device, config: { instanceGroup: { kind: "KIND_GPU", count: 2 } } });
    expect(handle.instances().map(({ name, deviceId }) => `${name} ${deviceId}`)).toEqual([
      "m_0_0 0",
      "m_0_0 1",
      "m_0_1 0",
      "m_0_1 1",
    ]);
  });

  it("a missing GPU is rejected with Triton's text", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(2));
    await using triton = new Triton();
    const bind = () => triton.bind({ ...device, config: { instanceGroup: { kind: "KIND_GPU", gpus: [2] } } });
    expect(thrownBy(bind)).toContain(
      "instance group m_0 of model m specifies invalid or unsupported gpu id 2. The GPUs are: 0, 1",
    );
  });
});

describe.skipIf(process.platform === "win32")("on a machine without a GPU", () => {
  it("KIND_GPU is rejected with Triton's text, and the reason is logged", async () => {
    await using _ = await fakeNvidiaSmi('echo "No devices were found"; exit 6');
    const warnings: string[] = [];
    await using triton = new Triton({ logger: keeping(warnings) });
    const bind = () => triton.bind({ ...device, config: { instanceGroup: { kind: "KIND_GPU" } } });
    expect(thrownBy(bind)).toContain(
      "instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
    );
    expect(thrownBy(bind)).toContain("no GPUs are available");
    expect(warnings.filter((line) => line.includes("GPU"))).toEqual([
      expect.stringContaining("no GPU can be used for instances: nvidia-smi reports: No devices were found"),
    ]);
  });

  it("KIND_AUTO runs on the CPU, and GPUs are not looked for unless a group lists some", async () => {
    await using _ = await fakeNvidiaSmi("exit 3");
    const warnings: string[] = [];
    await using triton = new Triton({ logger: keeping(warnings) });
    const plain = triton.bind({ ...device, config: { instanceGroup: { count: 1 } } });
    await plain.ready();
    expect(warnings).toEqual([]);
    const listed = triton.bind({
      ...device,
      modelName: "listed",
      config: { instanceGroup: { kind: "KIND_CPU" } },
    });
    expect([...(await listed.infer({ x: [[1]] })).y.data]).toEqual([-1, -1]);
    expect(warnings).toEqual([]);
  });

  it("a repository model that needs a GPU is not loaded, and the others are", async () => {
    await using models = await RepositoryOnDisk.create({
      "wants/config.pbtxt": identityConfig("instance_group [ { kind: KIND_GPU } ]"),
      "wants/1/": "",
      "does-without/config.pbtxt": identityConfig(),
      "does-without/1/": "",
    });
    await using _ = await fakeNvidiaSmi('echo "No devices were found"; exit 6');
    const warnings: string[] = [];
    await using triton = new Triton({
      modelRepository: models.path,
      exitOnError: false,
      logger: keeping(warnings),
    });
    await triton.ready();
    const index = await triton.service.repositoryIndex(false);
    expect(index.map(({ name, state, reason }) => [name, state, reason])).toEqual([
      ["does-without", "READY", undefined],
      [
        "wants",
        "UNAVAILABLE",
        expect.stringContaining(
          "instance group wants_0 of model wants has kind KIND_GPU but no GPUs are available",
        ),
      ],
    ]);
    expect(warnings.some((line) => line.includes("No devices were found"))).toBe(true);
  });
});

describe("an ONNX model on a GPU", () => {
  it("runs with CUDA where it works, and otherwise on the CPU with a warning that names the reason", async () => {
    const warnings: string[] = [];
    await using triton = new Triton({ gpus: [0, 1] });
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({
        model: identityOnnx("FLOAT", ["n"]),
        onWarning: (message) => warnings.push(message),
      }),
      config: { instanceGroup: { kind: "KIND_GPU", gpus: [1] } },
    });
    expect([...(await triton.infer("m", { x: Float32Array.of(1, 2) })).y!.data]).toEqual([1, 2]);
    const { name, deviceId, details } = handle.instances()[0]!;
    expect([name, deviceId]).toEqual(["m_0_0", 1]);
    const cuda = details.executionProvider === "cuda";
    if (!cuda) expect(details.executionProvider).toBe("cpu");
    expect(warnings).toEqual(
      cuda
        ? []
        : [expect.stringMatching(/^model 'm': execution provider 'cuda' cannot be used: .+; trying 'cpu'$/)],
    );
  });

  it("is not loaded when it requires CUDA and CUDA does not work", async () => {
    await using triton = new Triton({ gpus: [0] });
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model: identityOnnx("FLOAT", ["n"]), strictProviders: true }),
      config: { instanceGroup: { kind: "KIND_GPU" } },
    });
    expect(await outcomeOf(handle.ready())).toMatch(
      /^(done|INVALID_ARG cannot load the ONNX model given as bytes: .*(CUDA|Cuda|cuda|shared library))/,
    );
  });
});
