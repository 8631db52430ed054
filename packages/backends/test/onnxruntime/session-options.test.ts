import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { readPrototxt } from "../../../core/src/config/prototxt.js";
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
