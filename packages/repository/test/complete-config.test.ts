import { AutoCompleteConfig } from "@tritonjs/core/backend";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { completeConfig, type FileDescription, prepareConfig } from "../src/config/complete-config.js";
import { readPrototxt } from "../src/config/prototxt.js";
import { needsReload } from "../src/loading/repository-changes.js";

const IO =
  "input { name: 'x' data_type: TYPE_FP32 dims: 4 } output { name: 'y' data_type: TYPE_FP32 dims: 4 }";

const prepare = (text: string | undefined, versionFiles: readonly string[] = [], autoComplete = true) =>
  prepareConfig(text === undefined ? undefined : readPrototxt(text), {
    modelName: "m",
    versionFiles,
    autoComplete,
  });

function complete(text: string, file?: FileDescription, gpus?: readonly number[]): ModelConfig {
  return completeConfig(prepare(text), file, { autoComplete: true, gpus: { numbers: gpus } });
}

function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (TritonError.is(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "";
}

const file = (
  inputs: readonly (readonly number[])[],
  outputs: readonly (readonly number[])[],
): FileDescription => ({
  inputs: inputs.map((shape, i) => ({ name: `x${i}`, dtype: "FP32", shape })),
  outputs: outputs.map((shape, i) => ({ name: `y${i}`, dtype: "INT64", shape })),
});

describe("a configuration without a backend", () => {
  it.each([
    [["model.onnx"], "onnxruntime", "onnxruntime_onnx", "model.onnx"],
    [["model.onnx/"], "onnxruntime", "onnxruntime_onnx", "model.onnx"],
    [["model.onnx", "model.plan"], "tensorrt", "tensorrt_plan", "model.plan"],
    [["model.savedmodel/"], "tensorflow", "tensorflow_savedmodel", "model.savedmodel"],
    [["model.py"], "python", "", "model.py"],
  ])("derives from the files %j the backend %s", (files, backend, platform, defaultModelFilename) => {
    expect(prepare(undefined, files)).toMatchObject({ name: "m", backend, platform, defaultModelFilename });
  });

  it("takes the backend from a platform or a file name", () => {
    expect(prepare("platform: 'onnxruntime_onnx'").backend).toBe("onnxruntime");
    expect(prepare("default_model_filename: 'model.py'").backend).toBe("python");
  });

  it("is rejected when nothing names a backend", () => {
    expect(refusalOf(() => prepare("max_batch_size: 1", ["net.onnx"]))).toMatch(
      /^INVALID_ARG Invalid model name: Could not determine backend for model 'm' with no backend/,
    );
    expect(refusalOf(() => prepare("platform: 'nothing'"))).toBe(
      "INVALID_ARG unexpected platform type 'nothing' for m",
    );
  });
});

describe("preparing a configuration", () => {
  it("reports all problems at once, in Triton's order", () => {
    const text = "name: 'other' backend: 'b' max_batch_size: -1 dynamic_batching { preferred_batch_size: 0 }";
    expect(refusalOf(() => prepare(text)).split("\n")).toEqual([
      "INVALID_ARG 'max_batch_size' must be non-negative value for other",
      "dynamic batching preferred size must be positive for other",
      "unexpected directory name 'm' for model 'other', directory name must equal model name",
    ]);
  });

  it("accepts tensors to be completed by the model only when completion is allowed", () => {
    const text = "backend: 'b' input { name: 'x' }";
    expect(prepare(text).input).toHaveLength(1);
    expect(refusalOf(() => prepare(text, [], false))).toContain(
      "model input 'x' must specify 'data_type' for m",
    );
  });

  it("does not change the configuration it was given", () => {
    const written = readPrototxt("backend: 'b' input { dims: 1 }");
    prepareConfig(written, { modelName: "m", versionFiles: [], autoComplete: true }).input[0]!.dims.push(2);
    expect(written.input[0]?.dims).toEqual([1]);
    expect(written.name).toBe("");
  });
});

describe("completion from a model file", () => {
  it("turns batching on when the first dimension of all tensors is variable", () => {
    const config = complete("backend: 'onnxruntime'", file([[-1, 4], [-1]], [[-1, 2]]));
    expect(config.maxBatchSize).toBe(4);
    expect(config.dynamicBatching?.preferredBatchSize).toEqual([4]);
    expect(config.input[0]).toMatchObject({ name: "x0", dataType: "TYPE_FP32", dims: [4] });
    expect(config.input[1]).toMatchObject({ dims: [1], reshape: { shape: [] } });
    expect(config.output[0]).toMatchObject({ name: "y0", dataType: "TYPE_INT64", dims: [2] });
    expect(config.instanceGroup).toMatchObject([{ name: "m", kind: "KIND_CPU", count: 2 }]);
  });

  it("leaves batching off when one first dimension is fixed", () => {
    const config = complete("backend: 'onnxruntime'", file([[-1, 4]], [[]]));
    expect(config).toMatchObject({ maxBatchSize: 0, input: [{ dims: [-1, 4] }], output: [{ dims: [1] }] });
    expect(config.dynamicBatching).toBeUndefined();
    expect(refusalOf(() => complete("backend: 'onnxruntime' max_batch_size: 2", file([[3]], [[3]])))).toBe(
      "INVALID_ARG autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    );
  });

  it("leaves the sequence batcher's tensors out of the inputs", () => {
    const text =
      "backend: 'onnxruntime' sequence_batching { control_input { name: 'x1' control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } } }";
    const config = complete(
      text,
      file(
        [
          [-1, 4],
          [-1, 1],
        ],
        [[-1, 2]],
      ),
    );
    expect(config.input.map(({ name }) => name)).toEqual(["x0"]);
    expect(config.dynamicBatching).toBeUndefined();
  });

  it("reports each tensor that contradicts the file", () => {
    const text = `backend: 'onnxruntime' max_batch_size: 2
      input [ { name: 'x0' data_type: TYPE_FP32 dims: 5 }, { name: 'z' data_type: TYPE_FP32 dims: 1 } ]
      output { name: 'y0' data_type: TYPE_FP32 dims: 2 }`;
    expect(refusalOf(() => complete(text, file([[-1, 4], [-1]], [[-1, 2]]))).split("\n")).toEqual([
      "INVALID_ARG model 'm', tensor 'x0': the model expects 2 dimensions (shape [-1,4]) but the model configuration " +
        "specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor " +
        "shape, making complete shape [-1,5])",
      "unexpected inference input 'z', allowed inputs are: x0, x1",
      "unable to load model 'm', configuration expects datatype TYPE_FP32 for output 'y0', model provides TYPE_INT64",
    ]);
  });
});

describe("an optional input of an ONNX model", () => {
  const refusal = (more: string, shape: readonly number[]) =>
    refusalOf(() =>
      complete(
        `backend: 'onnxruntime' ${more} output { name: 'y0' data_type: TYPE_INT64 dims: 4 }`,
        file([shape], [shape]),
      ),
    ).split("\n");
  const x0 = "input { name: 'x0' data_type: TYPE_FP32 dims: 4 }";

  it("is rejected for a model that batches", () => {
    const more = `max_batch_size: 2 ${x0} input { name: 'z' data_type: TYPE_FP32 dims: 4 optional: true }`;
    expect(refusal(more, [-1, 4])[0]).toBe(
      "INVALID_ARG unable to load model 'm', optional input 'z' is not supported for models that support batching",
    );
  });

  it("is rejected when it is ragged", () => {
    const z = "input { name: 'z' data_type: TYPE_FP32 dims: -1 optional: true allow_ragged_batch: true }";
    expect(refusal(`${x0} ${z}`, [4])[0]).toBe(
      "INVALID_ARG unable to load model 'm', configuration expects model provides input with shape [-1] for ragged " +
        "input 'z', which is not supported for optional input",
    );
  });

  it("does not stand for an input of the file", () => {
    const z = "input { name: 'z' data_type: TYPE_FP32 dims: 4 optional: true }";
    expect(refusal(`${x0} ${z}`, [4])).toEqual([
      "INVALID_ARG unexpected inference input 'z', allowed inputs are: x0",
    ]);
  });
});

describe("a completed configuration", () => {
  it.each([
    ["dims: 4 reshape { shape: [2, 2] }", ""],
    ["dims: [-1, 2, 3] reshape { shape: [1, -1, 6] }", ""],
    ["dims: 4 reshape { shape: [3] }", "has different size for dims and reshape"],
    ["dims: [-1, 4] reshape { shape: [-1, 2] }", "has different size for dims and reshape"],
    [
      "dims: [-1, -1] reshape { shape: [-1] }",
      "has different number of variable-size dimensions for dims and reshape",
    ],
    [
      "dims: 1 reshape { }",
      "cannot have empty reshape for non-batching model as scalar tensors are not supported",
    ],
    [
      "dims: 4 reshape { shape: [0] }",
      "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension",
    ],
    ["", "must specify 'dims'"],
    ["dims: 0", "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"],
    ["dims: 9223372036854775807", ""],
    [
      "dims: -9223372036854775808",
      "dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
    ],
    ["dims: [4294967296, 4294967296, -1] reshape { shape: [-1, 1] }", "TOO BIG dims"],
    ["dims: [-1, 4294967296, 4294967296] reshape { shape: [-1, 4294967296, 4294967296] }", ""],
    ["dims: 4 reshape { shape: [4294967296, 4294967296] }", "TOO BIG reshape"],
  ])("reports, for an output of %s: %s", (dims, text) => {
    const refusal = refusalOf(() =>
      complete(`backend: 'b' output { name: 'y' data_type: TYPE_INT8 ${dims} }`),
    );
    const [, tooBig] = /^TOO BIG (.*)/.exec(text) ?? [];
    const expected =
      tooBig === undefined
        ? `model output 'y' ${text}`
        : `element count for tensor 'y ${tooBig}' exceeds maximum size of 9223372036854775807`;
    expect(refusal).toBe(text === "" ? "" : `INVALID_ARG ${expected} for m`);
  });

  it("places instances on listed GPUs that exist", () => {
    const kindsWith = (gpus?: readonly number[]) =>
      complete(`backend: 'b' ${IO} instance_group [ { }, { gpus: 1 kind: KIND_GPU } ]`, undefined, gpus)
        .instanceGroup;
    expect(kindsWith([0, 1])).toMatchObject([
      { name: "m_0", kind: "KIND_CPU", count: 1 },
      { name: "m_1", kind: "KIND_GPU", gpus: [1], count: 1 },
    ]);
    expect(refusalOf(() => kindsWith(undefined))).toContain(
      "m_1 of model m has kind KIND_GPU but server does not support GPUs",
    );
    expect(refusalOf(() => kindsWith([]))).toContain("has kind KIND_GPU but no GPUs are available");
  });

  it("is rejected when neither the model nor a file describes it", () => {
    const prepared = prepareConfig(undefined, {
      modelName: "m.identity",
      versionFiles: [],
      autoComplete: true,
    });
    expect(
      refusalOf(() => completeConfig(prepared, undefined, { autoComplete: true, isWritten: false })),
    ).toBe("NOT_FOUND model configuration is not provided for model 'm.identity'");
  });

  it("needs a reload for any change except instance groups and the version policy", () => {
    const before = complete(`backend: 'b' ${IO}`);
    expect(
      needsReload(
        before,
        complete(`backend: 'b' ${IO} instance_group { count: 3 } version_policy { all { } }`),
      ),
    ).toBe(false);
    expect(needsReload(before, complete(`backend: 'b' max_batch_size: 2 ${IO}`))).toBe(true);
  });
});

describe("completion by the model", () => {
  const completed = (text: string, act: (config: AutoCompleteConfig) => void) => {
    const prepared = prepare(`backend: 'b' ${text}`);
    const config = new AutoCompleteConfig(prepared);
    act(config);
    return completeConfig(prepared, config, { autoComplete: true });
  };

  it("adds missing fields", () => {
    const config = completed("input { name: 'x' }", (model) => {
      model.addInput({ name: "x", dataType: "TYPE_FP32", dims: [-1] });
      model.addOutput({ name: "y", dataType: "BYTES", dims: [1] });
      model.setMaxBatchSize(8);
      model.setDynamicBatching();
      model.setModelTransactionPolicy({ decoupled: true });
    });
    expect(config).toMatchObject({
      maxBatchSize: 8,
      input: [{ name: "x", dataType: "TYPE_FP32", dims: [-1] }],
      output: [{ name: "y", dataType: "TYPE_STRING", dims: [1] }],
      dynamicBatching: { preferredBatchSize: [8] },
      modelTransactionPolicy: { decoupled: true },
    });
  });

  it("rejects changes to written fields", () => {
    const text = `${IO} max_batch_size: 4 sequence_batching { } model_transaction_policy { decoupled: true }`;
    const refusals = [
      (model: AutoCompleteConfig) => model.setMaxBatchSize(2),
      (model: AutoCompleteConfig) => model.setDynamicBatching(),
      (model: AutoCompleteConfig) => model.setModelTransactionPolicy({ decoupled: false }),
      (model: AutoCompleteConfig) =>
        model.addInput({ name: "x", dataType: "FP32", dims: [4], optional: true }),
      (model: AutoCompleteConfig) => model.addOutput({ name: "y", dataType: "FP32", dims: [5] }),
    ].map((act) => refusalOf(() => completed(text, act)));
    expect(refusals).toEqual([
      "INTERNAL configuration specified max_batch_size 4, but in auto-complete-config function for model 'm' specified max_batch_size 2",
      "INTERNAL Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function for model 'm' tries to set scheduling_choice as 'dynamic_batching'",
      "INTERNAL trying to change decoupled property in auto-complete-config for model 'm', which is already set to 'True'.",
      "INTERNAL model 'm', tensor 'x': the model expects optional True but the model configuration specifies optional False",
      "INTERNAL model 'm', tensor 'y': the model expects dims [5] but the model configuration specifies dims [4]",
    ]);
  });

  it("is skipped when completion is not allowed", () => {
    const prepared = prepare(`backend: 'b' ${IO}`);
    const model = new AutoCompleteConfig(prepared);
    model.setMaxBatchSize(8);
    expect(completeConfig(prepared, model, { autoComplete: false }).maxBatchSize).toBe(0);
  });
});
