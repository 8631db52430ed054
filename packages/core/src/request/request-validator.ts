import {
  type DataType,
  elementByteSize,
  elementCount,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  matchesShape,
  type ReasonOf,
  scanBytes,
  shapeToString,
  type Tensor,
  TritonError,
  wrappedElementCount,
} from "@tritonjs/protocol";
import { reshapeRule } from "../tensor-rows.js";
import type { InferenceRequest } from "./inference-request.js";

const BATCH_NOTE =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to " +
  "each input shape. If you want to specify the full shape including the batch dim in your input dims config, " +
  "try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

interface ExpectedInput {
  readonly config: ModelInput;
  readonly datatype: DataType;
}

/**
 * Checks requests against a model's configuration, with Triton's texts in Triton's order. The order is: requested
 * outputs, number of inputs, batch axis of each input, batch size, then data type, shape and byte size of each input.
 */
export class RequestValidator {
  readonly #name: string;
  readonly #maxBatchSize: number;
  readonly #inputs = new Map<string, ExpectedInput>();
  readonly #outputs: ReadonlySet<string>;
  readonly #requiredCount: number;
  readonly #reshapes: Reshapes;
  readonly #idControl: { readonly name: string; readonly datatype: DataType } | undefined;

  constructor(config: ModelConfig) {
    this.#name = config.name;
    this.#maxBatchSize = config.maxBatchSize;
    for (const input of config.input) {
      this.#inputs.set(input.name, { config: input, datatype: fromConfigDataType(input.dataType)! });
    }
    this.#outputs = new Set(config.output.map((output) => output.name));
    for (const { name, control } of config.sequenceBatching?.controlInput ?? []) {
      const id = control.find(({ kind }) => kind === "CONTROL_SEQUENCE_CORRID");
      if (id !== undefined) this.#idControl = { name, datatype: fromConfigDataType(id.dataType)! };
    }
    this.#reshapes = reshapesOf(config);
    this.#requiredCount = config.input.filter((input) => !input.optional).length;
  }

  /**
   * Checks a request, sets its batch size, and reshapes its inputs as the model expects them.
   *
   * @throws TritonError INVALID_ARG for the first fault found.
   */
  validate(request: InferenceRequest): void {
    if (request.requestedOutputs.length > 0) this.#checkRequested(request);
    this.#checkCount(request);
    request.batchSize = this.#maxBatchSize > 0 ? this.#batchSize(request) : 0;
    if (request.batchSize > this.#maxBatchSize) {
      throw invalid(
        `${request.logPrefix}inference request batch-size must be <= ${this.#maxBatchSize} for '${this.#name}'`,
        "BATCH_TOO_LARGE",
      );
    }
    for (const [name, tensor] of request.inputs) this.#checkTensor(request, name, tensor);
    this.#checkCorrelationId(request);
    const { inputs, outputs } = this.#reshapes;
    if (inputs !== undefined) request.inputs = inputs(request.inputs);
    request.reshapeOutputs = outputs;
  }

