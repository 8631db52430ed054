import {
  type DataType,
  elementCount,
  NO_PARAMETERS,
  type Parameters,
  type ParameterValue,
  Tensor,
  TritonError,
  type TypedArray,
} from "@tritonjs/protocol";

/** One answer to a request. */
export interface InferenceResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  /** Id of the request; empty if it had none. */
  readonly id: string;
  readonly parameters: Parameters;
  /** Requested tensors by name, in the model's order. */
  readonly outputs: ReadonlyMap<string, Tensor>;
}

/** Key of the parameters of a response in its object of outputs; shared between copies of the library. */
const key = Symbol.for("tritonjs.responseParameters");

/** Parameters for the responses of a batch: one set for all, or an entry for each request, in order. */
export type ResponseParameters = Parameters | readonly (Parameters | undefined)[];

/**
 * Adds parameters for the response to the outputs of a callback. Clients get them besides the tensors.
 *
 * @param parameters for a callback made with `batch`, a list has those of each request of the batch
 *
 * @example
 * ```ts
 * const inferFunc = batch(({ x }, { requests }) =>
 *   withParameters({ y: x }, requests.map(({ id }) => ({ answered: id, model_revision: 7 }))));
 * ```
 */
export function withParameters<T extends object>(outputs: T, parameters: ResponseParameters): T {
  return Object.defineProperty({ ...outputs }, key, { value: parameters });
}

/** The parameters of a response that `infer` resolves to or `stream` yields. */
export function responseParameters(outputs: object): Parameters {
  const given = givenParameters(outputs) ?? NO_PARAMETERS;
  return isList(given) ? (given[0] ?? NO_PARAMETERS) : given;
}

/** Parameters that `withParameters` added to an object of outputs. */
function givenParameters(outputs: object): ResponseParameters | undefined {
  return (outputs as { readonly [key]?: ResponseParameters })[key];
}

/** Outputs with parameters for their response: for backends, whose outputs are tensors by name. */
export class OutputsWithParameters extends Map<string, Tensor> {
  constructor(
    outputs: Iterable<readonly [string, Tensor]>,
    readonly parameters: ResponseParameters,
  ) {
    super(outputs);
  }
}

/** Divides the parameters among the requests of a batch. */
export function divideParameters(
  outputs: ReadonlyMap<string, Tensor>,
  divided: ReadonlyMap<string, Tensor>[],
): ReadonlyMap<string, Tensor>[] {
  if (!(outputs instanceof OutputsWithParameters)) return divided;
  return divided.map((part, i) => new OutputsWithParameters(part, parametersOf(outputs, i)));
}

/** The parameters for the response to the request at `index` of its batch. */
export function parametersOf(outputs: ReadonlyMap<string, Tensor>, index = 0): Parameters {
  if (!(outputs instanceof OutputsWithParameters)) return NO_PARAMETERS;
  const { parameters } = outputs;
  return isList(parameters) ? (parameters[index] ?? NO_PARAMETERS) : parameters;
}

/**
 * Takes over the parameters that a callback added to its outputs, if any.
 *
 * @throws TritonError INTERNAL for a parameter that no response can have.
 */
export function takeParameters(
  modelName: string,
  value: object,
  outputs: Map<string, Tensor>,
): Map<string, Tensor> {
  const given = givenParameters(value);
  if (given === undefined) return outputs;
  for (const parameters of isList(given) ? given : [given]) {
    for (const [name, parameter] of Object.entries(parameters ?? {})) {
      if (isParameter(parameter)) continue;
      throw new TritonError(
        "INTERNAL",
        `model '${modelName}' returned a wrong parameter '${name}': expected a string, a boolean, a finite number ` +
          `or an integer of 64 bits, got ${describe(parameter)}`,
        { reason: "INVALID_OUTPUT" },
      );
    }
  }
  return new OutputsWithParameters(outputs, given);
}

function isList(given: ResponseParameters): given is readonly (Parameters | undefined)[] {
  return Array.isArray(given);
}

function isParameter(value: unknown): value is ParameterValue {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value === "bigint") return BigInt.asIntN(64, value) === value;
  return typeof value === "string" || typeof value === "boolean";
}

function describe(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" ? String(value) : typeof value;
}

type Tensors = ReadonlyMap<string, Tensor>;

