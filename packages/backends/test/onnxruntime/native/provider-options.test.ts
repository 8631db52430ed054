import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { identityOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../../test/support/outcome.js";
import { readPrototxt } from "../../../../core/src/config/prototxt.js";
import { type OnnxRuntimeOptions, onnxruntime } from "../../../src/onnxruntime/index.js";
import { onnxOptionsOf } from "../../../src/onnxruntime/onnx-options.js";
import { type Recorded, recordingLibrary } from "./recording-library.js";

const silent = { error() {}, warn() {}, info() {}, debug() {} };
const model = identityOnnx("FLOAT", ["n"]);

/** Loads a model with a recording library, runs it once, and returns what happened. */
async function load(options: Omit<OnnxRuntimeOptions, "model">, recorded: Recorded = {}) {
  using recording = recordingLibrary(recorded);
  const warnings: string[] = [];
  await using triton = new Triton({ logger: silent });
  const handle = triton.bind({
    modelName: "m",
    inferFunc: onnxruntime({
      model,
      engine: "native",
      library: recording.library,
      onWarning: (text) => warnings.push(text),
      ...options,
    }),
  });
  const outcome = await outcomeOf(
    (async () => {
      await handle.ready();
      const { y } = await triton.infer("m", { x: Float32Array.of(1, 2) });
      expect([...y!.data]).toEqual([1, 2]);
    })(),
  );
  const [instance] = outcome === "done" ? handle.instances() : [];
  // Without the words that are the same for every model that does not load.
  return {
    outcome: outcome.replace(/^(\w+) .*?: (?=cannot load|option)/s, "$1 "),
    warnings,
    calls: recording.calls,
    provider: instance?.details.executionProvider,
  };
}

const accelerator = (kind: "gpu" | "cpu", name: string, parameters: Readonly<Record<string, string>>) =>
  `optimization { execution_accelerators { ${kind}_execution_accelerator { name: "${name}" ${Object.entries(
    parameters,
  )
    .map(([key, value]) => `parameters { key: "${key}" value: ${JSON.stringify(value)} }`)
    .join(" ")} } } }`;
const gpuGroup = "instance_group { kind: KIND_GPU gpus: 0 }";
const fromConfig = (config: string) => onnxOptionsOf(readPrototxt(`name: "m" ${config}`), {});

const CUDA = "CUDAExecutionProvider";
const TENSORRT = "TensorrtExecutionProvider";

/** Triton's parameters of TensorRT, each with the option of ONNX Runtime that its backend documents. */
const TENSORRT_PARAMETERS: readonly (readonly [key: string, value: string, option: string])[] = [
  ["max_workspace_size_bytes", "4294967296", "trt_max_workspace_size"],
  ["trt_max_partition_iterations", "1000", "trt_max_partition_iterations"],
  ["trt_min_subgraph_size", "1", "trt_min_subgraph_size"],
  ["int8_calibration_table_name", "tabelle-ä", "trt_int8_calibration_table_name"],
  ["int8_use_native_calibration_table", "true", "trt_int8_use_native_calibration_table"],
  ["trt_dla_enable", "0", "trt_dla_enable"],
  ["trt_dla_core", "0", "trt_dla_core"],
  ["trt_engine_cache_enable", "1", "trt_engine_cache_enable"],
  ["trt_engine_cache_path", "/tmp/a b/ü", "trt_engine_cache_path"],
  ["trt_engine_cache_prefix", "p_", "trt_engine_cache_prefix"],
  ["trt_dump_subgraphs", "false", "trt_dump_subgraphs"],
  ["trt_force_sequential_engine_build", "1", "trt_force_sequential_engine_build"],
  ["trt_context_memory_sharing_enable", "1", "trt_context_memory_sharing_enable"],
  ["trt_layer_norm_fp32_fallback", "1", "trt_layer_norm_fp32_fallback"],
  ["trt_timing_cache_enable", "1", "trt_timing_cache_enable"],
  ["trt_timing_cache_path", "/tmp/timing", "trt_timing_cache_path"],
  ["trt_force_timing_cache", "0", "trt_force_timing_cache"],
  ["trt_detailed_build_log", "0", "trt_detailed_build_log"],
  ["trt_build_heuristics_enable", "1", "trt_build_heuristics_enable"],
  ["trt_sparsity_enable", "1", "trt_sparsity_enable"],
  ["trt_builder_optimization_level", "3", "trt_builder_optimization_level"],
  ["trt_auxiliary_streams", "-1", "trt_auxiliary_streams"],
  ["trt_tactic_sources", "-CUDNN,+CUBLAS", "trt_tactic_sources"],
  ["trt_extra_plugin_lib_paths", "/opt/a.so;/opt/b.so", "trt_extra_plugin_lib_paths"],
  ["trt_profile_min_shapes", "x:1x3,y:1", "trt_profile_min_shapes"],
  ["trt_profile_max_shapes", "x:8x3,y:8", "trt_profile_max_shapes"],
  ["trt_profile_opt_shapes", "x:4x3,y:4", "trt_profile_opt_shapes"],
  ["trt_cuda_graph_enable", "1", "trt_cuda_graph_enable"],
  ["trt_dump_ep_context_model", "0", "trt_dump_ep_context_model"],
  ["trt_ep_context_file_path", "/tmp/ep", "trt_ep_context_file_path"],
  ["trt_ep_context_embed_mode", "1", "trt_ep_context_embed_mode"],
];

describe("the options of Triton's execution accelerators", () => {
  it("reach TensorRT and CUDA byte for byte, under ONNX Runtime's names", async () => {
    const parameters = Object.fromEntries(TENSORRT_PARAMETERS.map(([key, value]) => [key, value]));
    const given = { ...parameters, precision_mode: "FP16" };
    const options = fromConfig(`${gpuGroup} ${accelerator("gpu", "tensorrt", given)}`);
    const { outcome, calls, provider, warnings } = await load(options, { providers: [TENSORRT, CUDA] });
    expect(outcome).toBe("done");
    const expected = Object.fromEntries(TENSORRT_PARAMETERS.map(([, value, option]) => [option, value]));
    expect(calls).toEqual([
      ["createTensorrtOptions"],
      ["updateTensorrtOptions", { ...expected, trt_fp16_enable: "1" }],
      ["appendTensorrt"],
      ["releaseTensorrtOptions"],
      ["createCudaOptions"],
      ["appendCuda"],
      ["releaseCudaOptions"],
    ]);
    expect([provider, warnings]).toEqual(["tensorrt", []]);
  });

  it.each([
    ["FP32", {}],
    ["FP16", { trt_fp16_enable: "1" }],
    ["BF16", { trt_bf16_enable: "1" }],
    ["INT8", { trt_int8_enable: "1" }],
  ])("switch on the precision %s of TensorRT", (precision, options) => {
    const { executionProviders } = fromConfig(
      `${gpuGroup} ${accelerator("gpu", "tensorrt", { precision_mode: precision })}`,
    );
    const tensorrt = Object.keys(options).length === 0 ? "tensorrt" : { name: "tensorrt", ...options };
    expect(executionProviders).toEqual([tensorrt, "cuda", "cpu"]);
  });

  it("reach CUDA with the parameters that Triton has deprecated, and those of the accelerator", async () => {
    const parameter = (key: string, value: string) =>
      `parameters { key: "${key}" value { string_value: "${value}" } }`;
    const options = fromConfig(
      [
        gpuGroup,
        parameter("cudnn_conv_algo_search", "1"),
        parameter("gpu_mem_limit", "18446744073709551615"),
        parameter("arena_extend_strategy", "1"),
        parameter("do_copy_in_default_stream", "0"),
        parameter("use_tf32", "0"),
        parameter("memory.enable_memory_arena_shrinkage", "cpu:0"),
        accelerator("gpu", "cuda", { cudnn_conv_use_max_workspace: "0", use_ep_level_unified_stream: "1" }),
      ].join(" "),
    );
    const { outcome, calls, provider } = await load(options, { providers: [CUDA] });
    expect([outcome, provider]).toEqual(["done", "cuda"]);
    expect(calls[1]).toEqual([
      "updateCudaOptions",
      {
        cudnn_conv_algo_search: "HEURISTIC",
        gpu_mem_limit: "18446744073709551615",
        arena_extend_strategy: "kSameAsRequested",
        do_copy_in_default_stream: "0",
        use_tf32: "0",
        cudnn_conv_use_max_workspace: "0",
        use_ep_level_unified_stream: "1",
      },
    ]);
  });

  it("reach OpenVINO on the CPU", async () => {
    const given = { device_type: "CPU", num_of_threads: "2", cache_dir: "/tmp/ov" };
    const options = fromConfig(accelerator("cpu", "openvino", given));
    const { calls } = await load(options, { providers: ["OpenVINOExecutionProvider"] });
    expect(calls).toEqual([["appendOpenvino", given]]);
  });
});

describe("the options of a provider", () => {
  it.each([
    ["rocm", "ROCMExecutionProvider", "updateRocmOptions"],
    ["cann", "CANNExecutionProvider", "updateCannOptions"],
    ["dnnl", "DnnlExecutionProvider", "updateDnnlOptions"],
    ["onednn", "DnnlExecutionProvider", "updateDnnlOptions"],
    ["vitisai", "VitisAIExecutionProvider", "appendVitisai"],
    ["migraphx", "MIGraphXExecutionProvider", "MIGraphX"],
    ["dml", "DmlExecutionProvider", "DML"],
    ["directml", "DmlExecutionProvider", "DML"],
    ["coreml", "CoreMLExecutionProvider", "CoreML"],
    ["webgpu", "WebGpuExecutionProvider", "WebGPU"],
    ["xnnpack", "XnnpackExecutionProvider", "XNNPACK"],
    ["qnn", "QNNExecutionProvider", "QNN"],
    ["nvtensorrtrtx", "NvTensorRTRTXExecutionProvider", "NvTensorRtRtx"],
    ["azure", "AzureExecutionProvider", "AZURE"],
  ])("reach %s through the function that it has", async (name, listed, called) => {
    const executionProviders = [{ name, deviceId: 2, text: "a=b;ä", flag: true, number: 1.5 }];
    const { outcome, calls } = await load({ executionProviders }, { providers: [listed] });
    expect(outcome).toBe("done");
    expect(calls).toContainEqual([called, { device_id: "2", text: "a=b;ä", flag: "1", number: "1.5" }]);
  });

  it("reach a plug-in provider of a registered library, on the device of the option device_id", async () => {
    const { outcome, calls } = await load(
      {
        executionProviders: [{ name: "MyProvider", device_id: "1", depth: "3" }],
        providerLibraries: { mine: "/opt/ä/libmine.so" },
      },
      { plugins: ["OtherProvider", "MyProvider", "MyProvider"] },
    );
    expect(outcome).toBe("done");
    expect(calls).toEqual([
      ["registerExecutionProviderLibrary", { mine: "/opt/ä/libmine.so" }],
      ["devices 3", { depth: "3" }],
    ]);
  });

  it.each(["updateCudaOptions", "XNNPACK", "appendOpenvino"])(
    "that %s refuses fail the load of the model, with ONNX Runtime's text",
    async (called) => {
      const [name, listed] =
        called === "XNNPACK"
          ? ["xnnpack", "XnnpackExecutionProvider"]
          : called === "appendOpenvino"
            ? ["openvino", "OpenVINOExecutionProvider"]
            : ["cuda", CUDA];
      const failing = { [called]: 'Unknown provider option: "colour".' };
      const executionProviders = [{ name: name!, colour: "red" }];
      expect((await load({ executionProviders }, { providers: [listed!], failing })).outcome).toBe(
        `INVALID_ARG cannot load the ONNX model given as bytes: execution provider '${name}' refuses its options ` +
          '(colour=red): Unknown provider option: "colour".',
      );
    },
  );

  it.each([
    [
      { toString: "x", deep: {} },
      "option 'deep' of execution provider 'cuda': expected a string, a number or a boolean, got object",
    ],
    [
      { list: [1] },
      "option 'list' of execution provider 'cuda': expected a string, a number or a boolean, got object",
    ],
    [
      { none: null },
      "option 'none' of execution provider 'cuda': expected a string, a number or a boolean, got null",
    ],
    [
      { text: "a\0b" },
      "option 'text' of execution provider 'cuda': expected a string, a number or a boolean, got a text with a NUL",
    ],
  ])("are refused by name if they have the wrong type", async (given, text) => {
    const executionProviders = [{ name: "cuda", ...given }];
    expect((await load({ executionProviders }, { providers: [CUDA] })).outcome).toBe(`INVALID_ARG ${text}`);
  });
});

describe("a provider that cannot be used", () => {
  const failing = { createCudaOptions: "libcudnn.so.9: cannot open shared object file" };

  it("is skipped with a warning that has ONNX Runtime's text, and the next is tried", async () => {
    const { outcome, warnings, provider } = await load(
      { executionProviders: ["cuda", "nonesuch", "dnnl"] },
      { providers: [CUDA, "DnnlExecutionProvider"], failing },
    );
    expect([outcome, provider]).toEqual(["done", "dnnl"]);
    expect(warnings).toEqual([
      expect.stringMatching(
        /execution provider 'cuda' cannot be used: libcudnn.so.9: cannot open .*; trying 'nonesuch'$/,
      ),
      expect.stringMatching(
        /execution provider 'nonesuch' cannot be used: ONNX Runtime 1\.\d+\.\d+ in '.*' was built without nonesuch; it has .*; trying 'dnnl'$/,
      ),
    ]);
  });

  it("fails the load with strictProviders", async () => {
    const { outcome } = await load(
      { executionProviders: ["cuda"], strictProviders: true },
      { providers: [CUDA], failing },
    );
    expect(outcome).toBe(
      "INVALID_ARG cannot load the ONNX model given as bytes: execution provider 'cuda' cannot be used: libcudnn.so.9: cannot open shared object file",
    );
  });

  it("is a library of plug-in providers that cannot be registered: the load fails with the text", async () => {
    const { outcome } = await load(
      { executionProviders: ["P"], providerLibraries: { p: "/nonesuch.so" } },
      { failing: { registerExecutionProviderLibrary: "no such file /nonesuch.so" } },
    );
    expect(outcome).toMatch(
      /^INVALID_ARG .*cannot register execution provider library 'p' of '\/nonesuch.so': no such file \/nonesuch.so$/,
    );
  });
});
