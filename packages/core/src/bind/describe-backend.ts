import {
  type DescribedTensor,
  fromConfigDataType,
  type ModelConfig,
  type ModelSequenceBatching,
  matchesShape,
  shapeToString,
  type TensorSpec,
} from "@tritonjs/protocol";
import { DEFAULT_MAX_BATCH_SIZE } from "../config/defaults.js";
import type { ModelOptions } from "../config/model-options.js";
import { sequenceTensors } from "../config/sequence-batching.js";
import type { Backend, ModelDescription } from "../instance/backend.js";

/** Specifications that follow from a model file. */
export interface BackendSpecs {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly batchingByDefault: boolean;
  readonly maxBatchSize?: number | undefined;
  readonly decoupled?: boolean | undefined;
  readonly problems: string[];
}

/**
 * Merges the description of a model file with the options of `bind`. Specifications that were not given are taken from
 * the file. Given ones must agree with it. A batch axis must be variable in every tensor. Tensors that the sequence
 * batcher exchanges with the model are not specifications: clients neither send nor receive them.
 */
export function describeBackend(
  backend: Backend,
  inputs: readonly TensorSpec[] | undefined,
  outputs: readonly TensorSpec[] | undefined,
  options: ModelOptions,
  sequences?: ModelSequenceBatching,
  modelConfig: Partial<ModelConfig> = {},
): BackendSpecs {
  const description = backend.describe();
  if (description === undefined) {
    const batching = options.batching ?? (options.maxBatchSize ?? 0) > 0;
    return { inputs: inputs ?? [], outputs: outputs ?? [], batchingByDefault: batching, problems: [] };
  }
  const shapeTensors = shapeTensorsOf([...(inputs ?? []), ...(outputs ?? [])], modelConfig);
  const asInConfig = description.asInConfig ?? false;
  const withRows = tensorsOf(description).filter(({ spec }) => !shapeTensors.has(spec.name));
  const given = new Set([...(inputs ?? []), ...(outputs ?? [])].map(({ name }) => name));
  const fixed = withRows.filter(
    ({ spec }) => spec.shape[0] !== -1 && !(spec.rankUnknown && given.has(spec.name)),
  );
  const size = options.maxBatchSize ?? description.maxBatchSize;
  const batching = options.batching ?? (size === undefined ? !asInConfig && fixed.length === 0 : size > 0);
  const problems = contradictions(description, options, batching);
  const hasRows = batching && !asInConfig;
  if (hasRows) {
    const size = options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE;
    for (const { kind, spec } of fixed) {
      problems.push(
        `config.maxBatchSize is ${size}, but the first dimension of ${kind} '${spec.name}' in the model file is ` +
          `not variable: its shape is ${shapeToString(spec.shape)}; set config.batching to false or export the model ` +
          "with a variable first dimension",
      );
    }
  }
  // A configuration cannot express dimensions of 0, which tensors that are always empty have.
  const strip = (spec: TensorSpec): TensorSpec => {
    const shape = spec.shape.map((dim) => (dim === 0 ? -1 : dim));
    return { ...spec, shape: hasRows && !shapeTensors.has(spec.name) ? shape.slice(1) : shape };
  };
  const made = (modelConfig.batchInput ?? []).flatMap(({ targetName }) => targetName);
  const { inputs: sequenceInputs, outputs: sequenceOutputs } = sequenceTensors(sequences);
  const clientInputs = description.inputs.filter(
    ({ name }) => !sequenceInputs.includes(name) && !made.includes(name),
  );
  const ragged = [...(inputs ?? []), ...(modelConfig.input ?? [])].filter((input) => input.allowRaggedBatch);
  problems.push(...raggedProblems(ragged, description));
  const clientOutputs = description.outputs.filter(({ name }) => !sequenceOutputs.includes(name));
  if (inputs !== undefined) compare("input", inputs, clientInputs, hasRows, problems, asInConfig);
  if (outputs !== undefined) compare("output", outputs, description.outputs, hasRows, problems, asInConfig);
  const states = (sequences?.state ?? []).map(({ dataType, dims, ...names }) => ({
    ...names,
    dtype: fromConfigDataType(dataType)!,
    shape: dims,
  }));
  const stateInputs = states.map(({ inputName: name, dtype, shape }) => ({ name, dtype, shape }));
  const stateOutputs = states.map(({ outputName: name, dtype, shape }) => ({ name, dtype, shape }));
  compare("state input", stateInputs, description.inputs, hasRows, problems, asInConfig);
  compare("state output", stateOutputs, description.outputs, hasRows, problems, asInConfig);
  return {
    inputs: together(inputs, clientInputs.map(strip), asInConfig),
    outputs: together(outputs, clientOutputs.map(strip), asInConfig),
    batchingByDefault: batching,
    maxBatchSize: description.maxBatchSize,
    decoupled: description.decoupled,
    problems,
  };
}

