import {
  type DescribedTensor,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type Shape,
  shapeToString,
  type TensorSpec,
  TritonError,
  toConfigDataType,
} from "@tritonjs/protocol";

import { defaultDynamicBatching, emptyModelInput, emptyModelOutput } from "../schema/defaults.js";

import { sequenceTensors } from "../schema/sequence-batching.js";

/** The tensors of a model file, with all their dimensions. */
export interface FileDescription {
  readonly inputs: readonly DescribedTensor[];
  readonly outputs: readonly DescribedTensor[];
}

/** Inputs of the completion from a file, besides the file. */
export interface FileCompletionOptions {
  readonly defaultMaxBatchSize?: number;
  readonly warn?: (text: string) => void;
}

/** Triton's largest batch of a model whose configuration gives none. */
const TRITON_DEFAULT_MAX_BATCH_SIZE = 4;

/**
 * Completes a configuration from a model file by the rules of Triton's onnxruntime backend. If both inputs and outputs
 * are written, nothing is completed. Otherwise the model batches if the first dimension of every tensor is variable:
 * with the default size unless one is written, and dynamically unless another scheduler is written. Missing inputs and
 * outputs are taken from the file. Scalars and tensors of unknown rank get dims [1].
 *
 * @throws TritonError INVALID_ARG when a batch size is written for a model that cannot batch
 */
export function completeFromFile(
  config: ModelConfig,
  file: FileDescription,
  { defaultMaxBatchSize = TRITON_DEFAULT_MAX_BATCH_SIZE, warn }: FileCompletionOptions,
): ModelConfig {
  const hasInputs = config.input.length + config.batchInput.length > 0;
  const hasOutputs = config.output.length > 0;
  if (hasInputs && hasOutputs) return config;
  const batches = [...file.inputs, ...file.outputs].every(({ shape }) => shape[0] === -1);
  const completed = { ...config };
  if (batches) {
    if (config.maxBatchSize === 0) {
      completed.maxBatchSize = Math.max(0, defaultMaxBatchSize);
      warn?.(
        `autofilled max_batch_size to ${completed.maxBatchSize} for model '${config.name}' since batching is ` +
          "supported but no max_batch_size is specified in model configuration. Must specify max_batch_size to " +
          "utilize autofill with a larger max batch size",
      );
    }
    const isScheduled = config.dynamicBatching ?? config.sequenceBatching;
    if (completed.maxBatchSize > 1 && isScheduled === undefined) {
      completed.dynamicBatching = defaultDynamicBatching();
    }
  } else if (config.maxBatchSize !== 0) {
    throw new TritonError(
      "INVALID_ARG",
      `autofill failed for model '${config.name}': model does not support batching while non-zero max_batch_size is ` +
        "specified",
      { reason: "INVALID_CONFIG" },
    );
  }
  const dimsOf = (spec: DescribedTensor) => {
    if (spec.rankUnknown) {
      warn?.(
        `autofilled dims [1] for tensor '${spec.name}' of model '${config.name}': its file does not give the number of ` +
          "dimensions, and ONNX Runtime cannot infer it. If the tensor has other dims, set them in the model configuration",
      );
    }
    return configDims(spec, completed.maxBatchSize);
  };
  if (!hasInputs) {
    // Tensors that the sequence batcher makes are not inputs of requests.
    const own = new Set(sequenceTensors(config.sequenceBatching).inputs);
    completed.input = file.inputs
      .filter(({ name }) => !own.has(name))
      .map((spec) => ({ ...emptyModelInput(), ...dimsOf(spec) }));
  }
  if (!hasOutputs) {
    const own = new Set(sequenceTensors(config.sequenceBatching).outputs);
    completed.output = file.outputs
      .filter(({ name }) => !own.has(name))
      .map((spec) => ({ ...emptyModelOutput(), ...dimsOf(spec) }));
  }
  return completed;
}

/** A configuration has no tensor without dims. A tensor that has no dims besides the batch axis is shown as [1]. */
function configDims({ name, dtype, shape }: TensorSpec, maxBatchSize: number) {
  const dims = configurable(maxBatchSize > 0 ? shape.slice(1) : shape);
  const dataType = toConfigDataType(dtype);
  if (dims.length > 0) return { name, dataType, dims };
  return maxBatchSize > 0
    ? { name, dataType, dims: [1], reshape: { shape: [] } }
    : { name, dataType, dims: [1] };
}

/**
 * Removes dimensions of 0, which a configuration cannot express. The file has them for tensors that are always empty.
 */
function configurable(shape: Shape): number[] {
  return shape.map((dim) => (dim === 0 ? -1 : dim));
}

/**
 * Lists contradictions between a completed configuration and the model file, with the texts of Triton's onnxruntime
 * backend.
 */
