import {
  type DataType,
  type Elements,
  elementByteSize,
  type TypedArray,
  typedArrayFor,
} from "./data-types.js";
import { TritonError } from "./triton-error.js";

/** Where the elements of a tensor are while they are not in memory of JavaScript: on a GPU. */
export interface TensorSource {
  /**
   * Copies the elements to memory of JavaScript, once. Blocks the thread.
   *
   * @throws TritonError UNAVAILABLE while they cannot be read
   */
  read(): TypedArray;
  /** Copies the elements as `read` does, without blocking the thread. `read` then costs nothing. */
  load(): Promise<void>;
  /** Where the elements are, if that is memory of a GPU of CUDA, row-major without gaps. */
  readonly cuda?: CudaMemory | undefined;
}

/** Memory of a GPU of CUDA. */
export interface CudaMemory {
  readonly deviceId: number;
  /** Keeps the memory until `release` is called. Undefined if it is gone. */
  hold(): HeldCudaMemory | undefined;
}

/** Memory of a GPU that stays until it is released. */
export interface HeldCudaMemory {
  readonly address: bigint;
  release(): void;
}

/**
 * A tensor inside the library: contiguous, row-major, little-endian. It is made from bytes off a socket, or from
 * elements of a program. It is converted to the other form at the first access. Making one checks and copies nothing:
 * the request validation and the output checks do the checking.
 */
export class Tensor {
  /** The wire form, or where the elements are while they are elsewhere. */
  #bytes: Uint8Array | TensorSource | undefined;
  /** The elements. Those of a part that nobody has read are the elements of the whole tensor. */
  #elements: Elements | undefined;
  /**
   * First element and number of elements of such a part. The number is {@link WHOLE} for any other tensor, and
   * {@link FROM_SOURCE} for one whose elements are elsewhere. A field of its own for the source would cost every request.
   */
  #from = 0;
  #count = WHOLE;

