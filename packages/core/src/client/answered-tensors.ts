import type { NdArrayOf } from "../config/tensor-spec.js";
import { TritonError } from "../errors/triton-error.js";
PLACEHOLDER
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
      throw invalid(`the answer has no output '${name}'; it has ${names === "" ? "none" : names}`);
    }
    if (datatype !== undefined && datatype !== tensor.datatype) {
      throw invalid(`output '${name}' is ${tensor.datatype}, not ${datatype}`);
    }
    return tensor;
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message);
}
