import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { readPrototxt } from "../../../core/src/config/prototxt.js";
import { onnxOptionsOf } from "../../src/onnxruntime/onnx-options.js";
import { needsProcess, providersFor, sessionOptions } from "../../src/onnxruntime/ort-session.js";

const onGpu = (id: number) => ({ kind: "KIND_GPU", id }) as const;
const onCpu = { kind: "KIND_CPU", id: 0 } as const;

/** Options read from a configuration, and the warnings logged. */
function optionsFor(config: string, settings: Readonly<Record<string, string>> = {}) {
  const warnings: string[] = [];
  const options = onnxOptionsOf(readPrototxt(`name: "m" ${config}`), settings, (line) => warnings.push(line));
  return { options, warnings };
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
    const { options, warnings } = optionsFor(
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
    expect(warnings).toEqual([]);
  });

  it("take thread counts from the backend settings too", () => {
    const { options, warnings } = optionsFor("", {
      intra_op_thread_count: "4",
      "enable-global-threadpool": "1",
    });
    expect(options).toMatchObject({ intraOpNumThreads: 4 });
    expect(warnings).toEqual([expect.stringContaining("'enable-global-threadpool' has no effect")]);
  });

  it("choose accelerators, GPU accelerators only on GPUs", () => {
    const webgpu = accelerator("gpu", "webgpu", ["validationMode", "disabled"], ["colour", "red"]);
    expect(optionsFor(`${gpuGroup} ${webgpu}`)).toMatchObject({
      options: { executionProviders: [{ name: "webgpu", validationMode: "disabled" }, "cuda", "cpu"] },
      warnings: ["model 'm': onnxruntime-node does not pass 'colour' to execution provider 'webgpu'"],
    });
    expect(optionsFor(webgpu).options.executionProviders).toBeUndefined();
    expect(optionsFor(accelerator("cpu", "openvino")).options.executionProviders).toEqual([
      "openvino",
      "cpu",
    ]);
  });

  it("accept the TensorRT parameters that Triton knows, with a warning that they have no effect", () => {
    const { options, warnings } = optionsFor(
      `${gpuGroup} ${accelerator("gpu", "tensorrt", ["precision_mode", "FP16"], ["trt_engine_cache_enable", "1"])}`,
    );
    expect(options.executionProviders).toEqual(["tensorrt", "cuda", "cpu"]);
    expect(warnings).toEqual([
      expect.stringContaining("does not pass 'precision_mode', 'trt_engine_cache_enable'"),
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

  it("accept CUDA parameters with a warning that they have no effect", () => {
    const { warnings } = optionsFor(
      `${gpuGroup} ${parameter("cudnn_conv_algo_search", "1")} ${parameter("gpu_mem_limit", "1000")}`,
    );
    expect(warnings).toEqual([
      "model 'm': parameters 'cudnn_conv_algo_search', 'gpu_mem_limit' have no effect: onnxruntime-node does not pass " +
        "them on",
    ]);
  });
});
