import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { gpu } from "@tritonjs/backends/gpu";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type Logger, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { readPrototxt } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { nativeOnly, onnxOptionsOf, providersForWorker } from "../../src/onnxruntime/onnx-options.js";
import { needsProcess, providersFor, sessionOptions } from "../../src/onnxruntime/ort-session.js";

const onGpu = (id: number) => ({ kind: "KIND_GPU", id }) as const;

const onCpu = { kind: "KIND_CPU", id: 0 } as const;

/** Options read from a configuration. */
function optionsFor(config: string, settings: Readonly<Record<string, string>> = {}) {
  return onnxOptionsOf(readPrototxt(`name: "m" ${config}`), settings);
}

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`;

const gpuGroup = "instance_group { kind: KIND_GPU gpus: 1 }";

const accelerator = (kind: string, name: string, ...parameters: readonly (readonly [string, string])[]) =>
  `optimization { execution_accelerators { ${kind}_execution_accelerator { name: "${name}" ${parameters
    .map(([key, value]) => `parameters { key: "${key}" value: "${value}" }`)
    .join(" ")} } } }`;

describe("the execution providers of an instance", () => {
  it("default to those of its device", () => {
    expect(providersFor(onCpu, undefined)).toEqual(["cpu"]);
    expect(providersFor(onGpu(1), undefined)).toEqual([{ name: "cuda", deviceId: 1 }, "cpu"]);
  });

  it("get the device id of an NVIDIA GPU unless one was given", () => {
    const asked = ["tensorrt", { name: "cuda", deviceId: 0 }, "webgpu", "cpu"];
    expect(providersFor(onGpu(3), asked)).toEqual([
      { name: "tensorrt", deviceId: 3 },
      { name: "cuda", deviceId: 0 },
      "webgpu",
      "cpu",
    ]);
    expect(providersFor(onCpu, asked)).toEqual(asked);
  });
});

describe("an instance that may use WebGPU", () => {
  it("runs in a process, because two WebGPU threads crash it", () => {
    expect(needsProcess(["cuda", "webgpu", "cpu"])).toBe(true);
    expect(needsProcess([{ name: "webgpu", validationMode: "full" }])).toBe(true);
    expect(needsProcess(["cuda", "cpu"])).toBe(false);
  });
});

describe("session options", () => {
  it("share the processors among the instances and let idle threads sleep", () => {
    const options = sessionOptions({}, 2);
    expect(options).toEqual({
      intraOpNumThreads: Math.max(1, Math.floor(availableParallelism() / 2)),
      logSeverityLevel: 4,
      extra: { "session.intra_op.allow_spinning": "0" },
    });
  });

  it("keep given values instead of defaults", () => {
    const sessionConfig = { "session.intra_op.allow_spinning": "1", "session.set_denormal_as_zero": "1" };
    expect(
      sessionOptions(
        { intraOpNumThreads: 3, sessionConfig, logSeverityLevel: 2, enableMemPattern: false },
        9,
      ),
    ).toEqual({ intraOpNumThreads: 3, logSeverityLevel: 2, enableMemPattern: false, extra: sessionConfig });
  });
});

describe("ONNX Runtime settings in Triton's words", () => {
  it("set threads, levels, memory and session configuration entries", () => {
    const options = optionsFor(
      [
        "optimization { graph { level: 1 } }",
        parameter("intra_op_thread_count", "2"),
        parameter("inter_op_thread_count", "3"),
        parameter("execution_mode", "1"),
        parameter("enable_mem_arena", "0"),
        parameter("enable_mem_pattern", "true"),
        parameter("session.use_device_allocator_for_initializers", "1"),
        parameter("optimization.enable_gelu_approximation", "1"),
        parameter("log_severity_level", "2"),
        parameter("unrelated", "x"),
      ].join(" "),
    );
    expect(options).toEqual({
      graphOptimizationLevel: "extended",
      intraOpNumThreads: 2,
      interOpNumThreads: 3,
      executionMode: "parallel",
      enableCpuMemArena: false,
      enableMemPattern: true,
      sessionConfig: {
        "session.use_device_allocator_for_initializers": "1",
        "optimization.enable_gelu_approximation": "1",
      },
      logSeverityLevel: 2,
    });
    expect(nativeOnly(options)).toEqual([]);
  });

  it("take thread counts, the library and libraries of plug-ins from the backend settings too", () => {
    const settings = {
      intra_op_thread_count: "4",
      "enable-global-threadpool": "1",
      library: "/opt/libonnxruntime.so",
      "provider-library.mine": "/opt/libmine.so",
    };
    expect(optionsFor("", settings)).toMatchObject({
      intraOpNumThreads: 4,
      globalThreads: { intra: 4, inter: 0 },
      library: "/opt/libonnxruntime.so",
      providerLibraries: { mine: "/opt/libmine.so" },
    });
  });

  it("choose accelerators, GPU accelerators only on GPUs", () => {
    const webgpu = accelerator("gpu", "webgpu", ["validationMode", "disabled"], ["colour", "red"]);
    const options = optionsFor(`${gpuGroup} ${webgpu}`);
    const asked = [{ name: "webgpu", validationMode: "disabled", colour: "red" }, "cuda", "cpu"];
    expect(options.executionProviders).toEqual(asked);
    expect(optionsFor(webgpu).executionProviders).toBeUndefined();
    expect(optionsFor(accelerator("cpu", "openvino")).executionProviders).toEqual(["openvino", "cpu"]);
    // onnxruntime-node passes only one of both options on.
    expect(nativeOnly(options)).toEqual(["webgpu.colour"]);
    expect(providersForWorker(asked)).toEqual([
      { name: "webgpu", validationMode: "disabled" },
      "cuda",
      "cpu",
    ]);
  });

  it.each([
    [accelerator("gpu", "zzz"), "unknown Execution Accelerator 'zzz' is requested"],
    [accelerator("gpu", "toString"), "unknown Execution Accelerator 'toString' is requested"],
    [
      accelerator("gpu", "tensorrt", ["precision_mode", "FP4"]),
      "unsupported precision mode 'FP4' is requested",
    ],
    [
      accelerator("gpu", "tensorrt", ["speed", "high"]),
      "unknown parameter 'speed' is provided for TensorRT Execution Accelerator",
    ],
    [parameter("cudnn_conv_algo_search", "3"), "unsupported cudnn_conv_algo_search value '3' is requested"],
    [parameter("arena_extend_strategy", "2"), "unsupported arena_extend_strategy value '2' is requested"],
    [parameter("log_severity_level", "9"), "parameter 'log_severity_level': expected a number from 0 to 4"],
  ])("reject, on a GPU, %s", (config, text) => {
    expect(() => optionsFor(`${gpuGroup} ${config}`)).toThrow(text);
  });
});

describe("precisions of a model", () => {
  const cache = mkdtempSync(join(tmpdir(), "forms-"));

  afterAll(() => rmSync(cache, { recursive: true }));

  const weights = Float32Array.from({ length: 64 * 32 }, (_, i) => Math.sin(i) / 4);

  const x = Float32Array.from({ length: 64 }, (_, i) => Math.cos(i));

  function bytes(): Uint8Array {
    return onnxModel({
      name: "product",
      opset: 12,
      inputs: [{ name: "x", elemType: "FLOAT", dims: ["rows", 64] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["rows", 32] }],
      initializers: [{ name: "w", dims: [64, 32], data: weights }],
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    });
  }

  const exact = Array.from({ length: 32 }, (_, column) =>
    x.reduce((sum, value, row) => sum + value * weights[row * 32 + column]!, 0),
  );

  async function load(accelerator: string, folder = cache, model: Uint8Array = bytes()) {
    await using models = await RepositoryOnDisk.create({
      "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { count: 1 } ] max_batch_size: 4 optimization { execution_accelerators { ${accelerator} } }`,
      "m/1/model.onnx": model,
    });
    await using triton = new Triton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [
        repository({
          modelRepository: models.path,
          backendConfig: { onnxruntime: { "optimization-cache": folder } },
          exitOnError: false,
        }),
      ],
    });
    await triton.ready().catch(() => {});
    const [row] = await serviceOf(triton).repositoryIndex(false);
    if (row?.state !== "READY") return { reason: row?.reason, error: Number.NaN };
    const { y } = await triton.infer("m", { x: [[...x]] });
    const error = Math.max(...[...y!.data].map((value, i) => Math.abs(Number(value) - exact[i]!)));
    return { reason: "", error };
  }

  const cpu = (mode: string) =>
    `cpu_execution_accelerator [ { name: "cpu" parameters { key: "precision_mode" value: "${mode}" } } ]`;

  describe("a precision of the configuration", () => {
    it("rewrites the model when it loads, and is found by the file's hash after that", async () => {
      const int8 = await load(cpu("INT8"));
      expect(int8.error).toBeGreaterThan(1e-5);
      expect(int8.error).toBeLessThan(0.05);
      const [file] = readdirSync(cache);
      expect(file).toMatch(/^[0-9a-f]{64}-int8(-7)?-1\.onnx$/);
      const path = join(cache, file!);
      expect(statSync(path).size).toBeLessThan(bytes().length * 0.4);
      utimesSync(path, 1, 1);
      const { ino } = statSync(path);
      expect((await load(cpu("INT8"))).error).toBe(int8.error);
      expect(statSync(path)).toMatchObject({ ino });
      expect(statSync(path).mtimeMs).toBeGreaterThan(1e12);
      const half = await load(cpu("FP16"));
      expect(half.error).toBeGreaterThan(1e-6);
      expect(half.error).toBeLessThan(0.01);
      expect(readdirSync(cache)).toHaveLength(2);
      expect((await load(cpu("FP32"))).error).toBeLessThan(1e-5);
    });

    it("is refused if it is unknown, or the model has no such form, or the cache cannot be written", async () => {
      expect((await load(cpu("FP4"))).reason).toContain("unsupported precision mode 'FP4' is requested");
      const both = `${cpu("INT8")} ${cpu("FP16")}`;
      expect((await load(both)).reason).toContain("expected one for all, got INT8 and FP16");
      const none = onnxModel({
        name: "sum",
        opset: 12,
        inputs: [{ name: "x", elemType: "FLOAT", dims: ["rows", 64] }],
        outputs: [{ name: "y", elemType: "FLOAT", dims: ["rows", 64] }],
        nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["y"] }],
      });
      expect((await load(cpu("INT8"), cache, none)).reason).toMatch(
        /precision_mode INT8 of the ONNX model '.*': expected layers that have such a form, got none/,
      );
      const file = join(cache, "a-file");
      writeFileSync(file, "");
      expect((await load(cpu("INT8"), join(file, "inside"))).reason).toMatch(
        /cannot make the folder '.*a-file.inside' for forms of models: ENOTDIR.*optimization-cache=<folder>/,
      );
    });

    it("of two models with the same file is made by both at once, and serves both", async () => {
      const folder = join(cache, "two");
      const [a, b] = await Promise.all([load(cpu("INT8"), folder), load(cpu("INT8"), folder)]);
      expect(a.error).toBeLessThan(0.05);
      expect(b.error).toBe(a.error);
      expect(readdirSync(folder)).toHaveLength(1);
    });
  });
});

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
    await using triton = new Triton({ extensions: [gpu()] });
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
    await using triton = new Triton({ extensions: [gpu()] });
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
    await using triton = new Triton({ extensions: [gpu()] });
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
    await using triton = new Triton({ logger: keeping(warnings), extensions: [gpu()] });
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
    await using triton = new Triton({ logger: keeping(warnings), extensions: [gpu()] });
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
      logger: keeping(warnings),
      extensions: [repository({ modelRepository: models.path, exitOnError: false }), gpu()],
    });
    await triton.ready();
    const index = await serviceOf(triton).repositoryIndex(false);
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
    await using triton = new Triton({ extensions: [gpu({ numbers: [0, 1] })] });
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
    await using triton = new Triton({ extensions: [gpu({ numbers: [0] })] });
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
    logger: { error: write, warn: write, info: write, debug: write },
    extensions: [repository({ modelRepository: models.path, exitOnError: false }), gpu({ numbers: [0] })],
  });
  await triton.ready();
});

afterAll(async () => {
  await triton.close();
  await models[Symbol.asyncDispose]();
});

const reasonOf = async (name: string) =>
  (await serviceOf(triton).repositoryIndex(false)).find((row) => row.name === name)?.reason ?? "";

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
