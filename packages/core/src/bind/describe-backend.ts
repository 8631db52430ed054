import { DEFAULT_MAX_BATCH_SIZE } from "../config/defaults.js";
import type { ModelOptions } from "../config/model-options.js";
import type { TensorSpec } from "../config/tensor-spec.js";
import type { Backend, ModelDescription } from "../instance/backend.js";
import { matchesShape, shapeToString } from "../tensor/shape.js";

/** Specifications that follow from a model file. */
export interface BackendSpecs {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly batchingByDefault: boolean;
  readonly problems: string[];
}

/**
 * Brings together what a model file says and what `bind` was told: specifications that were not given are those
 * of the file, given ones must agree with it, and a batch axis must be variable in every tensor.
 */
export function describeBackend(
  backend: Backend,
  inputs: readonly TensorSpec[] | undefined,
  outputs: readonly TensorSpec[] | undefined,
  options: ModelOptions,
): BackendSpecs {
  const description = backend.describe();
  const fixed = tensorsOf(description).filter(({ spec }) => spec.shape[0] !== -1);
  const batching =
    options.batching ?? (options.maxBatchSize === undefined ? fixed.length === 0 : options.maxBatchSize > 0);
  const problems: string[] = [];
  if (batching) {
    const size = options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE;
    for (const { kind, spec } of fixed) {
      problems.push(
        `config asks for batches of ${size}, but the first dimension of ${kind} '${spec.name}' in the model file is ` +
          `not variable: its shape is ${shapeToString(spec.shape)}; set config.batching to false or export the model ` +
          "with a variable first dimension",
      );
    }
  }
  const strip = (spec: TensorSpec): TensorSpec => (batching ? { ...spec, shape: spec.shape.slice(1) } : spec);
  if (inputs !== undefined) compare("input", inputs, description.inputs, batching, problems);
  if (outputs !== undefined) compare("output", outputs, description.outputs, batching, problems);
  return {
    inputs: inputs ?? description.inputs.map(strip),
    outputs: outputs ?? description.outputs.map(strip),
    batchingByDefault: batching,
    problems,
  };
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
  inFile: readonly TensorSpec[],
  batching: boolean,
  problems: string[],
): void {
  for (const spec of given) {
    const actual = inFile.find(({ name }) => name === spec.name);
    if (actual === undefined) {
      const names = inFile.map(({ name }) => `'${name}'`).join(", ");
      problems.push(`the model file has no ${kind} '${spec.name}'; it has ${names}`);
      continue;
    }
    if (actual.dtype !== spec.dtype) {
      problems.push(
        `${kind} '${spec.name}' is given as ${spec.dtype}, in the model file it is ${actual.dtype}`,
      );
    }
    const full = batching ? [-1, ...spec.shape] : spec.shape;
    if (!matchesShape(actual.shape, full) && !matchesShape(full, actual.shape)) {
      problems.push(
        `${kind} '${spec.name}' is given with shape ${shapeToString(full)}, in the model file it is ` +
          `${shapeToString(actual.shape)}`,
      );
    }
  }
  if (kind !== "input") return;
  for (const { name } of inFile) {
    if (!given.some((spec) => spec.name === name))
      problems.push(`the model file needs input '${name}', which is not given`);
  }
}
