import {
  elementCount,
  fromConfigDataType,
  type ModelConfig,
  matchesShape,
  type Shape,
  shapeToString,
  type Tensor,
  TritonError,
  tensorFromValue,
} from "@tritonjs/protocol";

import { batchSizeError } from "./batch-size-error.js";
import { checkStrictly } from "./check-strictly.js";
import type { DeclaredOutput } from "./declared-output.js";
import { outputsByName } from "./outputs-by-name.js";
import { takeParameters } from "./response-parameters.js";

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