  #checkRequested({ requestedOutputs }: InferenceRequest): void {
    for (const output of requestedOutputs) {
      if (!this.#outputs.has(output)) {
        throw invalid(
          `unexpected inference output '${output}' for model '${this.#name}'`,
          "INVALID_REQUESTED_OUTPUT",
        );
      }
    }
  }

  /**
   * Checks that the id has the type of the model's control tensor; a missing id counts as 0. The scheduler refuses an
   * empty id.
   */
  #checkCorrelationId(request: InferenceRequest): void {
    if (this.#idControl === undefined) return;
    const { name, datatype } = this.#idControl;
    if (request.correlationId === "") return;
    const isText = typeof request.correlationId === "string";
    if (isText === (datatype === "BYTES")) return;
    throw invalid(
      `${request.logPrefix}sequence batching control '${name}' data-type is '${isText ? "BYTES" : "UINT64"}', ` +
        `but model '${this.#name}' expects '${datatype}'`,
    );
  }

  #expected(name: string): ExpectedInput {
    const expected = this.#inputs.get(name);
    if (expected === undefined)
      throw invalid(`unexpected inference input '${name}' for model '${this.#name}'`);
    return expected;
  }

  #checkCount(request: InferenceRequest): void {
    const got = request.inputs.size;
    const total = this.#inputs.size;
    if (got <= total && got >= this.#requiredCount) return;
    const missing = [...this.#inputs.values()]
      .map(({ config }) => config)
      .filter((input) => !input.optional && !request.inputs.has(input.name))
      .map((input) => input.name);
    const expected =
      this.#requiredCount === total
        ? `expected ${total} inputs but got ${got} inputs`
        : `expected number of inputs between ${this.#requiredCount} and ${total} but got ${got} inputs`;
    throw invalid(
      `${request.logPrefix}${expected} for model '${this.#name}'. Got input(s) ${quoted(request.inputs.keys())}, ` +
        `but missing required input(s) ${quoted(missing)}. Please provide all required input(s).`,
    );
  }

  #batchSize(request: InferenceRequest): number {
    if (request.inputs.size === 0) {
      throw invalid(
        `${request.logPrefix}the request to model '${this.#name}' has no input: expected at least one, which gives the batch size`,
      );
    }
    let batchSize = 0;
    for (const [name, tensor] of request.inputs) {
      if (this.#expected(name).config.isShapeTensor) continue;
      const rows = tensor.shape[0];
      if (rows === undefined) {
        throw invalid(
          `${request.logPrefix}input '${name}' has no shape but model requires batch dimension for '${this.#name}'`,
        );
      }
      if (batchSize === 0) batchSize = rows;
      else if (rows !== batchSize) {
        throw invalid(
          `${request.logPrefix}input '${name}' batch size does not match other inputs for '${this.#name}'`,
        );
      }
    }
    return batchSize;
  }

  #checkTensor(request: InferenceRequest, name: string, tensor: Tensor): void {
    const { config, datatype } = this.#expected(name);
    if (tensor.datatype !== datatype) {
      throw invalid(
        `${request.logPrefix}inference input '${name}' data-type is '${tensor.datatype}', ` +
          `but model '${this.#name}' expects '${datatype}'`,
      );
    }
    const batched = this.#maxBatchSize > 0 && !config.isShapeTensor;
    const first = batched ? 1 : 0;
    const { shape } = tensor;
    if (!matchesShape(config.dims, shape, first))
      this.#rejectShape(request, name, config, tensor, shape.slice(first));
    if (shape.includes(-1, first)) this.#rejectUnspecified(request, name, tensor);
    // A request without rows has a batch size of 0, which Triton takes as "no batch axis" from here on.
    const counted = batched && request.batchSize === 0 ? shape.slice(1) : shape;
    checkByteSize(request, this.#name, name, tensor, counted);
  }

  #rejectShape(
    request: InferenceRequest,
    name: string,
    config: ModelInput,
    tensor: Tensor,
    dims: readonly number[],
  ): never {
    const firstBad = config.dims.findIndex(
      (dim, axis) => dims[axis] === -1 || (dim !== -1 && dim !== dims[axis]),
    );
    if (dims.length === config.dims.length && dims[firstBad] === -1)
      this.#rejectUnspecified(request, name, tensor);
    const full = this.#maxBatchSize > 0 ? [-1, ...config.dims] : config.dims;
    throw invalid(
      `${request.logPrefix}unexpected shape for input '${name}' for model '${this.#name}'. Expected ` +
        `${shapeToString(full)}, got ${shapeToString(tensor.shape)}. ${this.#maxBatchSize > 0 ? BATCH_NOTE : ""}`,
    );
  }

  #rejectUnspecified(request: InferenceRequest, name: string, tensor: Tensor): never {
    throw invalid(
      `${request.logPrefix}All input dimensions should be specified for input '${name}' for model ` +
        `'${this.#name}', got ${shapeToString(tensor.shape)}`,
    );
  }
}

function quoted(names: Iterable<string>): string {
  return `[${[...names].map((name) => `'${name}'`).join(",")}]`;
}

