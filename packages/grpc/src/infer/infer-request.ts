import {
  InferenceRequest,
  type RequestScalars,
  readScalarParameter,
  type ScalarReader,
} from "@tritonjs/core/internal";
import {
  type DataType,
  dataTypeNamed,
  type Parameters,
  type ParameterValue,
  type Shape,
  Tensor,
  type TritonError,
  wireShape,
} from "@tritonjs/protocol";
import { ContentsError, type inference, typedElements, WireStrings } from "@tritonjs/protocol/grpc";
import type { Exchange } from "@tritonjs/server";
import { freeWhenUsed, type RegionRange, type RequestedRange } from "@tritonjs/server/internal";
import { invalidArgument } from "../status-from-code.js";

/** A request as in its message. `outputs` and `enableEmptyFinalResponse` say how to answer. */
export class DecodedMessage extends InferenceRequest implements InferParameters {
  outputs: OutputForms = NO_FORMS;
  /** True when a stream reports the end of a decoupled request even if no response marks it. */
  enableEmptyFinalResponse = false;
}

/** Holds the shared memory that inputs name. Those of a model that takes tensors on a GPU stay there. */
type InputMemory = Pick<Exchange, "hold"> & Partial<Pick<Exchange, "model">>;

export function decodeInferRequest(
  message: inference.ModelInferRequest,
  forwarded: Parameters,
  memory: InputMemory,
): DecodedMessage {
  const request = new DecodedMessage(message.modelName);
  request.id = message.id;
  decodeInferParameters(message.parameters, forwarded, request);
  request.inputs = decodeInputs(message, memory);
  request.outputs = decodeOutputForms(message.outputs, memory);
  request.requestedOutputs = requestedOutputNames(message.outputs);
  return request;
}

/**
 * A function that frees the memory of a message when its inputs have been used; undefined for small messages. A large
 * message must be in memory of its own.
 */
export function freeMessageWhenUsed({
  rawInputContents,
}: inference.ModelInferRequest): ReturnType<typeof freeWhenUsed> {
  // All raw contents are views of the same message, so one large content is enough.
  for (const contents of rawInputContents) {
    const free = freeWhenUsed(contents);
    if (free !== undefined) return free;
  }
  return undefined;
}

type InputTensor = inference.ModelInferRequest.InferInputTensor.$Properties;

/** Triton's name for an unknown data type. */
const INVALID = "<invalid>";

const NO_BYTES = new Uint8Array(0);

/**
 * Decodes the input tensors of a request, in its order. Raw contents stay views of the message. They pair with the
 * inputs in order, and surplus ones are ignored.
 *
 * @param memory holds the shared memory that inputs name, until the caller releases it.
 * @throws TritonError INVALID_ARG for a name that comes twice, and for an input whose data is missing, given twice or
 * of another type; NOT_FOUND for an unknown shared-memory region.
 */
export function decodeInputs(request: inference.ModelInferRequest, memory: InputMemory): Map<string, Tensor> {
  const inputs = new Map<string, Tensor>();
  checkDeclarations(request);
  const raw = new RawContents(request.rawInputContents);
  for (const input of request.inputs) {
    inputs.set(input.name ?? "", decodeInput(input, raw, request.modelName, memory));
  }
  return inputs;
}

function checkDeclarations({ id, inputs }: inference.ModelInferRequest): void {
  const names = inputs.length > 1 ? new Set<string>() : undefined;
  for (const { name } of inputs) {
    if (names?.has(name ?? "")) {
      throw invalidArgument(
        `[request id: ${id || "<id_unknown>"}] input '${name}' already exists in request`,
        "INVALID_INPUT",
      );
    }
    names?.add(name ?? "");
  }
}

function decodeInput(input: InputTensor, raw: RawContents, modelName: string, memory: InputMemory): Tensor {
  const { name, contents } = input;
  const shape = wireShape(input.shape ?? []);
  const datatype = toDataType(input.datatype ?? "");
  const where = `input tensor '${name}' for model '${modelName}'`;
  const range = decodeSharedMemoryRange(input);
  if (range !== undefined) {
    if (contents != null) {
      throw invalidArgument(
        `unexpected 'content' provided when using shared memory for ${where}`,
        "INVALID_INPUT",
      );
    }
    return memory.hold(range).tensor(datatype, shape, memory.model?.takesSources === true);
  }
  if (contents != null) {
    if (raw.used) {
      throw invalidArgument(
        `contents field must not be specified when using raw_input_contents for '${name}' for model '${modelName}'`,
        "INVALID_INPUT",
      );
    }
    return decodeTypedContents(contents, datatype, shape, where);
  }
  const bytes = raw.next();
  if (bytes === undefined)
    throw invalidArgument(`unable to find data for ${where} in request.`, "INVALID_INPUT");
  return Tensor.fromBytes(datatype, shape, bytes);
}

