import { closestName } from "./closest-name.js";
import type { DataType } from "./data-types.js";
import type { Tensor } from "./tensor.js";
import { matchesShape, type Shape, shapeToString } from "./tensor.js";
import { tensorFromValue } from "./tensor-from-value.js";
import { TritonError } from "./triton-error.js";

/** An input of a model. */
export interface SignatureInput {
  readonly name: string;
  readonly datatype: DataType;
  /** Dimensions without the batch axis; -1 for any size. */
  readonly dims: readonly number[];
  readonly optional: boolean;
}

/** The description of a model that a client needs to check its inputs. */
export interface ModelSignature {
  readonly modelName: string;
  /** Largest number of rows in a batch; 0 for a model without a batch axis. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly inputs: ReadonlyMap<string, SignatureInput>;
}

/** Meaning of the batch axis: "given" with the values, or "added" to one sample and removed from its results. */
export type BatchAxis = "given" | "added";

/**
 * Converts values by input name to the tensors of a request. They are checked against the model before anything is
 * sent.
 *
 * @throws TritonError INVALID_ARG that names the faulty input.
 */
export function modelInputs(
  signature: ModelSignature,
  values: Readonly<Record<string, unknown>>,
  axis: BatchAxis,
): Record<string, Tensor> {
  const { modelName, maxBatchSize, inputs } = signature;
  if (axis === "given" && maxBatchSize === 0) {
    throw invalid(`model '${modelName}' does not support batching: use inferSample()`);
  }
  const given = new Map(Object.entries(values).filter(([, value]) => value !== undefined));
  checkNames(signature, given);
  const tensors: Record<string, Tensor> = Object.create(null);
  for (const [name, value] of given) {
    tensors[name] = inputTensor(signature, inputs.get(name)!, value, axis);
  }
  if (axis === "given") checkBatch(signature, tensors);
  return tensors;
}

function checkNames({ modelName, inputs }: ModelSignature, given: ReadonlyMap<string, unknown>): void {
  const fault = inputNamesFault(modelName, [...inputs.values()], [...given.keys()]);
  if (fault !== undefined) throw invalid(fault);
  if (given.size === 0) throw invalid(`model '${modelName}': expected at least one input, got none`);
}

function inputTensor(
  { modelName, maxBatchSize }: ModelSignature,
  { name, datatype, dims }: SignatureInput,
  value: unknown,
  axis: BatchAxis,
): Tensor {
  const what = `input '${name}' of model '${modelName}'`;
  const shape = axis === "given" ? [-1, ...dims] : dims;
  const tensor = tensorFromValue(value, { what, datatype, shape, takesScalar: true });
  const fault = inputShapeFault(what, dims, tensor.shape, maxBatchSize > 0 ? axis : "none");
  if (fault !== undefined) throw invalid(fault);
  return axis === "added" && maxBatchSize > 0 ? tensor.reshaped([1, ...tensor.shape]) : tensor;
}

function checkBatch(
  { modelName, maxBatchSize }: ModelSignature,
  tensors: Readonly<Record<string, Tensor>>,
): void {
  let first: [string, number] | undefined;
  for (const [name, { shape }] of Object.entries(tensors)) {
    const rows = shape[0]!;
    first ??= [name, rows];
    if (rows !== first[1]) {
      throw invalid(
        `inputs of model '${modelName}': expected equal batch sizes, got ${first[1]} of '${first[0]}' and ${rows} of '${name}'`,
      );
    }
  }
  if (first !== undefined && first[1] > maxBatchSize) {
    throw invalid(`batch of model '${modelName}': expected at most ${maxBatchSize} rows, got ${first[1]}`);
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}

/** An input of a model, by which names are checked. */
export interface NamedInput {
  readonly name: string;
  readonly optional: boolean;
}

/** Describes the first input that the model lacks, or else the required inputs that are missing. */
export function inputNamesFault(
  modelName: string,
  inputs: readonly NamedInput[],
  given: readonly string[],
): string | undefined {
  const names = inputs.map(({ name }) => name);
  for (const name of given) {
    if (names.includes(name)) continue;
    const meant = closestName(name, names);
    const advice = meant === undefined ? `expected ${quoted(names)}` : `did you mean '${meant}'?`;
    return `model '${modelName}' has no input '${name}': ${advice}`;
  }
  const missing = inputs.filter(({ name, optional }) => !optional && !given.includes(name));
  return missing.length === 0
    ? undefined
    : `model '${modelName}': missing input ${quoted(missing.map(({ name }) => name))}`;
}

/** Role of the batch axis in the shapes of a call: given by the caller, added to one sample, or absent. */
export type ShapeAxis = "given" | "added" | "none";

/**
 * Describes an input whose shape does not fit, in the shapes that the caller knows: with the batch axis where the caller
 * gives it. Names the other method where that is what the caller means. Undefined for a shape that fits.
 *
 * @param what the input in the text: `input 'x' of model 'm'`
 * @param dims dimensions of the input without the batch axis; -1 for any size
 * @param shape shape that the caller gave
 */
export function inputShapeFault(
  what: string,
  dims: Shape,
  shape: Shape,
  axis: ShapeAxis,
): string | undefined {
  const expected = axis === "given" ? [-1, ...dims] : dims;
  if (matchesShape(expected, shape)) return undefined;
  const meaning = { given: " with the batch axis", added: " of one sample", none: "" }[axis];
  const text = `${what}: expected shape ${shapeToString(expected)}${meaning}, got ${shapeToString(shape)}`;
  if (axis === "given") {
    return matchesShape(dims, shape) ? `${text}: use inferSample() for one sample, or add the axis` : text;
  }
  if (!matchesShape([-1, ...dims], shape)) return text;
  return `${text}: ${axis === "added" ? "use inferBatch() for a batch" : "the model has no batch axis"}`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}
