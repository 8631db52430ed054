import type { ReadyModel, RequestRegions } from "@tritonjs/core/frontend";
import { Tensor, TritonError, wireShape } from "@tritonjs/protocol";
import { asArray, asText, asUnsigned, find, member } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import type { BinaryInput } from "./known-headers.js";
import { checkTensorCount } from "./part-count.js";
import { datatypeOf, readJsonTensor } from "./read-json-tensor.js";
import { readShape } from "./shape.js";
import { readRange } from "./shared-memory.js";

const SOURCES =
  "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
  "'shared_memory_region' in 'parameters'. But";

/** Reads the inputs of an infer request: tensors in the JSON, tensors that follow it, and tensors in shared memory. */
export class InputReader {
  readonly #model: ReadyModel;
  readonly #binary: Uint8Array;
  readonly #maxInputSize: number;
  readonly #regions: RequestRegions;
  #binaryUsed = 0;
  readonly #binaryInputs: BinaryInput[] = [];
  #others = false;

  /** @param binary the bytes of the body after the JSON */
  constructor(model: ReadyModel, binary: Uint8Array, maxInputSize: number, regions: RequestRegions) {
    this.#model = model;
    this.#binary = binary;
    this.#maxInputSize = maxInputSize;
    this.#regions = regions;
  }

  /** @throws TritonError for the first fault, and for bytes that no input uses. */
  read(request: JsonValue, id: string): Map<string, Tensor> {
    const context = "Unable to parse 'inputs'";
    const array = asArray(member(request, "inputs", context), context);
    const inputs = new Map<string, Tensor>();
    checkTensorCount("inputs", array.length, this.#model.config.input.length);
    for (const input of elementsOf(array)) {
      this.#readInput(input, id, inputs);
    }
    this.#checkAllUsed();
    return inputs;
  }

  /** The inputs of the last request, if all of them follow the JSON. */
  get binaryInputs(): readonly BinaryInput[] | undefined {
    return this.#others ? undefined : this.#binaryInputs;
  }

  /** Reads inputs that are known from an earlier request. @throws TritonError as {@link read} does. */
  readBinary(known: readonly BinaryInput[]): Map<string, Tensor> {
    const inputs = new Map<string, Tensor>();
    for (const { name, datatype, shape, byteSize } of known) {
      inputs.set(name, Tensor.fromBytes(datatype, shape.slice(), this.#takeBinary(name, byteSize)));
    }
    this.#checkAllUsed();
    return inputs;
  }

  #checkAllUsed(): void {
    if (this.#binaryUsed === this.#binary.length) return;
    throw invalid(`unexpected additional input data for model '${this.#model.name}'`);
  }

  #readInput(input: JsonValue, id: string, into: Map<string, Tensor>): void {
    const parameters = find(input, "parameters");
    checkSource(input, parameters);
    const name = asText(member(input, "name", "Unable to parse 'name'"), "Unable to parse 'name'");
    const datatypeJson = member(input, "datatype", "Unable to parse 'datatype'");
    const datatype = asText(datatypeJson, "Unable to parse 'datatype'");
    const shape = readShape(member(input, "shape", "Unable to parse 'shape'"));
    if (into.has(name)) {
      throw invalid(
        `[request id: ${id === "" ? "<id_unknown>" : id}] input '${name}' already exists in request`,
      );
    }
    const binarySize = find(parameters, "binary_data_size");
    if (binarySize !== undefined) {
      const byteSize = Number(asUnsigned(binarySize, "Unable to parse 'binary_data_size'"));
      const bytes = this.#takeBinary(name, byteSize);
      const binary = { name, datatype: datatypeOf(datatype), shape: wireShape(shape), byteSize };
      this.#binaryInputs.push(binary);
      into.set(name, Tensor.fromBytes(binary.datatype, binary.shape.slice(), bytes));
      return;
    }
    this.#others = true;
    const range = readRange(parameters);
    if (range !== undefined) {
      const bytes = this.#regions.hold(range).read();
      into.set(name, Tensor.fromBytes(datatypeOf(datatype), wireShape(shape), bytes));
      return;
    }
    const scalar = this.#model.config.input.some((known) => known.name === name && known.dims.length === 0);
    into.set(name, readJsonTensor({ name, datatype, shape, scalar }, input, this.#maxInputSize));
  }

  #takeBinary(name: string, size: number): Uint8Array {
    const left = this.#binary.length - this.#binaryUsed;
    if (size > left) {
      throw invalid(
        `unexpected size for input '${name}', expecting ${size - left} additional bytes for model ` +
          `'${this.#model.name}'`,
      );
    }
    this.#binaryUsed += size;
    return this.#binary.subarray(this.#binaryUsed - size, this.#binaryUsed);
  }
}

function checkSource(input: JsonValue, parameters: JsonValue | undefined): void {
  const set: string[] = [];
  if (find(input, "data") !== undefined) set.push("'data'");
  if (find(parameters, "binary_data_size") !== undefined) set.push("'binary_data_size'");
  if (find(parameters, "shared_memory_region") !== undefined) set.push("'shared_memory_region'");
  if (set.length === 0) throw invalid(`${SOURCES} no field is set`);
  if (set.length > 1) throw invalid(`${SOURCES} set ${set.join(" ")}`);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
