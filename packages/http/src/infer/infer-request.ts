import { InferenceRequest, readScalarParameter, type ScalarReader } from "@tritonjs/core/internal";
import {
  type DataType,
  elementByteSize,
  errorFor,
  fromConfigDataType,
  NO_PARAMETERS,
  type ParameterValue,
  Tensor,
  type TritonError,
  wireShape,
} from "@tritonjs/protocol";
import type { Exchange, ReadyModel } from "@tritonjs/server";
import type { RegionRange, RequestedRange } from "@tritonjs/server/internal";
import { latin1Text } from "../exchange/request.js";
import {
  asArray,
  asBoolean,
  asText,
  asUnsigned,
  find,
  isInteger,
  isUnsigned,
  JsonDouble,
  type JsonValue,
  member,
  members,
} from "../json/json-value.js";
import { elementsOf, parseJson } from "../json/parse-json.js";
import { checkCount, checkTensorCount, InputTooLarge, MAX_JSON_PARAMETERS, maxNumbers } from "../limits.js";
import { datatypeOf, readJsonTensor, readShape } from "./json-tensor.js";

/**
 * Decodes the body of an infer request: `headerLength` bytes of JSON, then the tensors that the JSON announces with
 * `binary_data_size`, in the order of the inputs.
 *
 * @param memory holds the shared memory that the request names, until the caller releases it
 * @throws TritonError with Triton's code and text for the first fault.
 */
export function decodeInferRequest(
  model: ReadyModel,
  body: Uint8Array,
  headerLength: number,
  maxInputSize: number,
  memory: Pick<Exchange, "hold">,
): DecodedRequest {
  const key = headerLength < body.length ? headerKey(body, headerLength) : undefined;
  const known = key === undefined ? undefined : knownHeader(model, key);
  if (known !== undefined) {
    const reader = new InputReader(model, body.subarray(headerLength), maxInputSize, memory);
    const request = new DecodedRequest(model.name);
    request.copyContent(known.request);
    request.inputs = reader.readBinary(known.inputs);
    request.outputs = known.request.outputs;
    return request;
  }
  const json = parseJson(body.subarray(0, headerLength), maxNumbers(maxInputSize));
  return decodeInferJson(model, json, body, headerLength, maxInputSize, memory, key);
}

export function decodeInferJson(
  model: ReadyModel,
  json: JsonValue,
  body: Uint8Array,
  headerLength: number,
  maxInputSize: number,
  memory: Pick<Exchange, "hold">,
  key?: string,
): DecodedRequest {
  const reader = new InputReader(model, body.subarray(headerLength), maxInputSize, memory);
  const idJson = find(json, "id");
  const request = new DecodedRequest(model.name);
  if (idJson !== undefined) request.id = asText(idJson, "Unable to parse 'id'");
  readRequestParameters(json, request);
  request.inputs = reader.read(json, request.id);
  const named = readRequestedOutputs(json, model.config.output.length, memory);
  if (named.size > 0) {
    request.requestedOutputs = [...named.keys()];
    request.outputs = { named, others: request.outputs.others };
  }
  if (key !== undefined) keepHeader(model, key, request, reader.binaryInputs);
  return request;
}

/**
 * Length of the JSON at the start of a body: the header `Inference-Header-Content-Length`, read like C's `atoi`, or
 * else the whole body. 0 announces a body that consists of one tensor.
 *
 * @throws TritonError INVALID_ARG when the header points outside the body.
 */
export function inferenceHeaderLength(header: string | undefined, bodyLength: number): number {
  if (header === undefined) return bodyLength;
  const length = Number.parseInt(header, 10) || 0;
  if (length >= 0 && length <= bodyLength) return length;
  throw errorFor(
    "INVALID_BODY",
    `inference header size should be in range (0, ${bodyLength}), got: ${header}`,
  );
}

interface BinaryInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly byteSize: number;
}

/** The content of a JSON header whose tensors all follow it: everything but their bytes. */
interface BinaryHeader {
  /** A request without tensors. */
  readonly request: DecodedRequest;
  readonly inputs: readonly BinaryInput[];
}

const MAX_HEADER_BYTES = 1024;
const MAX_HEADERS = 64;

const headersByConfig = new WeakMap<ReadyModel["config"], Map<string, BinaryHeader>>();

/**
 * Key of a header: the first bytes of a body. Clients that send tensors in binary write the same JSON for every request
 * of one shape. Undefined for JSON that is too long for such a header.
 */
export function headerKey(body: Uint8Array, headerLength: number): string | undefined {
  return headerLength > MAX_HEADER_BYTES ? undefined : latin1Text(body, headerLength);
}

/** The content of an equal header that was valid for this model before; undefined for a new one. */
export function knownHeader({ config }: ReadyModel, key: string): BinaryHeader | undefined {
  return headersByConfig.get(config)?.get(key);
}

/**
 * Keeps the content of a header, unless it holds for one request alone. When too many headers are kept, all earlier
 * ones are dropped.
 *
 * @param inputs the inputs of the request, if all of them follow the JSON
 */