/**
 * Selects the outputs that a request asks for, in the model's order.
 *
 * @param names names of all outputs of the model
 * @param requested names of the requested outputs; empty for all
 */
export function selectOutputs(
  outputs: Tensors,
  names: readonly string[],
  requested: readonly string[],
): Tensors {
  // Fast path: most models have one output, and most requests ask for it.
  const isAll = requested.length === 0 && names.length === 1 && outputs.size === 1;
  if (isAll && outputs.has(names[0]!)) return outputs;
  const selected = new Map<string, Tensor>();
  for (const name of names) {
    const tensor = outputs.get(name);
    if (tensor === undefined) continue;
    if (requested.length === 0 || requested.includes(name)) selected.set(name, tensor);
  }
  return selected;
}

/** Largest number of elements of a row that is sorted: more would block the process. */
const MAX_ELEMENTS = 1_000_000;

/** Data types whose elements have an order, and a C++ text form that is simple to reproduce. */
const CLASSIFIABLE: ReadonlySet<DataType> = new Set<DataType>([
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP32",
  "FP64",
]);

const encoder = new TextEncoder();

/**
 * Computes the classification of an output. Each row becomes its `classes` largest elements, as `BYTES` elements
 * `value:index[:label]`. The largest is first, equal elements are ordered by index, and NaN is last.
 *
 * @param batched true if the first axis is the batch axis
 * @throws TritonError INVALID_ARG for data types without an order and for more than a million elements a row.
 */
export function classify(
  tensor: Tensor,
  classes: number,
  batched: boolean,
  labels: readonly string[] | undefined,
): Tensor {
  if (!CLASSIFIABLE.has(tensor.datatype)) {
    throw new TritonError(
      "INVALID_ARG",
      `class result not available for output due to unsupported type '${tensor.datatype}'`,
      { reason: "INVALID_REQUESTED_OUTPUT" },
    );
  }
  const rows = batched ? (tensor.shape[0] ?? 0) : 0;
  const width = elementCount(rows > 0 ? tensor.shape.slice(1) : tensor.shape);
  if (width > MAX_ELEMENTS)
    throw new TritonError("INVALID_ARG", "classification output tensor too large", {
      reason: "INVALID_REQUESTED_OUTPUT",
    });
  const elements = tensor.elements as TypedArray;
  const kept = Math.min(classes, width);
  const texts: Uint8Array[] = [];
  for (let row = 0; row < Math.max(1, rows); row++) {
    const values = elements.subarray(row * width, (row + 1) * width);
    for (const index of largest(values, kept)) texts.push(encoder.encode(classText(values, index, labels)));
  }
  return Tensor.fromElements("BYTES", rows > 0 ? [rows, kept] : [kept], texts);
}

function largest(values: TypedArray, count: number): Uint32Array {
  const order = Uint32Array.from({ length: values.length }, (_, index) => index);
  order.sort((a, b) => descending(values[a]!, values[b]!) || a - b);
  return order.subarray(0, count);
}

function descending(a: number | bigint, b: number | bigint): number {
  if (a > b) return -1;
  if (a < b) return 1;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

function classText(values: TypedArray, index: number, labels: readonly string[] | undefined): string {
  const value = values[index]!;
  const floating = values instanceof Float32Array || values instanceof Float64Array;
  const text = `${floating ? fixedText(value as number) : value}:${index}`;
  const label = labels?.[index];
  return label === undefined || label === "" ? text : `${text}:${label}`;
}

/**
 * Formats a number like C's `%f`: six decimals, an exact half rounded to even, all digits before the point.
 *
 * @example `fixedText(0.1)` is `0.100000`, `fixedText(1e21)` is `1000000000000000000000.000000`
 */
function fixedText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (value < 0 || Object.is(value, -0)) return `-${fixedText(-value)}`;
  if (value >= 1e21) return `${BigInt(value)}.000000`;
  // Seven decimals show a half exactly if the value is a multiple of 2^-7: no other value can end after the seventh.
  const seven = value.toFixed(7);
  const isHalf = Number.isInteger(value * 128) && seven.endsWith("5");
  const lastDigitIsEven = Number(seven.at(-2)) % 2 === 0;
  return isHalf && lastDigitIsEven ? seven.slice(0, -1) : value.toFixed(6);
}