export function checkOnnxTensors(config: ModelConfig, file: FileDescription): string[] {
  const model = config.name;
  const own = sequenceTensors(config.sequenceBatching);
  // An optional input replaces an initializer, which a session does not count as an input.
  const expected =
    config.input.filter(({ optional }) => !optional).length +
    config.batchInput.flatMap(({ targetName }) => targetName).length +
    own.inputs.length;
  const problems: string[] = [];
  if (expected !== file.inputs.length) {
    problems.push(
      `unable to load model '${model}', configuration expects ${expected} inputs, model provides ${file.inputs.length}`,
    );
  }
  for (const input of config.input) {
    problems.push(...optionalProblems(config, input), ...tensorProblems(config, input, "input", file.inputs));
  }
  const scattered = new Set(config.batchOutput.flatMap(({ targetName }) => targetName));
  for (const output of config.output) {
    problems.push(...tensorProblems(config, output, "output", file.outputs, scattered.has(output.name)));
  }
  return problems;
}

function optionalProblems({ name: model, maxBatchSize }: ModelConfig, input: ModelInput): string[] {
  const { name, optional, allowRaggedBatch } = input;
  if (!optional) return [];
  if (maxBatchSize > 0) {
    const text = `optional input '${name}' is not supported for models that support batching`;
    return [`unable to load model '${model}', ${text}`];
  }
  return allowRaggedBatch
    ? [
        `unable to load model '${model}', configuration expects model provides input with shape [-1] for ragged input ` +
          `'${name}', which is not supported for optional input`,
      ]
    : [];
}

function tensorProblems(
  { name: model, maxBatchSize }: ModelConfig,
  tensor: ModelInput | ModelOutput,
  kind: "input" | "output",
  inFile: readonly DescribedTensor[],
  anyShape = false,
): string[] {
  const { name, dataType } = tensor;
  const spec = inFile.find((one) => one.name === name);
  if (spec === undefined) {
    const names = inFile.map((one) => one.name).sort();
    return [`unexpected inference ${kind} '${name}', allowed ${kind}s are: ${names.join(", ")}`];
  }
  const provided = toConfigDataType(spec.dtype);
  if (provided !== dataType) {
    return [
      `unable to load model '${model}', configuration expects datatype ${dataType} for ${kind} '${name}', model ` +
        `provides ${provided}`,
    ];
  }
  if (anyShape) return [];
  const shape = configurable(spec.shape);
  if ("allowRaggedBatch" in tensor && tensor.allowRaggedBatch) {
    return shape.length === 1 && shape[0] === -1
      ? []
      : [
          `unable to load model '${model}', configuration expects model provides input with shape [-1]  for ragged ` +
            `input '${name}', model provides ${shapeToString(shape)}`,
        ];
  }
  // The model may accept any configured dims of a tensor of unknown rank.
  if (spec.rankUnknown) return [];
  const dims = tensor.reshape?.shape ?? tensor.dims;
  if (shape.length === 0 && maxBatchSize === 0) return scalarProblems(model, name, dims);
  return shapeProblems(`model '${model}', tensor '${name}'`, shape, dims, maxBatchSize, kind === "output");
}

/**
 * Checks that the dims of a scalar are ones. A configuration has no tensor without dims, so ones represent a scalar.
 */
function scalarProblems(model: string, name: string, dims: readonly number[]): string[] {
  if (dims.every((dim) => dim === 1)) return [];
  return [
    `unable to load model '${model}', scalar tensor '${name}', should only provide 1 in the model configuration when ` +
      `the model doesn't support batching. Model configuration provided: ${shapeToString(dims)}.`,
  ];
}

/**
 * Checks dims against the file. An input may be narrower than the file allows. An output must have the shape of the
 * file.
 */
function shapeProblems(
  label: string,
  shape: Shape,
  dims: readonly number[],
  maxBatchSize: number,
  exact: boolean,
): string[] {
  const given = shapeToString(shape);
  const batches = maxBatchSize > 0;
  if (batches && shape[0] !== -1) {
    return [
      `${label}: for the model to support batching the shape should have at least 1 dimension and the first dimension ` +
        `must be -1; but shape expected by the model is ${given}`,
    ];
  }
  const full = batches ? [-1, ...dims] : [...dims];
  const agrees = (dim: number, axis: number) => dim === full[axis] || (!exact && dim === -1);
  if (shape.length === full.length && shape.every(agrees)) return [];
  const configured = batches
    ? "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape"
    : "shape";
  return [
    `${label}: the model expects ${shape.length} dimensions (shape ${given}) but the model configuration specifies ` +
      `${full.length} dimensions (${configured} ${shapeToString(full)})`,
  ];
}
