import {
  arrayDatatypes,
  type DataType,
  elementCount,
  errorFor,
  fromConfigDataType,
  isNdArray,
  type ModelConfig,
  matchesShape,
  NO_PARAMETERS,
  type Parameters,
  type ParameterValue,
  type Shape,
  scanBytes,
  shapeToString,
  Tensor,
  TritonError,
  type TypedArray,
  tensorFromValue,
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
  return Object.defineProperty((Array.isArray(outputs) ? [...outputs] : { ...outputs }) as T, key, {
    value: parameters,
  });
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

export function divideParameters(
  outputs: ReadonlyMap<string, Tensor>,
  divided: ReadonlyMap<string, Tensor>[],
): ReadonlyMap<string, Tensor>[] {
  if (!(outputs instanceof OutputsWithParameters)) return divided;
  return divided.map((part, i) => new OutputsWithParameters(part, parametersOf(outputs, i)));
}

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
function takeParameters(modelName: string, value: object, outputs: Map<string, Tensor>): Map<string, Tensor> {
  const given = givenParameters(value);
  if (given === undefined) return outputs;
  for (const parameters of isList(given) ? given : [given]) {
    for (const [name, parameter] of Object.entries(parameters ?? {})) {
      if (isParameter(parameter)) continue;
      throw errorFor(
        "INVALID_OUTPUT",
        `model '${modelName}' returned a wrong parameter '${name}': expected a string, a boolean, a finite number ` +
          `or an integer of 64 bits, got ${describe(parameter)}`,
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
    throw errorFor(
      "INVALID_REQUESTED_OUTPUT",
      `class result not available for output due to unsupported type '${tensor.datatype}'`,
    );
  }
  const rows = batched ? (tensor.shape[0] ?? 0) : 0;
  const width = elementCount(rows > 0 ? tensor.shape.slice(1) : tensor.shape);
  if (width > MAX_ELEMENTS)
    throw errorFor("INVALID_REQUESTED_OUTPUT", "classification output tensor too large");
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

/**
 * Converts the outputs of a model to tensors, and checks them against its configuration: names, count, data type, rank,
 * fixed dimensions, rows. Each error gives the declaration and the actual value.
 */
export class OutputChecker {
  readonly #model: string;
  readonly #batched: boolean;
  readonly #declared = new Map<string, DeclaredOutput>();
  /** Required outputs; the states of sequences are optional. */
  readonly #outputs: readonly string[];
  /** Declarations for a whole batch, in which some outputs (`batch_output`) are elements one after another. */
  readonly #ofBatch: ReadonlyMap<string, DeclaredOutput>;

  /** @param strict true if callbacks have to return ndarrays, without any conversion */
  constructor(
    config: ModelConfig,
    private readonly strict = false,
  ) {
    this.#model = config.name;
    this.#batched = config.maxBatchSize > 0;
    this.#outputs = config.output.map(({ name }) => name);
    for (const { outputName, ...state } of config.sequenceBatching?.state ?? []) {
      this.#declare({ name: outputName, ...state });
    }
    for (const output of config.output) this.#declare(output);
    const scattered = config.batchOutput.flatMap(({ targetName }) => targetName);
    this.#ofBatch = scattered.length === 0 ? this.#declared : withElements(this.#declared, scattered);
  }

  #declare(output: {
    name: string;
    dataType: string;
    dims: readonly number[];
    reshape?: { readonly shape: readonly number[] };
    isShapeTensor?: boolean;
  }): void {
    const { name, dataType, isShapeTensor = false } = output;
    const dims = output.reshape?.shape ?? output.dims;
    const hasRows = this.#batched && !isShapeTensor;
    const shape = hasRows ? [-1, ...dims] : dims;
    this.#declared.set(name, { name, datatype: fromConfigDataType(dataType)!, shape, hasRows });
  }

  /**
   * @param returned result of a callback for one request or one batch: an object of outputs by name, or a list in the
   * order of the outputs
   * @param rows number of rows that every output must have, or undefined for any; ignored without a batch axis
   * @param requested names of required outputs; empty for all
   * @param ofBatch true if `returned` is the answer to a batch as a whole
   * @throws TritonError INTERNAL for the first fault found.
   */
  fromCallback(
    returned: unknown,
    rows: number | undefined,
    requested: readonly string[],
    ofBatch = false,
  ): Map<string, Tensor> {
    const value = outputsByName(this.#model, returned, this.#outputs);
    if (typeof value !== "object" || value === null) {
      const got = value === null ? "null" : typeof value;
      throw this.#fault(`returned a wrong value: expected an object with its outputs by name, got ${got}`);
    }
    const all = ofBatch ? this.#ofBatch : this.#declared;
    if (this.strict) checkStrictly(this.#model, all, value);
    for (const name of Object.keys(value)) {
      if (!this.#declared.has(name))
        throw this.#fault(`returned an unknown output '${name}': expected ${list(this.#declared.keys())}`);
    }
    const outputs = new Map<string, Tensor>();
    for (const declared of all.values()) {
      const given = (value as Record<string, unknown>)[declared.name];
      if (given === undefined) continue;
      const shape = declared.hasRows ? [rows ?? -1, ...declared.shape.slice(1)] : declared.shape;
      outputs.set(declared.name, this.#toTensor(given, declared, shape));
    }
    return takeParameters(this.#model, returned as object, this.check(outputs, rows, requested, ofBatch));
  }

  /** Checks tensors that a backend returned, with the rules of {@link fromCallback}. */
  check(
    outputs: Map<string, Tensor>,
    rows: number | undefined,
    requested: readonly string[],
    ofBatch = false,
  ): Map<string, Tensor> {
    for (const name of requested.length > 0 ? requested : this.#outputs) {
      if (!outputs.has(name)) {
        throw this.#fault(`did not return output '${name}': got ${list(outputs.keys())}`);
      }
    }
    let wrong: Map<string, Shape> | undefined;
    for (const [name, tensor] of outputs) {
      const declared = (ofBatch ? this.#ofBatch : this.#declared).get(name);
      if (declared === undefined)
        throw this.#fault(`returned an unknown output '${name}': expected ${list(this.#declared.keys())}`);
      this.#checkTensor(declared, tensor);
      if (!declared.hasRows || rows === undefined || tensor.shape[0] === rows) continue;
      wrong ??= new Map();
      wrong.set(name, tensor.shape);
    }
    if (wrong !== undefined) throw batchSizeError(this.#model, wrong, rows!);
    return outputs;
  }

  #toTensor(given: unknown, declared: DeclaredOutput, shape: readonly number[]): Tensor {
    try {
      return tensorFromValue(given, {
        what: `output '${declared.name}'`,
        datatype: declared.datatype,
        shape,
        takesScalar: !declared.hasRows,
      });
    } catch (error) {
      const { message } = TritonError.from(error);
      throw this.#fault(
        `returned a wrong ${TritonError.is(error) ? message : `output '${declared.name}': ${message}`}`,
        error,
      );
    }
  }

  #checkTensor(declared: DeclaredOutput, tensor: Tensor): void {
    const { name, datatype, shape } = declared;
    if (tensor.datatype !== datatype) {
      throw this.#fault(`returned a wrong output '${name}': expected ${datatype}, got ${tensor.datatype}`);
    }
    if (!matchesShape(shape, tensor.shape)) {
      throw this.#fault(
        `returned a wrong output '${name}': expected shape ${shapeToString(shape)}, got ${shapeToString(tensor.shape)}`,
      );
    }
    const elements = elementCount(tensor.shape);
    const isCounted = datatype === "BYTES" && !tensor.hasElements && holdsStrings(tensor.bytes, elements);
    const got =
      !isCounted && (datatype === "BYTES" || tensor.hasElements) ? tensor.elements.length : undefined;
    if (got !== undefined && got !== elements) {
      throw this.#fault(
        `returned a wrong output '${name}': expected ${elements} elements for shape ${shapeToString(tensor.shape)}, got ${got}`,
      );
    }
  }

  #fault(what: string, cause?: unknown): TritonError {
    return errorFor("INVALID_OUTPUT", `model '${this.#model}' ${what}`, { cause });
  }
}

function withElements(
  declared: ReadonlyMap<string, DeclaredOutput>,
  scattered: readonly string[],
): ReadonlyMap<string, DeclaredOutput> {
  return new Map(
    [...declared].map(([name, output]) => [
      name,
      scattered.includes(name) ? { ...output, shape: [-1], hasRows: false } : output,
    ]),
  );
}

function list(names: Iterable<string>): string {
  return `[${[...names].map((name) => `'${name}'`).join(", ")}]`;
}

/** True for `count` strings in wire form. It makes no objects of them, of which there may be millions. */
function holdsStrings(bytes: Uint8Array, count: number): boolean {
  const { elements, lengthBytesLeft, truncated } = scanBytes(bytes, count);
  return elements === count && lengthBytesLeft === undefined && truncated === undefined;
}

interface DeclaredOutput {
  readonly name: string;
  readonly datatype: DataType;
  /** Shape with the batch axis, as -1, if the model has one. */
  readonly shape: readonly number[];
  readonly hasRows: boolean;
}

/**
 * PyTriton's strict validation of a callback's result. It accepts only ndarrays of the declared names, data types and
 * shapes, without any conversion.
 *
 * @throws TritonError INTERNAL with PyTriton's text for the first fault found.
 */
function checkStrictly(model: string, declared: ReadonlyMap<string, DeclaredOutput>, outputs: object): void {
  const fault = (text: string) => errorFor("INVALID_OUTPUT", text);
  for (const [name, value] of Object.entries(outputs)) {
    if (!isNdArray(value)) throw fault(`Not all values returned by \`${model}\` model callable are ndarrays`);
    const output = declared.get(name);
    if (output === undefined) {
      throw fault(`Returned output \`${name}\` is not defined in model config for model \`${model}\`.`);
    }
    const of = `Returned output \`${name}\` for model \`${model}\``;
    const types = dataTypesOf(value.data);
    if (!types.includes(output.datatype)) {
      throw fault(
        `${of} has invalid type. Returned: ${types[0] ?? "an array"}. Expected: ${output.datatype}.`,
      );
    }
    if (output.datatype === "BYTES") checkElements(model, name, value.data as readonly unknown[]);
    const got = output.hasRows ? value.shape.slice(1) : value.shape;
    const expected = output.hasRows ? output.shape.slice(1) : output.shape;
    const shapes = `Returned: ${tuple(got)}. Expected: ${tuple(expected)}.`;
    if (got.length !== expected.length) throw fault(`${of} has invalid shapes. ${shapes}`);
    if (got.some((dim, axis) => expected[axis] !== -1 && expected[axis] !== dim)) {
      throw fault(`${of} has invalid shapes at one or more positions. ${shapes}`);
    }
  }
}

function checkElements(model: string, name: string, elements: readonly unknown[]): void {
  const other = elements.find((element) => !(element instanceof Uint8Array));
  if (other === undefined) return;
  throw errorFor(
    "INVALID_OUTPUT",
    typeof other === "string"
      ? `Use string/byte-string instead of object for passing string in ndarray from model \`${model}\`.`
      : "Only bytes as objects dtype are supported by PyTriton. " +
          `Returned \`${name}\` from \`${model}\` has \`${typeof other}\` type.`,
  );
}

function dataTypesOf(data: unknown): readonly DataType[] {
  return Array.isArray(data) ? ["BYTES"] : arrayDatatypes(data);
}

function tuple(shape: Shape): string {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

/**
 * Gives a list of outputs the names of the model's outputs, in their order. Anything but a list is returned as it is.
 *
 * @param names names of the model's outputs
 * @throws TritonError INTERNAL for a list of another length.
 */
export function outputsByName(model: string, value: unknown, names: readonly string[]): unknown {
  if (!Array.isArray(value)) return value;
  if (value.length !== names.length) {
    throw errorFor(
      "INVALID_OUTPUT",
      `model '${model}': Outputs length different than config outputs length: expected ${names.length} ` +
        `(${names.map((name) => `'${name}'`).join(", ")}), got ${value.length}`,
    );
  }
  return Object.fromEntries(names.map((name, i) => [name, value[i] as unknown]));
}

export function batchSizeError(
  model: string,
  shapes: ReadonlyMap<string, Shape>,
  expected: number,
): TritonError {
  const got = [...shapes].map(
    ([name, shape]) => `${name}: (${shape.join(", ")}${shape.length === 1 ? "," : ""})`,
  );
  return errorFor(
    "INVALID_OUTPUT",
    `model '${model}': Received output tensors with different batch sizes: ${got.join(", ")}. ` +
      `Expected batch size: ${expected}. `,
  );
}
