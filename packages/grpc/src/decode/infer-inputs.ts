import type { RequestRegions } from "@tritonjs/core/frontend";
import { ContentsError, type inference, typedElements, WireStrings } from "@tritonjs/grpc-messages";
import { type DataType, isDataType, type Shape, Tensor, wireShape } from "@tritonjs/protocol";
import { invalidArgument } from "./invalid-argument.js";
import { decodeSharedMemoryRange } from "./shared-memory-parameters.js";

type InputTensor = inference.ModelInferRequest.InferInputTensor.$Properties;

/** Triton's name for an unknown data type. */
const INVALID = "<invalid>";

const NO_BYTES = new Uint8Array(0);

/**
 * Decodes the input tensors of a request, in its order. Raw contents stay views of the message. They pair with the
 * inputs in order, and surplus ones are ignored.
 *
 * @param regions Holds the shared memory that inputs name, until the caller releases it.
 * @throws TritonError INVALID_ARG for a name that comes twice, and for an input whose data is missing, given twice or
 * of another type; NOT_FOUND for an unknown shared-memory region.
 */
export function decodeInputs(
  request: inference.ModelInferRequest,
  regions: RequestRegions,
): Map<string, Tensor> {
  const inputs = new Map<string, Tensor>();
  checkDeclarations(request);
  const raw = new RawContents(request.rawInputContents);
  for (const input of request.inputs) {
    inputs.set(input.name ?? "", decodeInput(input, raw, request.modelName, regions));
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

function decodeInput(
  input: InputTensor,
  raw: RawContents,
  modelName: string,
  regions: RequestRegions,
): Tensor {
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
    return Tensor.fromBytes(datatype, shape, regions.hold(range).read());
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

/**
 * Decodes typed contents; contents without a value make a tensor of no bytes.
 *
 * @param where `input tensor 'X' for model 'M'`, for messages.
 * @throws TritonError INVALID_ARG when the values are in a field of another data type, or in two fields.
 */
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

/** Hands out the raw contents of a request one after the other. */
class RawContents {
  readonly #buffers: readonly Uint8Array[];
  #index = 0;

  constructor(buffers: readonly Uint8Array[]) {
    this.#buffers = buffers;
  }

  /** True when the request has raw contents. */
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
  return isDataType(name) ? name : (INVALID as DataType);
}
