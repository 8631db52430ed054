import type { ModelConfig } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import { type DataType, fromConfigDataType } from "../tensor/data-type.js";
import { tensorFromValue } from "../tensor/from-value.js";
import { elementCount, matchesShape, shapeToString } from "../tensor/shape.js";
import type { Tensor } from "../tensor/tensor.js";

interface DeclaredOutput {
  readonly name: string;
  readonly datatype: DataType;
  /** With the batch axis, as -1, when the model has one. */
  readonly shape: readonly number[];
}

/**
 * Turns what a model returned into tensors, and checks them against its configuration: names, count, data
 * type, rank, fixed dimensions, rows. Each error says what was declared and what came.
 */
export class OutputChecker {
  readonly #model: string;
  readonly #batched: boolean;
  readonly #declared = new Map<string, DeclaredOutput>();

  constructor(config: ModelConfig) {
    this.#model = config.name;
    this.#batched = config.maxBatchSize > 0;
    for (const output of config.output) {
      this.#declared.set(output.name, {
        name: output.name,
        datatype: fromConfigDataType(output.dataType)!,
        shape: this.#batched ? [-1, ...output.dims] : output.dims,
      });
    }
  }

  /**
   * @param value what a callback returned for one request or one batch: an object of outputs by name
   * @param rows rows along the batch axis that every output must have, undefined for any number; ignored without
   * a batch axis
   * @param requested names that must be there; empty for all
   * @throws TritonError INTERNAL for the first fault found.
   */
  fromCallback(value: unknown, rows: number | undefined, requested: readonly string[]): Map<string, Tensor> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw this.#fault(`must return an object with its outputs by name, got ${describe(value)}`);
    }
    for (const name of Object.keys(value)) {
      if (!this.#declared.has(name)) throw this.#fault(`returned output '${name}', ${this.#declaredNames()}`);
    }
    const outputs = new Map<string, Tensor>();
    for (const declared of this.#declared.values()) {
      const given = (value as Record<string, unknown>)[declared.name];
      if (given === undefined) continue;
      const shape = this.#batched ? [rows ?? -1, ...declared.shape.slice(1)] : declared.shape;
      outputs.set(declared.name, this.#toTensor(given, declared, shape));
    }
    return this.check(outputs, rows, requested);
  }

  /** Checks tensors that a backend returned; same rules as {@link fromCallback}. */
  check(
    outputs: Map<string, Tensor>,
    rows: number | undefined,
    requested: readonly string[],
  ): Map<string, Tensor> {
    for (const name of requested.length > 0 ? requested : this.#declared.keys()) {
      if (!outputs.has(name)) {
        throw this.#fault(`did not return output '${name}', got ${list(outputs.keys())}`);
      }
    }
    for (const [name, tensor] of outputs) {
      const declared = this.#declared.get(name);
      if (declared === undefined) throw this.#fault(`returned output '${name}', ${this.#declaredNames()}`);
      this.#checkTensor(declared, tensor, rows);
    }
    return outputs;
  }

  #toTensor(given: unknown, declared: DeclaredOutput, shape: readonly number[]): Tensor {
    try {
      return tensorFromValue(given, {
        what: `output '${declared.name}'`,
        datatype: declared.datatype,
        shape,
      });
    } catch (error) {
      throw this.#fault(`returned a wrong ${TritonError.from(error).message}`, error);
    }
  }

  #checkTensor(declared: DeclaredOutput, tensor: Tensor, rows: number | undefined): void {
    const { name, datatype, shape } = declared;
    if (tensor.datatype !== datatype) {
      throw this.#fault(`returned output '${name}' as ${tensor.datatype}, declared is ${datatype}`);
    }
    if (!matchesShape(shape, tensor.shape)) {
      throw this.#fault(
        `returned output '${name}' with shape ${shapeToString(tensor.shape)}, declared is ${shapeToString(shape)}`,
      );
    }
    if (this.#batched && rows !== undefined && tensor.shape[0] !== rows) {
      throw this.#fault(`returned output '${name}' with ${tensor.shape[0]} rows for a batch of ${rows}`);
    }
    const elements = elementCount(tensor.shape);
    const got = datatype === "BYTES" || tensor.hasElements ? tensor.elements.length : undefined;
    if (got !== undefined && got !== elements) {
      throw this.#fault(
        `returned output '${name}' with ${got} elements for shape ${shapeToString(tensor.shape)}`,
      );
    }
  }

  #declaredNames(): string {
    return `declared are ${list(this.#declared.keys())}`;
  }

  #fault(what: string, cause?: unknown): TritonError {
    return new TritonError("INTERNAL", `model '${this.#model}' ${what}`, { cause });
  }
}

function list(names: Iterable<string>): string {
  return `[${[...names].map((name) => `'${name}'`).join(", ")}]`;
}

function describe(value: unknown): string {
  return Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
}
