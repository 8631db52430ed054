import { Tensor, Triton } from "@tritonjs/core";
import { elementCount } from "@tritonjs/protocol";
import { emptyModelConfig } from "@tritonjs/protocol/config";
import { readPrototxt } from "@tritonjs/repository/config";
import type { NdArray } from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identityOnnx, matrixOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf } from "../../../../../test/support/outcome.js";
import { graphFor, graphSpecs } from "../../../src/onnxruntime/cuda-graphs.js";
import { type OnnxRuntimeOptions, onnxruntime } from "../../../src/onnxruntime/index.js";
import { paddedRows } from "../../../src/onnxruntime/native/device-copies.js";
import { chooseLibrary } from "../../../src/onnxruntime/native/ort-library.js";
import { onnxOptionsOf } from "../../../src/onnxruntime/onnx-options.js";
import { type Recorded, type RecordingLibrary, recordingLibrary } from "./recording-library.js";

describe("tensors on a device", () => {
  const silent = { error() {}, warn() {}, info() {}, debug() {} };

  let recording: RecordingLibrary;

  let triton: Triton;

  let failing: Record<string, string>;

  beforeEach(() => {
    failing = {};
    recording = recordingLibrary({ providers: ["CUDAExecutionProvider"], failing });
    triton = new Triton({ logger: silent });
  });

  afterEach(async () => {
    await triton.close();
    recording[Symbol.dispose]();
  });

  type Handle = ReturnType<Triton["bind"]>;

  /** A model that doubles `x`, on a device whose memory the stand-in keeps on the CPU. */
  function bindTwice(modelName: string, more: object = {}, config: object = {}): Handle {
    const inferFunc = onnxruntime({
      model: matrixOnnx(),
      engine: "native",
      library: recording.library,
      executionProviders: ["cuda"],
      onWarning: () => {},
      ...more,
    });
    return triton.bind({ modelName, inferFunc, config: { maxBatchSize: 8, ...config } });
  }

  interface Step {
    readonly modelName: string;
    readonly inputMap: Readonly<Record<string, string>>;
    readonly outputMap: Readonly<Record<string, string>>;
  }

  /** The steps of a chain of models from `x` to `y`. */
  function chain(...models: readonly string[]): Step[] {
    return models.map((modelName, i) => ({
      modelName,
      inputMap: { x: i === 0 ? "x" : `m${i}` },
      outputMap: { twice: i === models.length - 1 ? "y" : `m${i + 1}` },
    }));
  }

  function bindEnsemble(steps: readonly Step[], outputs = ["y"]) {
    return triton.bindEnsemble({
      modelName: "ensemble",
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: outputs.map((name) => ({ name, dtype: "FP32" as const, shape: [4] })),
      steps,
      config: { maxBatchSize: 8 },
    });
  }

  /** Copies to the device and from it, of the only instance of each model. */
  const copies = (...handles: readonly Handle[]) =>
    handles.map((handle) => {
      const { copiesToDevice, copiesFromDevice } = handle.instances()[0]!.details;
      return [Number(copiesToDevice), Number(copiesFromDevice)];
    });

  const first = (
    answer: Readonly<Record<string, { readonly data: ArrayLike<unknown> } | undefined>>,
    name = "y",
  ) => [...Array.from(answer[name]!.data)].map(Number);

  describe("tensors between ONNX models of an ensemble on a device", () => {
    it("stay on the device: a request is copied to it once and from it once, whatever the number of steps", async () => {
      const handles = ["a", "b", "c"].map((name) => bindTwice(name));
      const ensemble = bindEnsemble(chain("a", "b", "c"));
      await ensemble.ready();
      for (let i = 0; i < 5; i++) {
        expect(first(await ensemble.infer({ x: [[i, 1, 2, 3]] }))).toEqual([8 * i, 8, 16, 24]);
      }
      // In: the request's input. Out: the answer, without the model's second output, which is not asked for.
      expect(copies(...handles)).toEqual([
        [5, 0],
        [0, 0],
        [0, 5],
      ]);
      expect(
        recording.calls.filter(([name]) => name === "bindOutputToDevice").map(([, given]) => given!.name),
      ).toEqual(Array.from({ length: 10 }, () => "twice"));
    });

    it("reach two readers, of which one also answers, without mixing requests", async () => {
      const handles = ["a", "b", "c"].map((name) => bindTwice(name));
      const ensemble = bindEnsemble(
        [
          { modelName: "a", inputMap: { x: "x" }, outputMap: { twice: "m" } },
          { modelName: "b", inputMap: { x: "m" }, outputMap: { twice: "y" } },
          { modelName: "c", inputMap: { x: "m" }, outputMap: { twice: "z" } },
        ],
        ["y", "z"],
      );
      await ensemble.ready();
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => ensemble.infer({ x: [[i, 0, 0, 1]] })),
      );
      for (const [i, answer] of answers.entries()) {
        expect([first(answer), first(answer, "z")]).toEqual([
          [4 * i, 0, 0, 4],
          [4 * i, 0, 0, 4],
        ]);
      }
      expect(handles.length).toBe(3);
    });

    it("come to the CPU for a model that is not on the device, and for a tensor that is part of the answer", async () => {
      const a = bindTwice("a");
      const onCpu = bindTwice("cpu", { library: undefined, executionProviders: ["cpu"] });
      triton.bind({
        modelName: "callback",
        inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
        outputs: [{ name: "twice", dtype: "FP32", shape: [4] }],
        inferFunc: (requests) =>
          requests.map(({ inputs }) => ({
            twice: (inputs.x!.data as Float32Array).map((value: number) => value + 1),
          })),
        config: { maxBatchSize: 8 },
      });
      const ensemble = bindEnsemble(chain("a", "cpu", "callback", "a", "callback"), ["y", "m1"]);
      await Promise.all([a.ready(), onCpu.ready(), ensemble.ready()]);
      const answer = await ensemble.infer({ x: [[1, 2, 3, 4]] });
      expect([first(answer), first(answer, "m1")]).toEqual([
        [11, 19, 27, 35],
        [2, 4, 6, 8],
      ]);
    });

    it("come to the CPU to be joined into one batch", async () => {
      const handles = [bindTwice("a"), bindTwice("b", {}, { instanceGroup: [{ count: 1 }] })];
      const ensemble = bindEnsemble(chain("a", "b"));
      await ensemble.ready();
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, i) => ensemble.infer({ x: [[i, 1, 1, 1]] })),
      );
      expect(answers.map((answer) => first(answer)[0])).toEqual(Array.from({ length: 40 }, (_, i) => 4 * i));
      expect(handles[0]!.statistics().executionCount).toBeLessThanOrEqual(40);
    });

    it("are given up with cancelled requests and with the model that made them", async () => {
      for (const name of ["a", "b"]) bindTwice(name);
      const ensemble = bindEnsemble(chain("a", "b"));
      await ensemble.ready();
      const controller = new AbortController();
      const cancelled = Array.from({ length: 10 }, (_, i) =>
        ensemble.infer({ x: [[i, 1, 1, 1]] }, { signal: controller.signal }),
      );
      controller.abort();
      for (const outcome of await outcomesOf(cancelled)) expect(outcome).toMatch(/^(done|CANCELLED)/);
      expect(first(await ensemble.infer({ x: [[1, 1, 1, 1]] }))).toEqual([4, 4, 4, 4]);
      const last = ensemble.infer({ x: [[1, 1, 1, 1]] });
      await triton.close();
      expect(await outcomeOf(last)).toMatch(/^(done|UNAVAILABLE|CANCELLED)/);
    });
  });

  describe("tensors between calls of a callback", () => {
    it("stay on the device if the callback only passes them on", async () => {
      const handles = [bindTwice("a"), bindTwice("b")];
      const scripted = triton.bind({
        modelName: "scripted",
        inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
        inferFunc: (requests, { infer }) =>
          Promise.all(
            requests.map(async ({ inputs }) => {
              const deviceOutputs = ["twice"];
              type Inner = { readonly twice: Tensor };
              const once = await infer<Inner>("a", { x: inputs.x }, { deviceOutputs });
              expect(once.twice).toBeInstanceOf(Tensor);
              const twice = await infer<Inner>("b", { x: once.twice }, { deviceOutputs });
              // A tensor may be passed on more than once, and read.
              const { twice: y } = await infer<{ twice: NdArray<Float32Array> }>("b", { x: twice.twice });
              expect([...(twice.twice.elements as Float32Array)]).toEqual([4, 8, 12, 16]);
              return { y };
            }),
          ),
        config: { maxBatchSize: 8 },
      });
      await Promise.all(handles.map((handle) => handle.ready()));
      expect(first(await scripted.infer({ x: [[1, 2, 3, 4]] }))).toEqual([8, 16, 24, 32]);
      expect(copies(...handles).map(([toDevice]) => toDevice)).toEqual([1, 0]);
    });
  });

  describe("a model on a device", () => {
    it("fails a batch with ONNX Runtime's words when the device is out of memory or gone, and runs the next one", async () => {
      const handle = bindTwice("a");
      await handle.ready();
      for (const text of [
        "Failed to allocate memory for requested buffer of size 64",
        "CUDA failure 46: device lost",
      ]) {
        failing.bindInput = text;
        expect(await outcomeOf(handle.infer({ x: [[1, 2, 3, 4]] }))).toContain(text);
        delete failing.bindInput;
      }
      expect(first(await handle.infer({ x: [[1, 2, 3, 4]] }), "twice")).toEqual([2, 4, 6, 8]);
    });
  });
});

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

  it.each(["cuda", "tensorrt"])("is skipped with options too, with the real library: %s", async (name) => {
    const real = chooseLibrary();
    if (real.providerFiles.includes(name)) return;
    const warnings: string[] = [];
    await using triton = new Triton({ logger: silent });
    const executionProviders = [{ name, device_id: "0" }];
    const onWarning = (text: string) => void warnings.push(text);
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model, library: real.file, executionProviders, onWarning }),
    });
    await handle.ready();
    expect(handle.instances()[0]!.details.executionProvider).toBe("cpu");
    expect(warnings).toEqual([expect.stringContaining(`execution provider '${name}' cannot be used: `)]);
  });

  it("fails the load with strictProviders", async () => {
    const { outcome } = await load(
      { executionProviders: ["cuda"], strictProviders: true },
      { providers: [CUDA], failing },
    );
    expect(outcome).toContain(
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

describe("the rows of padded copies", () => {
  it("move each element between a tensor and a larger one around it", () => {
    for (const [shape, padded] of [
      [[], []],
      [[3], [5]],
      [
        [2, 3],
        [4, 3],
      ],
      [
        [2, 3],
        [2, 4],
      ],
      [
        [2, 3, 2],
        [3, 5, 2],
      ],
      [
        [2, 3, 2, 2],
        [4, 4, 2, 3],
      ],
      [
        [2, 1, 3, 2, 2],
        [2, 2, 4, 2, 4],
      ],
      [
        [2, 0],
        [2, 4],
      ],
    ] as const) {
      const moved = new Map<number, number>();
      for (const { at, paddedAt, width, pitch, height } of paddedRows(shape, padded)) {
        for (let row = 0; row < height; row++) {
          for (let i = 0; i < width; i++) moved.set(at + row * width + i, paddedAt + row * pitch + i);
        }
      }
      const places = Array.from({ length: elementCount(shape) }, (_, i) => {
        let [rest, place, stride] = [i, 0, 1];
        for (let axis = shape.length - 1; axis >= 0; axis--) {
          place += (rest % shape[axis]!) * stride;
          rest = Math.floor(rest / shape[axis]!);
          stride *= padded[axis]!;
        }
        return [i, place] as const;
      });
      expect([...moved].sort(([a], [b]) => a - b)).toEqual(places);
    }
    expect(paddedRows([64, 3, 100, 200], [64, 3, 100, 224])).toHaveLength(1);
  });
});

describe("the graphs of a model", () => {
  const config = (more: object) => ({ ...emptyModelConfig(), maxBatchSize: 32, ...more });
  const sizes = (more: object) => graphSpecs(config(more), []).map(({ batchSize }) => batchSize);

  it("are by default those that Triton captures", () => {
    expect(sizes({})).toEqual([1, 2, 3, 4, 6, 8, 12, 16, 32]);
    expect(sizes({ maxBatchSize: 5 })).toEqual([1, 2, 3, 4, 5]);
    expect(sizes({ maxBatchSize: 0 })).toEqual([0]);
    const dynamicBatching = { preferredBatchSize: [4, 8, 64] };
    expect(sizes({ dynamicBatching })).toEqual([1, 4, 8, 32]);
    expect(sizes({ dynamicBatching: { preferredBatchSize: [] } })).toEqual([1, 32]);
  });

  it("are tried in the order of their rows, and then of the dims of one input after another, as in Triton", () => {
    const spec = (batchSize: number, lowest: number, dims?: readonly number[], least = dims) => ({
      batchSize,
      input: dims === undefined ? {} : { x: { dim: [...dims] } },
      graphLowerBound: { batchSize: lowest, input: least === undefined ? {} : { x: { dim: [...least] } } },
    });
    const graphSpec = [
      spec(16, 1),
      spec(8, 5),
      spec(8, 6, [4, 2], [1, 1]),
      spec(8, 7, [3, 9], [2, 2]),
      spec(4, 4),
      spec(8, 7, [3, 9], [1, 1]),
    ];
    const chosen = (rows: number, dims: readonly number[] = [5, 5]) => {
      const specs = graphSpecs(config({ optimization: { cuda: { graphs: true, graphSpec } } }), ["x"]);
      const found = graphFor(specs, rows, () => dims);
      return found && [found.batchSize, found.lowestBatchSize, ...(found.inputs.get("x")?.dims ?? [])];
    };
    expect([1, 4, 5, 8, 9, 16, 17].map((count) => chosen(count)?.[0])).toEqual([
      16,
      4,
      8,
      8,
      16,
      16,
      undefined,
    ]);
    expect(chosen(8, [3, 9])).toEqual([8, 7, 3, 9]);
    // The first in the order, although the other has fewer elements.
    expect(chosen(8, [3, 2])).toEqual([8, 7, 3, 9]);
    expect(chosen(6, [3, 2])).toEqual([8, 6, 4, 2]);
    // Of two for the same shape, the second of the configuration is not captured.
    expect(chosen(8, [1, 9])).toEqual([8, 5]);
    expect(chosen(8, [5, 2])).toEqual([8, 5]);
  });
});
