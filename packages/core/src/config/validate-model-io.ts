import {
  elementCount,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
} from "@tritonjs/protocol";
import { batchInputKind, batchOutputKind } from "@tritonjs/protocol/config";

/** Lists problems with the tensors of a configuration, with Triton's texts. */
export function validateModelIo(config: ModelConfig): string[] {
  const problems = [
    ...config.input.flatMap((input) => [
      ...tensorProblems(input, "input", config.maxBatchSize),
      ...formatProblems(input),
      ...nonLinearProblems(input, "input", config.platform),
    ]),
    ...config.output.flatMap((output) => [
      ...tensorProblems(output, "output", config.maxBatchSize),
      ...nonLinearProblems(output, "output", config.platform),
    ]),
    ...batchIoProblems(config),
    ...repeated(config.input).map((name) => `model input '${name}' is given more than once`),
    ...repeated(config.output).map((name) => `model output '${name}' is given more than once`),
  ];
  return problems.map((problem) => `${problem} for ${config.name}`);
}

function tensorProblems(
  { name, dataType, dims, reshape }: ModelInput | ModelOutput,
  kind: "input" | "output",
  maxBatchSize: number,
): string[] {
  if (name === "") return [`model ${kind} must specify 'name'`];
  const label = `model ${kind} '${name}'`;
  const problems: string[] = [];
  if (dataType === "TYPE_INVALID") problems.push(`${label} must specify 'data_type'`);
  else if (fromConfigDataType(dataType) === undefined) {
    problems.push(`${label}: expected a known 'data_type', got '${dataType}'`);
  }
  if (dims.length === 0) problems.push(`${label} must specify 'dims'`);
  if (reshape?.shape.length === 0 && maxBatchSize === 0) {
    problems.push(
      `${label} cannot have empty reshape for non-batching model as scalar tensors are not supported`,
    );
  }
  if (!dims.every(isDimension)) {
    problems.push(`${label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension`);
  } else if (dims.length > 0 && reshape !== undefined) {
    problems.push(...reshapeProblems(label, name, dims, reshape.shape));
  }
  return problems;
}

function isDimension(dim: number): boolean {
  return dim === -1 || (Number.isInteger(dim) && dim >= 1);
}

function reshapeProblems(
  label: string,
  name: string,
  dims: readonly number[],
  shape: readonly number[],
): string[] {
  if (!shape.every(isDimension)) {
    return [`${label} reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension`];
  }
  for (const [kind, counted] of [
    ["dims", dims],
    ["reshape", shape],
  ] as const) {
    if (exceedsInt64(counted)) {
      return [`element count for tensor '${name} ${kind}' exceeds maximum size of ${MAX_INT64}`];
    }
  }
  const given = stretches(dims);
  const wanted = stretches(shape);
  if ((given.length === 1) !== (wanted.length === 1)) {
    return [`${label} has different size for dims and reshape`];
  }
  if (given.length !== wanted.length) {
    return [`${label} has different number of variable-size dimensions for dims and reshape`];
  }
  return given.every((count, i) => count === wanted[i])
    ? []
    : [`${label} has different size for dims and reshape`];
}

/** Element counts between variable dimensions. They agree one by one, because elements cannot move across one. */
function stretches(dims: readonly number[]): bigint[] {
  const counts = [1n];
  for (const dim of dims) {
    if (dim === -1) counts.push(1n);
    else counts[counts.length - 1]! *= BigInt(dim);
  }
  return counts;
}

const MAX_INT64 = 2n ** 63n - 1n;

/** Whether the number of elements exceeds an int64. A variable dimension ends the count, as in Triton. */
function exceedsInt64(dims: readonly number[]): boolean {
  let count = 1n;
  for (const [axis, dim] of dims.entries()) {
    if (dim === -1) return false;
    count *= BigInt(dim);
    if (axis > 0 && count > MAX_INT64) return true;
  }
  return false;
}

function formatProblems({ format, dims }: ModelInput): string[] {
  const isImage = format === "FORMAT_NHWC" || format === "FORMAT_NCHW";
  return isImage && dims.length !== 3 ? ["model input NHWC/NCHW require 3 dims"] : [];
}

function nonLinearProblems(
  tensor: ModelInput | ModelOutput,
  kind: "input" | "output",
  platform: string,
): string[] {
  if (!tensor.isNonLinearFormatIo) return [];
  if (platform !== "tensorrt_plan")
    return ["Non-linear IO format is only supported for the TensorRT platform"];
  return tensor.dims.length === 3 ? [] : [`Non-linear IO format ${kind} requires 3 dims`];
}

/** Names that several tensors have. */
export function repeated(tensors: readonly { readonly name: string }[]): string[] {
  const names = tensors.map(({ name }) => name).filter((name) => name !== "");
  return [...new Set(names.filter((name, i) => names.indexOf(name) !== i))];
}

/** Lists problems with the dims of a tensor: impossible dimensions, and more elements than can be counted. */
export function dimsProblems(label: string, dims: readonly number[]): string[] {
  const impossible = dims.find((dim) => !Number.isSafeInteger(dim) || dim < -1 || dim === 0);
  if (impossible !== undefined) {
    return [
      `${label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got ${impossible}`,
    ];
  }
  return countable(dims) ? [] : [`${label} has too many elements to count: [${dims.join(",")}]`];
}

/** Whether the elements can be counted, without the variable dimensions. */
export function countable(dims: readonly number[]): boolean {
  try {
    elementCount(dims.filter((dim) => dim !== -1));
    return true;
  } catch {
    return false;
  }
}

export function batchIoProblems({ input, output, batchInput, batchOutput }: ModelConfig): string[] {
  const inputs = input.map(({ name }) => name);
  const outputs = output.map(({ name }) => name);
  const problems: string[] = [];
  const checkSources = (what: string, kind: string, known: object, sources: readonly string[]) => {
    if (!Object.hasOwn(known, kind)) problems.push(`unknown batch ${what} kind '${kind}'`);
    else if (sources.length !== 1) {
      problems.push(`batch ${what} kind '${kind}' expects 1 source input, got ${sources.length}`);
    }
  };
  const checkKnown = (sources: readonly string[]) => {
    for (const name of sources) {
      if (!inputs.includes(name)) problems.push(`unknown source input name '${name}'`);
    }
  };
  for (const { kind, dataType, sourceInput } of batchInput) {
    checkSources("input", kind, batchInputKind.values, sourceInput);
    if (dataType !== "TYPE_INT32" && dataType !== "TYPE_FP32") {
      problems.push("batch input data type must be TYPE_INT32 or TYPE_FP32");
    }
    checkKnown(sourceInput);
  }
  for (const { kind, sourceInput, targetName } of batchOutput) {
    checkSources("output", kind, batchOutputKind.values, sourceInput);
    checkKnown(sourceInput);
    for (const [index, name] of targetName.entries()) {
      if (!outputs.includes(name)) problems.push(`unknown target output name '${name}'`);
      else if (targetName.indexOf(name) < index) {
        problems.push(`target output name '${name}' can only be specified once`);
      }
    }
  }
  return problems;
}

/** Lists the problems with batch inputs that Triton's backends report before all others. */
export function batchInputTypeProblems({ batchInput }: ModelConfig): string[] {
  return batchInput
    .filter(({ dataType }) => dataType === "TYPE_INVALID")
    .map(({ dataType }) => `unexpected batch input data type '${dataType}'`);
}
