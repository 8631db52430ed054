import {
  type ArrayOf,
  type DataType,
  type ElementsOf,
  type Parameters,
  type Shape,
  shownElements,
  type Tensor,
  TritonError,
  toNdArray,
} from "@tritonjs/protocol";
import { invalidAnswer } from "./caller.js";

/** Description of an output in shared memory. */
export interface SharedMemoryOutput {
  readonly datatype: DataType;
  readonly shape: Shape;
}

/**
 * The answer to an inference. Arrays are views of the received bytes if their alignment permits it.
 *
 * @typeParam Response the answer in the form of its protocol: JSON and headers over HTTP, a message over gRPC
 * @example
 * ```ts
 * const result = await client.infer("linear", { inputs: { x: { datatype: "FP32", shape: [1, 2], data: [1, 2] } } });
 * result.outputs.y;             // ndarray of shape [1, 3]
 * result.array("y", "FP32");    // the same, known to hold a Float32Array
 * result.elements("y", "FP32"); // Float32Array(3)
 * ```
 */
export class InferResult<Response = unknown> {
  /** The id of the request; empty if it had none. */
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  /** Parameters that the model or the server sent with the outputs. */
  readonly parameters: Parameters;
  /** Outputs in the order of the answer, without those in shared memory. */
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** Outputs in shared memory. */
  readonly sharedMemoryOutputs: ReadonlyMap<string, SharedMemoryOutput>;
  /** The answer in the form of its protocol. */
  readonly response: Response;
  #outputs: Record<string, ArrayOf<DataType>> | undefined;

  constructor(
    parts: Pick<
      InferResult<Response>,
      "id" | "modelName" | "modelVersion" | "parameters" | "tensors" | "sharedMemoryOutputs" | "response"
    >,
  ) {
    this.id = parts.id;
    this.modelName = parts.modelName;
    this.modelVersion = parts.modelVersion;
    this.parameters = parts.parameters;
    this.tensors = parts.tensors;
    this.sharedMemoryOutputs = parts.sharedMemoryOutputs;
    this.response = parts.response;
  }

  /** Outputs as ndarrays, by name. */
  get outputs(): Readonly<Record<string, ArrayOf<DataType>>> {
    if (this.#outputs === undefined) {
      this.#outputs = Object.create(null) as Record<string, ArrayOf<DataType>>;
      for (const [name, tensor] of this.tensors)
        this.#outputs[name] = toNdArray(tensor, "output", name, this.modelName);
    }
    return this.#outputs;
  }

  /**
   * One output as an ndarray of a data type.
   *
   * @throws TritonError INVALID_ARG when the answer has no such output, or when it has another data type.
   */
  array<D extends DataType = DataType>(name: string, datatype?: D): ArrayOf<D> {
    return toNdArray(this.tensor(name, datatype), "output", name, this.modelName) as ArrayOf<D>;
  }

  /**
   * The elements of one output in row-major order, as the `data` of its ndarray: a typed array, or the byte arrays of a
   * `BYTES` tensor.
   *
   * @throws TritonError INVALID_ARG when the answer has no such output, or when it has another data type.
   */
  elements<D extends DataType = DataType>(name: string, datatype?: D): ElementsOf<D> {
    const tensor = this.tensor(name, datatype);
    return shownElements(tensor.datatype, tensor.elements) as ElementsOf<D>;
  }

  /** The elements of a `BYTES` output as text: generated text, or classes as `value:index:label`. */
  strings(name: string): string[] {
    return this.array(name, "BYTES").strings();
  }

  /**
   * One element of a `BYTES` output as text. Without an index, the output must have exactly one element.
   *
   * @throws TritonError INVALID_ARG as {@link array}, and for an index outside of the output.
   */
  text(name: string, ...index: number[]): string {
    return this.array(name, "BYTES").text(...index);
  }

  /**
   * One element of a `BYTES` output, parsed as JSON. Without an index, the output must have exactly one element.
   *
   * @typeParam T type of the value, which is not checked
   * @throws TritonError as {@link text}, and INTERNAL for text that is not JSON.
   */
  json<T = unknown>(name: string, ...index: number[]): T {
    return this.array(name, "BYTES").json<T>(...index);
  }

  /** Returns one output as received: data type, shape and bytes. */
  tensor(name: string, datatype?: DataType): Tensor {
    const tensor = this.tensors.get(name);
    if (tensor === undefined) {
      const names = [...this.tensors.keys()].map((known) => `'${known}'`).join(", ");
      throw invalid(`the answer has no output '${name}': got ${names === "" ? "none" : names}`);
    }
    if (datatype !== undefined && datatype !== tensor.datatype) {
      throw invalid(`output '${name}': expected ${datatype}, got ${tensor.datatype}`);
    }
    return tensor;
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_REQUESTED_OUTPUT" });
}

/**
 * Converts the outputs of a result to ndarrays.
 *
 * @param strip whether to remove the batch axis of a result with one row
 * @throws TritonError INTERNAL when `strip` is set and there is not exactly one row.
 */
export function resultArrays(
  result: Pick<InferResult, "tensors" | "modelName">,
  strip: boolean,
): Record<string, ReturnType<typeof toNdArray>> {
  const arrays: Record<string, ReturnType<typeof toNdArray>> = Object.create(null);
  for (const [name, tensor] of result.tensors) {
    if (strip && tensor.shape[0] !== 1) {
      throw invalidAnswer(
        `output '${name}' of one sample: expected a first dimension of 1, got shape [${tensor.shape.join(",")}]`,
      );
    }
    const shown = strip ? tensor.reshaped(tensor.shape.slice(1)) : tensor;
    arrays[name] = toNdArray(shown, "output", name, result.modelName);
  }
  return arrays;
}

export function malformedAnswer(message: string, cause?: unknown): TritonError {
  return invalidAnswer(`cannot read the server's answer as an inference response: ${message}`, cause);
}