function keepHeader(
  { config }: ReadyModel,
  key: string,
  request: DecodedRequest,
  inputs: readonly BinaryInput[] | undefined,
): void {
  if (request.id !== "" || inputs === undefined || request.parameters !== NO_PARAMETERS) return;
  for (const { range } of request.outputs.named.values()) if (range !== undefined) return;
  const known = headersByConfig.get(config) ?? new Map<string, BinaryHeader>();
  headersByConfig.set(config, known);
  if (known.size >= MAX_HEADERS) known.clear();
  const content = new DecodedRequest(request.modelName);
  content.copyContent(request);
  content.outputs = request.outputs;
  known.set(key, { request: content, inputs });
}

export interface OutputForm {
  readonly binary: boolean;
  /** Number of classes to return instead of the tensor; 0 returns the tensor. */
  readonly classes: number;
  /** Range of shared memory for the output; undefined puts the output in the answer. */
  readonly range?: RegionRange;
}

/** How outputs go to the client: forms by name, and the form of all others. */
export interface OutputForms {
  readonly named: ReadonlyMap<string, OutputForm>;
  readonly others: OutputForm;
}

const NO_FORMS: ReadonlyMap<string, OutputForm> = new Map();

/** All outputs as JSON: the default. */
export const ALL_IN_JSON: OutputForms = { named: NO_FORMS, others: { binary: false, classes: 0 } };

/** All outputs in binary. */
export const ALL_IN_BINARY: OutputForms = { named: NO_FORMS, others: { binary: true, classes: 0 } };

/** Reads `outputs` of an infer request. If an output is listed twice, its first form counts. */
function readRequestedOutputs(
  request: JsonValue,
  modelOutputs: number,
  memory: Pick<Exchange, "hold">,
): Map<string, OutputForm> {
  const named = new Map<string, OutputForm>();
  const json = find(request, "outputs");
  if (json === undefined) return named;
  const array = asArray(json, "Unable to parse 'outputs'");
  checkTensorCount("outputs", array.length, modelOutputs);
  for (const output of elementsOf(array)) {
    const parameters = find(output, "parameters");
    checkForm(parameters);
    const name = asText(member(output, "name", "Unable to parse 'name'"), "Unable to parse 'name'");
    const classes = find(parameters, "classification");
    const binary = find(parameters, "binary_data");
    const range = readRange(parameters);
    const form: OutputForm = {
      classes: classes === undefined ? 0 : Number(asUnsigned(classes, "Unable to set 'classification'")),
      binary: binary === undefined ? false : asBoolean(binary, "Unable to parse 'binary_data'"),
      ...(range === undefined ? {} : { range: memory.hold(range) }),
    };
    if (!named.has(name)) named.set(name, form);
  }
  return named;
}

function checkForm(parameters: JsonValue | undefined): void {
  if (find(parameters, "shared_memory_region") === undefined) return;
  if (find(parameters, "classification") !== undefined) {
    throw errorFor(
      "INVALID_REQUESTED_OUTPUT",
      "Output can't set both 'shared_memory_region' and 'classification'",
    );
  }
  const binary = find(parameters, "binary_data");
  if (binary !== undefined && asBoolean(binary, "Unable to set 'binary_data'")) {
    throw errorFor(
      "INVALID_REQUESTED_OUTPUT",
      "Output can't set both 'shared_memory_region' and 'binary_data'",
    );
  }
}

/** A request as the client wrote it. `outputs` says how the client wants the outputs. */
export class DecodedRequest extends InferenceRequest {
  outputs: OutputForms = ALL_IN_JSON;
}

const SOURCES =
  "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
  "'shared_memory_region' in 'parameters'. But";

/** Reads the inputs of an infer request: tensors in the JSON, tensors that follow it, and tensors in shared memory. */
class InputReader {
  readonly #model: ReadyModel;
  readonly #binary: Uint8Array;
  readonly #maxInputSize: number;
  readonly #memory: Pick<Exchange, "hold">;
  #binaryUsed = 0;
  readonly #binaryInputs: BinaryInput[] = [];
  #others = false;