/**
 * Returns the given tensors, or the described ones if none are given. As in a configuration, the description fills in
 * tensors that were not given.
 */
function together(
  given: readonly TensorSpec[] | undefined,
  described: readonly TensorSpec[],
  asInConfig: boolean,
): readonly TensorSpec[] {
  if (given === undefined) return described;
  if (!asInConfig) return given;
  return [...given, ...described.filter(({ name }) => !given.some((spec) => spec.name === name))];
}

/** Lists options that contradict a model which fixes its own batching and responses. */
function contradictions(
  { maxBatchSize, decoupled }: ModelDescription,
  options: ModelOptions,
  batching: boolean,
): string[] {
  const problems: string[] = [];
  const asked = batching ? (options.maxBatchSize ?? maxBatchSize ?? 0) : 0;
  if (maxBatchSize !== undefined && (asked > maxBatchSize || (batching && maxBatchSize === 0))) {
    problems.push(
      `config.maxBatchSize is ${asked || DEFAULT_MAX_BATCH_SIZE}, but the model takes at most ${maxBatchSize} rows`,
    );
  }
  if (decoupled !== undefined && options.decoupled !== undefined && decoupled !== options.decoupled) {
    problems.push(`config.decoupled: expected ${decoupled}, as the model is, got ${options.decoupled}`);
  }
  return problems;
}

function tensorsOf({ inputs, outputs }: ModelDescription) {
  return [
    ...inputs.map((spec) => ({ kind: "input", spec })),
    ...outputs.map((spec) => ({ kind: "output", spec })),
  ];
}

function compare(
  kind: string,
  given: readonly TensorSpec[],
  inFile: readonly DescribedTensor[],
  batching: boolean,
  problems: string[],
  asInConfig = false,
): void {
  for (const spec of given) {
    const actual = inFile.find(({ name }) => name === spec.name);
    if (actual === undefined) {
      if (asInConfig) continue;
      const names = inFile.map(({ name }) => `'${name}'`).join(", ");
      problems.push(`${kind} '${spec.name}' is not in the model file: expected one of ${names}`);
      continue;
    }
    if (actual.dtype !== spec.dtype) {
      problems.push(
        `${kind} '${spec.name}': expected dtype ${actual.dtype}, as in the model file, got ${spec.dtype}`,
      );
    }
    if (!hasOwnShape(spec) || actual.rankUnknown) continue;
    const full = batching && !spec.isShapeTensor ? [-1, ...spec.shape] : spec.shape;
    if (!matchesShape(actual.shape, full) && !matchesShape(full, actual.shape)) {
      problems.push(
        `${kind} '${spec.name}' has shape ${shapeToString(full)}, but in the model file it is ` +
          `${shapeToString(actual.shape)}`,
      );
    }
  }
  if (kind !== "input" || asInConfig) return;
  for (const { name } of inFile) {
    if (!given.some((spec) => spec.name === name))
      problems.push(`input '${name}' of the model file is missing: add it to inputs`);
  }
}

/** False for a tensor whose shape in the model file follows from the shapes of a whole batch. */
function hasOwnShape({ allowRaggedBatch, batchInput, batchOutput }: TensorSpec): boolean {
  if (allowRaggedBatch || batchOutput?.kind === "BATCH_SCATTER_WITH_INPUT_SHAPE") return false;
  return batchInput === undefined || batchInput.kind === "PADDING_MASK";
}

function shapeTensorsOf(specs: readonly TensorSpec[], { input = [], output = [] }: Partial<ModelConfig>) {
  const all = [...specs, ...input, ...output];
  return new Set(all.filter(({ isShapeTensor }) => isShapeTensor).map(({ name }) => name));
}

/**
 * Lists problems with ragged inputs. A model file takes such an input as the elements of all requests, in one
 * dimension.
 */
function raggedProblems(
  ragged: readonly { readonly name: string; readonly optional?: boolean | undefined }[],
  description: ModelDescription,
): string[] {
  const expected = "configuration expects model provides input with shape [-1]";
  return ragged.flatMap(({ name, optional }) => {
    if (optional)
      return [`${expected} for ragged input '${name}', which is not supported for optional input`];
    const shape = description.inputs.find((input) => input.name === name)?.shape;
    if (shape === undefined || (shape.length === 1 && shape[0] === -1)) return [];
    return [`${expected} for ragged input '${name}', model provides ${shapeToString(shape)}`];
  });
}