function decodeTypedContents(
  contents: inference.InferTensorContents.$Properties,
  datatype: DataType,
  shape: Shape,
  where: string,
): Tensor {
  try {
    const elements = typedElements(contents, datatype, where);
    if (elements instanceof WireStrings) return Tensor.fromBytes(datatype, shape, elements.bytes);
    return elements === undefined
      ? Tensor.fromBytes(datatype, shape, NO_BYTES)
      : Tensor.fromElements(datatype, shape, elements);
  } catch (error) {
    throw error instanceof ContentsError ? invalidArgument(error.message, "INVALID_INPUT") : error;
  }
}

class RawContents {
  readonly #buffers: readonly Uint8Array[];
  #index = 0;

  constructor(buffers: readonly Uint8Array[]) {
    this.#buffers = buffers;
  }

  get used(): boolean {
    return this.#buffers.length > 0;
  }

  next(): Uint8Array | undefined {
    return this.#buffers[this.#index++];
  }
}

/**
 * The data type of an input as the client named it. An unknown name becomes a data type that no model expects, so the
 * request is rejected with Triton's text.
 */
function toDataType(name: string): DataType {
  return dataTypeNamed(name) ?? (INVALID as DataType);
}

type Parameter = inference.InferParameter.$Properties;

/** The parameters of a request: reserved ones as members of their own, all others in `parameters` for the model. */
export interface InferParameters extends Partial<RequestScalars> {
  enableEmptyFinalResponse: boolean;
  parameters: Parameters;
}

const ENABLE_EMPTY_FINAL_RESPONSE = "triton_enable_empty_final_response";
const RESERVED_PREFIX = "triton_";

/**
 * Reads the parameters of a request into `decoded`.
 *
 * @param forwarded Parameters made of headers: they win over parameters of the same name.
 * @throws TritonError INVALID_ARG for values of a wrong type and for reserved names.
 */
export function decodeInferParameters(
  parameters: Readonly<Record<string, Parameter>>,
  forwarded: Parameters,
  into: InferParameters,
): void {
  const keys = Object.keys(parameters);
  if (keys.length === 0) {
    into.parameters = forwarded;
    return;
  }
  const custom: [string, ParameterValue][] = [];
  for (const key of keys) {
    const parameter = parameters[key]!;
    if (readScalarParameter(key, parameter, into, SCALARS)) continue;
    if (key === ENABLE_EMPTY_FINAL_RESPONSE) into.enableEmptyFinalResponse = bool(parameter, key);
    else if (key.startsWith(RESERVED_PREFIX)) throw reservedKey();
    else custom.push([key, customValue(key, parameter)]);
  }
  into.parameters =
    custom.length === 0 ? forwarded : Object.fromEntries([...custom, ...Object.entries(forwarded)]);
}

const SCALARS: ScalarReader<Parameter> = {
  readId(parameter, key) {
    // An integer id is unsigned: -1 is the largest id.
    if (parameter.parameterChoice === "int64Param") return BigInt.asUintN(64, BigInt(parameter.int64Param!));
    if (parameter.parameterChoice === "stringParam") return parameter.stringParam!;
    throw wrongKind(key, "int64_param or string_param");
  },
  readFlag: bool,
  readPriority(parameter, key) {
    if (parameter.parameterChoice === "uint64Param") return Number(parameter.uint64Param);
    if (parameter.parameterChoice !== "int64Param") throw wrongKind(key, "int64_param or uint64_param");
    if (parameter.int64Param! < 0)
      throw invalidArgument("invalid value for 'priority', expected value >= 0.", "INVALID_PARAMETER");
    return Number(parameter.int64Param);
  },
  readTimeout(parameter, key) {
    if (parameter.parameterChoice !== "int64Param") throw wrongKind(key, "int64_param");
    // A timeout is unsigned, so a negative one never expires in practice.
    return Number(BigInt.asUintN(64, BigInt(parameter.int64Param!)));
  },
};

function customValue(key: string, parameter: Parameter): ParameterValue {
  switch (parameter.parameterChoice) {
    case "int64Param":
      return parameter.int64Param!;
    case "boolParam":
      return parameter.boolParam!;
    case "stringParam":
      return parameter.stringParam!;
    case "doubleParam":
      return parameter.doubleParam!;
    default:
      throw wrongKind(key, "int64_param, bool_param, or string_param");
  }
}

function bool(parameter: Parameter, key: string): boolean {
  if (parameter.parameterChoice !== "boolParam") throw wrongKind(key, "bool_param");
  return parameter.boolParam!;
}

function wrongKind(key: string, expected: string): TritonError {
  return invalidArgument(
    `invalid value type for '${key}' parameter, expected ${expected}.`,
    "INVALID_PARAMETER",
  );
}