  private constructor(
    readonly datatype: DataType,
    readonly shape: Shape,
    bytes: Uint8Array | TensorSource | undefined,
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

  /** A tensor over `count` elements from `from` on. Only reading `elements` makes a view of them. */
  static fromPart(
    datatype: Exclude<DataType, "BYTES">,
    shape: Shape,
    elements: TypedArray,
    from: number,
    count: number,
  ): Tensor {
    const part = new Tensor(datatype, shape, undefined, elements);
    part.#from = from;
    part.#count = count;
    return part;
  }

  /** A tensor whose elements are elsewhere until they are read. */
  static fromSource(datatype: Exclude<DataType, "BYTES">, shape: Shape, source: TensorSource): Tensor {
    const tensor = new Tensor(datatype, shape, source, undefined);
    tensor.#count = FROM_SOURCE;
    return tensor;
  }

  /** Where the elements are, for a tensor that was made with {@link fromSource}. */
  get source(): TensorSource | undefined {
    return this.#count === FROM_SOURCE ? (this.#bytes as TensorSource) : undefined;
  }

  /** A tensor over the same memory with another shape. The caller ensures that the number of elements is the same. */
  reshaped(shape: Shape): Tensor {
    const other = new Tensor(this.datatype, shape, this.#bytes, this.#elements);
    other.#from = this.#from;
    other.#count = this.#count;
    return other;
  }

  /** The wire form: a view of the elements, or the serialized elements of `BYTES`. */
  get bytes(): Uint8Array {
    if (this.#bytes === undefined) this.#bytes = this.#encoded();
    return this.#count === FROM_SOURCE ? this.#encoded() : (this.#bytes as Uint8Array);
  }

  #encoded(): Uint8Array {
    const elements = this.#elements ?? this.elements;
    if (Array.isArray(elements)) return encodeBytes(elements);
    const start = elements.byteOffset + this.#from * elements.BYTES_PER_ELEMENT;
    return new Uint8Array(elements.buffer, start, this.byteLength);
  }

  /** True if it holds what its data type needs. A program may have made a tensor of anything. */
  get isSound(): boolean {
    const elements: unknown = this.#elements;
    if (elements === undefined) return this.#count === FROM_SOURCE || this.#bytes instanceof Uint8Array;
    if (this.datatype !== "BYTES") return elements instanceof typedArrayFor(this.datatype);
    return Array.isArray(elements) && elements.every((element) => element instanceof Uint8Array);
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
    this.#elements ??= this.#read();
    if (this.#count >= 0) {
      this.#elements = (this.#elements as Float32Array).subarray(this.#from, this.#from + this.#count);
      this.#from = 0;
      this.#count = WHOLE;
    }
    return this.#elements;
  }

  #read(): Elements {
    if (this.#count === FROM_SOURCE) return (this.#bytes as TensorSource).read();
    const bytes = this.#bytes as Uint8Array;
    return this.datatype === "BYTES" ? decodeBytes(bytes) : alignedView(this.datatype, bytes);
  }

  /**
   * Makes the elements of a large `BYTES` tensor with pauses, so that reading `elements` costs nothing afterwards: each
   * element is an object of its own.
   *
   * @throws as `elements` does.
   */
  *elementSteps(): Generator<void, void> {
    if (this.datatype === "BYTES" && !this.hasElements) this.#elements = yield* decodeBytesSteps(this.bytes);
  }

  /** A copy of the elements, in memory of its own. */
  copyElements(): Elements {
    if (this.datatype === "BYTES") return decodeBytes(encodeBytes(this.elements as Uint8Array[]));
    const Elements = typedArrayFor(this.datatype);
    if (this.#count < 0) return new Elements(this.elements as TypedArray);
    const whole = this.#elements as Float32Array;
    // `slice` of a Buffer returns a view.
    return (whole.constructor as unknown) === Elements
      ? whole.slice(this.#from, this.#from + this.#count)
      : new Elements(this.elements as TypedArray);
  }

  /** Size in bytes of the memory that this tensor holds, in either form. */
  get byteLength(): number {
    if (this.#count === FROM_SOURCE)
      return elementCount(this.shape) * elementByteSize(this.datatype as "FP32");
    if (this.#bytes !== undefined) return (this.#bytes as Uint8Array).byteLength;
    const elements = this.#elements!;
    if (Array.isArray(elements)) return this.bytes.byteLength;
    return this.#count < 0 ? elements.byteLength : this.#count * elements.BYTES_PER_ELEMENT;
  }
}

/** Numbers of elements of a tensor that is not part of another. */
const WHOLE = -1;
const FROM_SOURCE = -2;

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

/*
 * The BYTES codec. On the wire an element is its length as a little-endian uint32, followed by that many bytes.
 * Elements follow each other in row-major order without padding.
 */

const LENGTH_BYTES = 4;
const MAX_ELEMENT_BYTES = 0xffff_ffff;

/** Number of bytes that {@link encodeBytes} writes. */
export function encodedByteLength(elements: readonly Uint8Array[]): number {
  let total = elements.length * LENGTH_BYTES;
  for (const element of elements) total += element.byteLength;
  return total;
}

/**
 * Writes elements one after the other, each preceded by its length.
 *
 * @throws TritonError INVALID_ARG for an element of 4 GiB or more.
 */
export function encodeBytes(elements: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(encodedByteLength(elements));
  let offset = 0;
  for (const element of elements) {
    const length = element.byteLength;
    if (length > MAX_ELEMENT_BYTES) {
      throw new TritonError(
        "INVALID_ARG",
        `BYTES element: expected at most ${MAX_ELEMENT_BYTES} bytes, got ${length}`,
        { reason: "INVALID_INPUT" },
      );
    }
    writeUint32(out, offset, length);
    out.set(element, offset + LENGTH_BYTES);
    offset += LENGTH_BYTES + length;
  }
  return out;
}

/**
 * Reads elements as views of `raw`, without copying.
 *
 * @throws TritonError INVALID_ARG when `raw` ends inside an element.
 */
export function decodeBytes(raw: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  decodeSome(raw, 0, elements, Number.POSITIVE_INFINITY);
  return elements;
}

/** Elements between two pauses. They take less than a millisecond. */
const ELEMENTS_OF_STEP = 2048;

/** Reads elements as {@link decodeBytes} does, with pauses. */
function* decodeBytesSteps(raw: Uint8Array): Generator<void, Uint8Array[]> {
  const elements: Uint8Array[] = [];
  let offset = 0;
  for (;;) {
    offset = decodeSome(raw, offset, elements, elements.length + ELEMENTS_OF_STEP);
    if (offset === raw.byteLength) return elements;
    yield;
  }
}

/** Adds elements from `offset` on until there are `most`. Returns the end of the last one. */
function decodeSome(raw: Uint8Array, from: number, elements: Uint8Array[], most: number): number {
  let offset = from;
  while (offset < raw.byteLength && elements.length < most) {
    const end = elementEnd(raw, offset);
    if (end > raw.byteLength || end < 0) {
      throw new TritonError(
        "INVALID_ARG",
        `BYTES data of ${raw.byteLength} bytes ends in the middle of an element`,
        {
          reason: "INVALID_INPUT",
        },
      );
    }
    elements.push(raw.subarray(offset + LENGTH_BYTES, end));
    offset = end;
  }
  return offset;
}

/** Result of scanning serialized elements without making them. */
interface BytesScan {
  /** Number of elements that were begun, at most `limit` + 1. */
  readonly elements: number;
  /** Set if fewer than four bytes were left for a length. */
  readonly lengthBytesLeft?: number;
  /** Set if an element is longer than the rest of the bytes. */
  readonly truncated?: { readonly expected: number; readonly available: number };
}

/** Scans serialized elements. Stops at the first fault, or at the first element past `limit`. */
export function scanBytes(raw: Uint8Array, limit: number): BytesScan {
  let offset = 0;
  let elements = 0;
  while (offset < raw.byteLength) {
    const left = raw.byteLength - offset;
    if (left < LENGTH_BYTES) return { elements, lengthBytesLeft: left };
    elements++;
    if (elements > limit) return { elements };
    const length = readUint32(raw, offset);
    if (length > left - LENGTH_BYTES) {
      return { elements, truncated: { expected: length, available: left - LENGTH_BYTES } };
    }
    offset += LENGTH_BYTES + length;
  }
  return { elements };
}

function elementEnd(raw: Uint8Array, offset: number): number {
  if (raw.byteLength - offset < LENGTH_BYTES) return -1;
  return offset + LENGTH_BYTES + readUint32(raw, offset);
}

function readUint32(raw: Uint8Array, at: number): number {
  return (raw[at]! | (raw[at + 1]! << 8) | (raw[at + 2]! << 16) | (raw[at + 3]! << 24)) >>> 0;
}

function writeUint32(out: Uint8Array, at: number, value: number): void {
  out[at] = value;
  out[at + 1] = value >>> 8;
  out[at + 2] = value >>> 16;
  out[at + 3] = value >>> 24;
}

/** Dimensions of a tensor, outermost first. In a specification -1 means any size. */
export type Shape = readonly number[];

/** Formats a shape as `[-1,16]`, the form of Triton's error texts. */
export function shapeToString(shape: Shape): string {
  return `[${shape.join(",")}]`;
}

/**
 * Converts dimensions from the wire to a shape. A dimension beyond 2^53 stays a bigint, so that error texts show all of
 * its digits. No tensor can have such a dimension: {@link elementCount} refuses it.
 */
export function wireShape(dims: readonly (number | bigint)[]): Shape {
  return (dims.some((dim) => typeof dim === "bigint") ? dims.map(narrow) : dims) as Shape;
}

function narrow(dim: number | bigint): number | bigint {
  const number = Number(dim);
  return Number.isSafeInteger(number) ? number : dim;
}

/** Number of elements as Triton counts them, in 64 bits that may overflow. */
export function wrappedElementCount(shape: Shape): bigint {
  return BigInt.asIntN(
    64,
    shape.reduce((product, dim) => product * BigInt(dim), 1n),
  );
}

/**
 * Number of elements of a tensor of this shape; 1 for a scalar `[]`.
 *
 * @throws TritonError INVALID_ARG if a dimension is not a non-negative integer, or the product is too large for an
 * exact number.
 */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw new TritonError("INVALID_ARG", `invalid dimension ${dim} in shape ${shapeToString(shape)}`, {
        reason: "INVALID_INPUT",
      });
    }
    count *= dim;
  }
  if (!Number.isSafeInteger(count)) {
    throw new TritonError(
      "INVALID_ARG",
      `the number of elements of shape ${shapeToString(shape)} is too large`,
      { reason: "INVALID_INPUT" },
    );
  }
  return count;
}

/** True if both shapes have the same dimensions, starting at axis `from`. */
export function sameShape(a: Shape, b: Shape, from = 0): boolean {
  if (a.length !== b.length) return false;
  for (let i = from; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * True if `shape` matches `spec`, in which -1 means any size.
 *
 * @param from axis of `shape` to which the first axis of `spec` corresponds
 */
export function matchesShape(spec: Shape, shape: Shape, from = 0): boolean {
  if (spec.length + from !== shape.length) return false;
  for (let i = 0; i < spec.length; i++) if (spec[i] !== -1 && spec[i] !== shape[i + from]) return false;
  return true;
}
