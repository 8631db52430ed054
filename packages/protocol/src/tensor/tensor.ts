import { TritonError } from "../errors/triton-error.js";
import { decodeBytes, encodeBytes } from "./bytes.js";
import {
  type DataType,
  type Elements,
  elementByteSize,
  type TypedArray,
  typedArrayFor,
} from "./data-type.js";
import type { Shape } from "./shape.js";

/**
 * A tensor inside the library: contiguous, row-major, little-endian. It is made from bytes off a socket, or from
 * elements of a program. It is converted to the other form at the first access. Making one checks and copies nothing:
 * the request validation and the output checks do the checking.
 */
export class Tensor {
  #bytes: Uint8Array | undefined;
  #elements: Elements | undefined;

  private constructor(
    readonly datatype: DataType,
    readonly shape: Shape,
    bytes: Uint8Array | undefined,
    elements: Elements | undefined,
  ) {
    this.#bytes = bytes;
    this.#elements = elements;
  }

  /** A tensor over its wire form (`BYTES`: length-prefixed elements). */
  static fromBytes(datatype: DataType, shape: Shape, bytes: Uint8Array): Tensor {
    return new Tensor(datatype, shape, bytes, undefined);
  }

  /** A tensor over its elements: the typed array of `datatype`, or a list of byte arrays for `BYTES`. */
  static fromElements(datatype: DataType, shape: Shape, elements: Elements): Tensor {
    return new Tensor(datatype, shape, undefined, elements);
  }

  /** A tensor over the same memory with another shape. The caller ensures that the number of elements is the same. */
  reshaped(shape: Shape): Tensor {
    return new Tensor(this.datatype, shape, this.#bytes, this.#elements);
  }

  /** The wire form: a view of the elements, or the serialized elements of `BYTES`. */
  get bytes(): Uint8Array {
    if (this.#bytes === undefined) {
      const elements = this.#elements!;
      this.#bytes = Array.isArray(elements)
        ? encodeBytes(elements)
        : new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
    }
    return this.#bytes;
  }

  /** True if the elements are already present, so that reading them costs nothing. */
  get hasElements(): boolean {
    return this.#elements !== undefined;
  }

  /**
   * The elements: a view of the bytes if their alignment allows it, otherwise a copy.
   *
   * @throws TritonError INVALID_ARG if the bytes do not make up whole elements.
   */
  get elements(): Elements {
    this.#elements ??=
      this.datatype === "BYTES" ? decodeBytes(this.#bytes!) : alignedView(this.datatype, this.#bytes!);
    return this.#elements;
  }

  /** Size in bytes of the memory that this tensor holds, in either form. */
  get byteLength(): number {
    if (this.#bytes !== undefined) return this.#bytes.byteLength;
    const elements = this.#elements!;
    return Array.isArray(elements) ? this.bytes.byteLength : elements.byteLength;
  }
}

function alignedView(datatype: Exclude<DataType, "BYTES">, bytes: Uint8Array): TypedArray {
  const size = elementByteSize(datatype);
  if (bytes.byteLength % size !== 0) {
    throw new TritonError(
      "INVALID_ARG",
      `expected a whole number of ${datatype} elements, got ${bytes.byteLength} bytes`,
      {
        reason: "INVALID_INPUT",
      },
    );
  }
  // `slice` of a Buffer would be another view. A new array is a copy, whatever the class of `bytes`.
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  return new (typedArrayFor(datatype))(aligned.buffer, aligned.byteOffset, aligned.byteLength / size);
}