function reservedKey(): TritonError {
  return invalidArgument(
    `parameter keys starting with '${RESERVED_PREFIX}' are reserved for Triton usage. Only the following keys ` +
      `starting with '${RESERVED_PREFIX}' are allowed: ${ENABLE_EMPTY_FINAL_RESPONSE}`,
    "INVALID_PARAMETER",
  );
}

type RequestedOutput = inference.ModelInferRequest.InferRequestedOutputTensor.$Properties;

interface OutputForm {
  readonly classes?: number;
  readonly range?: RegionRange;
}

export type OutputForms = ReadonlyMap<string, OutputForm>;

const NO_FORMS: OutputForms = new Map();
const ALL_OUTPUTS: readonly string[] = [];

/** Names of the requested outputs, each once; empty for all outputs. */
export function requestedOutputNames(outputs: readonly RequestedOutput[]): readonly string[] {
  return outputs.length === 0 ? ALL_OUTPUTS : [...new Set(outputs.map(({ name }) => name ?? ""))];
}

/**
 * Reads how to return the requested outputs. If an output is listed twice, its first form counts.
 *
 * @param memory holds the shared memory that outputs name, until the caller releases it.
 * @throws TritonError INVALID_ARG for wrong parameters, NOT_FOUND for an unknown shared-memory region.
 */
export function decodeOutputForms(
  outputs: readonly RequestedOutput[],
  memory: Pick<Exchange, "hold">,
): OutputForms {
  let forms: Map<string, OutputForm> | undefined;
  for (const output of outputs) {
    const form = decodeForm(output, memory);
    if (form === undefined) continue;
    forms ??= new Map();
    const name = output.name ?? "";
    if (!forms.has(name)) forms.set(name, form);
  }
  return forms ?? NO_FORMS;
}

function decodeForm(output: RequestedOutput, memory: Pick<Exchange, "hold">): OutputForm | undefined {
  const range = decodeSharedMemoryRange(output);
  const classes = classificationCount(output);
  if (range === undefined) return classes === undefined ? undefined : { classes };
  if (classes !== undefined) {
    throw invalidArgument(
      "output can't set both 'shared_memory_region' and 'classification'",
      "INVALID_REQUESTED_OUTPUT",
    );
  }
  return { range: memory.hold(range) };
}

function classificationCount(output: RequestedOutput): number | undefined {
  const parameter = output.parameters?.classification;
  if (parameter === undefined) return undefined;
  if (parameter.parameterChoice !== "int64Param") {
    throw invalidArgument(
      "invalid value type for 'classification' parameter, expected int64_param",
      "INVALID_REQUESTED_OUTPUT",
    );
  }
  const count = parameter.int64Param ?? 0;
  if (count <= 0)
    throw invalidArgument(
      "invalid value for 'classification' parameter, expected >= 0",
      "INVALID_REQUESTED_OUTPUT",
    );
  return Number(count);
}

interface Parameterized {
  readonly name?: string | null;
  readonly parameters?: Record<string, inference.InferParameter.$Properties> | null;
}

const REGION = "shared_memory_region";
const OFFSET = "shared_memory_offset";
const BYTE_SIZE = "shared_memory_byte_size";

function decodeSharedMemoryRange({ name, parameters }: Parameterized): RequestedRange | undefined {
  const region = parameters?.[REGION];
  if (region !== undefined && region.parameterChoice !== "stringParam")
    throw wrongRegionParameter(REGION, name, "string_param");
  const offset = integer(OFFSET, name, parameters, region !== undefined);
  const byteSize = integer(BYTE_SIZE, name, parameters, region !== undefined);
  if (region === undefined) return undefined;
  if (byteSize === undefined) {
    throw invalidArgument(
      `'${BYTE_SIZE}' must be specified along with '${REGION}' parameter for tensor '${name}'`,
      "INVALID_REGION",
    );
  }
  return { region: region.stringParam ?? "", offset: offset ?? 0, byteSize };
}

function integer(
  key: string,
  name: string | null | undefined,
  parameters: Parameterized["parameters"],
  hasRegion: boolean,
): number | bigint | undefined {
  const parameter = parameters?.[key];
  if (parameter === undefined) return undefined;
  if (!hasRegion) {
    throw invalidArgument(
      `'${key}' can not be specified without '${REGION}' parameter for tensor '${name}'`,
      "INVALID_REGION",
    );
  }
  if (parameter.parameterChoice !== "int64Param") throw wrongRegionParameter(key, name, "int64_param");
  return parameter.int64Param ?? 0;
}

function wrongRegionParameter(key: string, name: string | null | undefined, expected: string): TritonError {
  return invalidArgument(
    `invalid value type for '${key}' parameter for tensor '${name}', expected ${expected}.`,
    "INVALID_REGION",
  );
}