  /** @param binary the bytes of the body after the JSON */
  constructor(model: ReadyModel, binary: Uint8Array, maxInputSize: number, memory: Pick<Exchange, "hold">) {
    this.#model = model;
    this.#binary = binary;
    this.#maxInputSize = maxInputSize;
    this.#memory = memory;
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
      const held = this.#memory.hold(range);
      const takesSources = this.#model.takesSources === true;
      into.set(name, held.tensor(datatypeOf(datatype), wireShape(shape), takesSources));
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
  return errorFor("INVALID_INPUT", message);
}

const SCALARS: ScalarReader<JsonValue> = {
  readId: (value) => (isUnsigned(value) ? BigInt(value) : asText(value, "Unable to parse 'sequence_id'")),
  readFlag: (value, name) => asBoolean(value, `Unable to parse '${name}'`),
  readPriority: readCount,
  readTimeout: readCount,
};

function readCount(value: JsonValue, name: string): number {
  return Number(asUnsigned(value, `Unable to parse '${name}'`));
}

/** Reads `parameters` of an infer request into `into`. */
function readRequestParameters(request: JsonValue, into: DecodedRequest): void {
  const json = find(request, "parameters");
  if (json === undefined) return;
  const given = members(json, "failed to get request params.");
  checkCount("parameters", given.size, MAX_JSON_PARAMETERS);
  let custom: Record<string, ParameterValue> | undefined;
  for (const [name, value] of given) {
    if (readScalarParameter(name, value, into, SCALARS)) continue;
    if (name === "binary_data_output") {
      const binary = asBoolean(value, "Unable to parse 'binary_data_output'");
      into.outputs = binary ? ALL_IN_BINARY : ALL_IN_JSON;
    } else if (name.startsWith("triton_")) {
      throw errorFor(
        "INVALID_PARAMETER",
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      );
    } else {
      custom ??= Object.create(null) as Record<string, ParameterValue>;
      custom[name] = readParameter(name, value);
    }
  }
  if (custom !== undefined) into.parameters = custom;
}

export function readParameter(name: string, value: JsonValue): ParameterValue {
  if (value instanceof Uint8Array) return asText(value);
  if (typeof value === "boolean" || isInteger(value)) return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof JsonDouble) return value.value;
  throw errorFor(
    "INVALID_PARAMETER",
    `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
  );
}

/** Reads the range of shared memory from the parameters of an input or output; undefined when they name none. */
function readRange(parameters: JsonValue | undefined): RequestedRange | undefined {
  const region = find(parameters, "shared_memory_region");
  if (region === undefined) return undefined;
  return {
    region: asText(region, "Unable to parse 'shared_memory_region'"),
    offset: readSize(parameters, "shared_memory_offset"),
    byteSize: readSize(parameters, "shared_memory_byte_size"),
  };
}

function readSize(parameters: JsonValue | undefined, name: string): number | bigint {
  const size = find(parameters, name);
  return size === undefined ? 0 : asUnsigned(size, `Unable to parse '${name}'`);
}

const UNKNOWN_REQUEST = "[request id: <id_unknown>] ";

/**
 * Decodes a raw request. The body is the only input of the model, its shape is deduced from the configuration, and all
 * outputs are returned in binary.
 *
 * @throws TritonError INVALID_ARG when the shape cannot be deduced or the body does not fit it.
 */
export function decodeRawRequest(model: ReadyModel, body: Uint8Array, maxInputSize: number): DecodedRequest {
  if (body.length > maxInputSize) {
    throw new InputTooLarge(
      `Raw input has a byte_size (${body.length} bytes) that exceeds the maximum allowed value of ` +
        `${maxInputSize} bytes`,
    );
  }
  const { config } = model;
  const input = config.input[0];
  if (input === undefined || config.input.length !== 1) {
    throw invalidRaw(
      `Raw request must only have 1 input (found 1) to be deduced but got ${config.input.length} inputs in ` +
        `'${model.name}' model configuration`,
    );
  }
  const shape = config.maxBatchSize > 0 ? [1, ...input.dims] : [...input.dims];
  const tensor =
    input.dataType === "TYPE_STRING"
      ? rawString(input.name, input.dims, shape, body)
      : rawTensor(model, shape, body);
  const request = new DecodedRequest(model.name);
  request.inputs = new Map([[input.name, tensor]]);
  request.outputs = ALL_IN_BINARY;
  return request;
}

function rawString(name: string, dims: readonly number[], shape: number[], body: Uint8Array): Tensor {
  checkOneVariable(name, dims);
  if (dims.some((dim) => dim !== 1)) {
    throw invalidRaw(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
  }
  return Tensor.fromElements("BYTES", shape, [body]);
}

function rawTensor(model: ReadyModel, shape: number[], body: Uint8Array): Tensor {
  const input = model.config.input[0]!;
  checkOneVariable(input.name, input.dims);
  const datatype = fromConfigDataType(input.dataType)!;
  const size = elementByteSize(datatype);
  const fixed = input.dims.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const variable = shape.indexOf(-1);
  if (variable >= 0) shape[variable] = fixed === 0 ? 0 : Math.floor(body.length / fixed / size);
  const expected = shape.reduce((product, dim) => product * dim, size);
  if (body.length !== expected) {
    throw invalidRaw(
      `input byte size mismatch for input 'raw_input' for model '${model.name}'. Expected ${expected}, got ` +
        `${body.length}`,
    );
  }
  return Tensor.fromBytes(datatype, shape, body);
}

function checkOneVariable(name: string, dims: readonly number[]): void {
  if (dims.filter((dim) => dim === -1).length > 1) {
    throw invalidRaw(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized ` +
        "dimension",
    );
  }
}

function invalidRaw(message: string): TritonError {
  return errorFor("INVALID_INPUT", UNKNOWN_REQUEST + message);
}