function invalid(message: string, reason: ReasonOf<"INVALID_ARG"> = "INVALID_INPUT"): TritonError {
  return new TritonError("INVALID_ARG", message, { reason });
}

/**
 * Checks that the bytes of an input are the elements of a shape.
 *
 * @param shape shape whose elements count, which may differ from that of the tensor
 * @throws TritonError INVALID_ARG for the first fault found.
 */
function checkByteSize(
  request: InferenceRequest,
  model: string,
  name: string,
  tensor: Tensor,
  shape: readonly number[],
): void {
  if (tensor.datatype === "BYTES") {
    checkElements(request, model, name, tensor, elementCount(shape));
    return;
  }
  const size = elementByteSize(tensor.datatype);
  let expected: number | bigint;
  try {
    expected = elementCount(shape) * size;
  } catch (uncountable) {
    // The text has the size that Triton calculates in 64 bits. Bytes that happen to match it are refused all the same.
    expected = BigInt.asIntN(64, wrappedElementCount(shape) * BigInt(size));
    if (expected === BigInt(tensor.byteLength)) {
      const { message } = uncountable as TritonError;
      throw invalid(`${request.logPrefix}input '${name}' of model '${model}': ${message}`);
    }
  }
  if (tensor.byteLength === expected) return;
  throw invalid(
    `${request.logPrefix}input byte size mismatch for input '${name}' for model '${model}'. ` +
      `Expected ${expected}, got ${tensor.byteLength}`,
  );
}

function checkElements(
  request: InferenceRequest,
  model: string,
  name: string,
  tensor: Tensor,
  count: number,
): void {
  const where = `for inference input '${name}' for model '${model}'`;
  const scan = tensor.hasElements
    ? { elements: (tensor.elements as Uint8Array[]).length }
    : scanBytes(tensor.bytes, count);
  if (scan.lengthBytesLeft !== undefined) {
    throw invalid(
      `${request.logPrefix}incomplete string length indicator ${where}, expecting 4 bytes but only ` +
        `${scan.lengthBytesLeft} bytes available. Please make sure the string length indicator is in one buffer.`,
    );
  }
  if (scan.elements > count) {
    throw invalid(
      `${request.logPrefix}unexpected number of string elements ${scan.elements} ${where}, expecting ${count}`,
    );
  }
  if (scan.truncated !== undefined) {
    const { expected, available } = scan.truncated;
    throw invalid(
      `incomplete string data for inference input '${name}', expecting string of length ${expected} but only ` +
        `${available} bytes available`,
    );
  }
  if (scan.elements !== count) {
    throw invalid(`${request.logPrefix}expected ${count} string elements ${where}, got ${scan.elements}`);
  }
}

type Tensors = ReadonlyMap<string, Tensor>;

type Reshape = (tensors: Tensors) => Tensors;

/** Shape changes for a model with `reshape` in its configuration; undefined where nothing changes. */
interface Reshapes {
  /** From the shapes that clients send to those that the model expects. */
  readonly inputs: Reshape | undefined;
  /** From the shapes that the model returns to those that clients get. */
  readonly outputs: Reshape | undefined;
}

function reshapesOf({ input, output, maxBatchSize }: ModelConfig): Reshapes {
  const batched = maxBatchSize > 0;
  return {
    inputs: reshapeAll(input, (dims, shape) => reshapeRule(dims, shape, batched)),
    outputs: reshapeAll(output, (dims, shape) => reshapeRule(shape, dims, batched)),
  };
}

function reshapeAll(
  tensors: readonly (ModelInput | ModelOutput)[],
  ruleOf: (dims: readonly number[], shape: readonly number[]) => (tensor: Tensor) => Tensor,
): Reshape | undefined {
  const rules = new Map<string, (tensor: Tensor) => Tensor>();
  for (const { name, dims, reshape } of tensors) {
    if (reshape !== undefined) rules.set(name, ruleOf(dims, reshape.shape));
  }
  if (rules.size === 0) return undefined;
  return (given) => new Map([...given].map(([name, tensor]) => [name, rules.get(name)?.(tensor) ?? tensor]));
}
