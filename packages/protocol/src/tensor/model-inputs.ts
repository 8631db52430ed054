import { TritonError } from "../errors/triton-error.js";
import type { DataType } from "./data-type.js";
import { tensorFromValue } from "./from-value.js";
import { matchesShape, shapeToString } from "./shape.js";
import type { Tensor } from "./tensor.js";

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
  for (const name of given.keys()) {
    if (!inputs.has(name)) {
      throw invalid(`model '${modelName}' has no input '${name}': expected ${quoted(inputs.keys())}`);
    }
  }
  const missing = [...inputs.values()].filter(({ name, optional }) => !optional && !given.has(name));
  if (missing.length > 0) {
    throw invalid(`model '${modelName}': missing input ${quoted(missing.map(({ name }) => name))}`);
  }
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
  if (!matchesShape(shape, tensor.shape)) {
    throw invalid(`${what}: expected shape ${shapeToString(shape)}, got ${shapeToString(tensor.shape)}`);
  }
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

function quoted(names: Iterable<string>): string {
  return [...names].map((name) => `'${name}'`).join(", ");
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
