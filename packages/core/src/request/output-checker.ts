import {
  DATA_TYPES,
  type DataType,
  elementCount,
  fromConfigDataType,
  isNdArray,
  type ModelConfig,
  matchesShape,
  type Shape,
  shapeToString,
  type Tensor,
  TritonError,
  tensorFromValue,
  typedArrayFor,
} from "@tritonjs/protocol";
import { takeParameters } from "./inference-response.js";

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

  /** Like {@link fromCallback}, for a function of tensors, which may return a list in the order of the outputs. */
  fromTensorFunc(
    value: unknown,
    rows: number | undefined,
    requested: readonly string[],
  ): Map<string, Tensor> {
    return this.fromCallback(outputsByName(value, this.#outputs), rows, requested, true);
  }

  /**
   * @param value result of a callback for one request or one batch: an object of outputs by name
   * @param rows number of rows that every output must have, or undefined for any; ignored without a batch axis
   * @param requested names of required outputs; empty for all
   * @param ofBatch true if `value` is the answer to a batch as a whole
   * @throws TritonError INTERNAL for the first fault found.
   */
  fromCallback(
    value: unknown,
    rows: number | undefined,
    requested: readonly string[],
    ofBatch = false,
  ): Map<string, Tensor> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw this.#fault(
        `returned a wrong value: expected an object with its outputs by name, got ${describe(value)}`,
      );
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
    return takeParameters(this.#model, value, this.check(outputs, rows, requested, ofBatch));
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
    if (wrong !== undefined) throw batchSizeError(wrong, rows!);
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
    const got = datatype === "BYTES" || tensor.hasElements ? tensor.elements.length : undefined;
    if (got !== undefined && got !== elements) {
      throw this.#fault(
        `returned a wrong output '${name}': expected ${elements} elements for shape ${shapeToString(tensor.shape)}, got ${got}`,
      );
    }
  }

  #fault(what: string, cause?: unknown): TritonError {
    return new TritonError("INTERNAL", `model '${this.#model}' ${what}`, { reason: "INVALID_OUTPUT", cause });
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

function describe(value: unknown): string {
  return Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
}

/** An output as the configuration declares it. */
interface DeclaredOutput {
  readonly name: string;
  readonly datatype: DataType;
  /** Shape with the batch axis, as -1, if the model has one. */
  readonly shape: readonly number[];
  /** True if the first dimension is the rows of the batch. */
  readonly hasRows: boolean;
}

/**
 * PyTriton's strict validation of a callback's result. It accepts only ndarrays of the declared names, data types and
 * shapes, without any conversion.
 *
 * @throws TritonError INTERNAL with PyTriton's text for the first fault found.
 */
function checkStrictly(model: string, declared: ReadonlyMap<string, DeclaredOutput>, outputs: object): void {
  const fault = (text: string) => new TritonError("INTERNAL", text, { reason: "INVALID_OUTPUT" });
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
  throw new TritonError(
    "INTERNAL",
    typeof other === "string"
      ? `Use string/byte-string instead of object for passing string in ndarray from model \`${model}\`.`
      : "Only bytes as objects dtype are supported by PyTriton. " +
          `Returned \`${name}\` from \`${model}\` has \`${typeof other}\` type.`,
    { reason: "INVALID_OUTPUT" },
  );
}

function dataTypesOf(data: unknown): readonly DataType[] {
  if (Array.isArray(data)) return ["BYTES"];
  return DATA_TYPES.filter(
    (type) => type !== "BYTES" && data instanceof (typedArrayFor(type) as typeof Uint8Array),
  );
}

function tuple(shape: Shape): string {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

/**
 * Names the results of a function of tensors: a list is in the order of the model's outputs.
 *
 * @param names names of the model's outputs
 * @throws TritonError INTERNAL for a list of another length.
 */
export function outputsByName(value: unknown, names: Iterable<string>): unknown {
  if (!Array.isArray(value)) return value;
  const order = [...names];
  if (value.length !== order.length) {
    throw new TritonError("INTERNAL", "Outputs length different than config outputs length", {
      reason: "INVALID_OUTPUT",
    });
  }
  return Object.fromEntries(order.map((name, i) => [name, value[i] as unknown]));
}

/** The error of outputs whose number of rows differs from that of the batch. */
export function batchSizeError(shapes: ReadonlyMap<string, Shape>, expected: number): TritonError {
  const got = [...shapes].map(
    ([name, shape]) => `${name}: (${shape.join(", ")}${shape.length === 1 ? "," : ""})`,
  );
  return new TritonError(
    "INTERNAL",
    `Received output tensors with different batch sizes: ${got.join(", ")}. Expected batch size: ${expected}. `,
    { reason: "INVALID_OUTPUT" },
  );
}
