import type { NdArray } from "ndarray";
import { TritonError } from "../errors/triton-error.js";
import type { DataType, ElementsOf } from "../tensor/data-type.js";
import { toNdArray } from "../tensor/nd-array.js";
import type { Shape } from "../tensor/shape.js";
import type { Tensor } from "../tensor/tensor.js";

/** The ndarray of a tensor of data type `D`. */
export type ArrayOf<D extends DataType> = NdArray<ElementsOf<D>>;

/** What an answer says of an output that is in shared memory. */
export interface SharedMemoryOutput {
  readonly datatype: DataType;
  readonly shape: Shape;
}

/** The outputs of an inference. Arrays are views of the received bytes where their alignment allows it. */
export class AnsweredTensors {
  /** Outputs in the order of the answer, without those in shared memory. */
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** Outputs that the server has put into shared memory. */
  readonly sharedMemoryOutputs: ReadonlyMap<string, SharedMemoryOutput>;
  #outputs: Record<string, ArrayOf<DataType>> | undefined;

  constructor(
    tensors: ReadonlyMap<string, Tensor>,
    sharedMemoryOutputs: ReadonlyMap<string, SharedMemoryOutput>,
  ) {
    this.tensors = tensors;
    this.sharedMemoryOutputs = sharedMemoryOutputs;
  }

  /** ndarrays by output name. */
  get outputs(): Readonly<Record<string, ArrayOf<DataType>>> {
    if (this.#outputs === undefined) {
      this.#outputs = Object.create(null) as Record<string, ArrayOf<DataType>>;
      for (const [name, tensor] of this.tensors) this.#outputs[name] = toNdArray(tensor);
    }
    return this.#outputs;
  }

  /**
   * One output as an ndarray of a data type.
   *
   * @throws TritonError INVALID_ARG when the answer has no such output, or when it has another data type.
   */
  array<D extends DataType = DataType>(name: string, datatype?: D): ArrayOf<D> {
    return toNdArray(this.tensor(name, datatype)) as unknown as ArrayOf<D>;
  }

  /**
   * The elements of one output in row-major order: a typed array, or the byte arrays of a `BYTES` tensor.
   *
   * @throws TritonError INVALID_ARG when the answer has no such output, or when it has another data type.
   */
  elements<D extends DataType = DataType>(name: string, datatype?: D): ElementsOf<D> {
    return this.tensor(name, datatype).elements as ElementsOf<D>;
  }

  /** The elements of a `BYTES` output as text: generated text, or classes as `value:index:label`. */
  strings(name: string): string[] {
    const decoder = new TextDecoder();
    return this.elements(name, "BYTES").map((bytes) => decoder.decode(bytes));
  }

  /** One output as it came: data type, shape and bytes. */
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
