import type { NdArray } from "ndarray";
import { TritonError } from "../errors/triton-error.js";
import { bytesArray, bytesArrayLike } from "./bytes-array.js";
import type { Elements } from "./data-type.js";
import { elementCount, type Shape } from "./shape.js";
import type { Tensor } from "./tensor.js";
import { viewOf } from "./view-classes.js";

/**
 * Makes the ndarray that callbacks and callers see: a view of the tensor's elements. That of a `BYTES` tensor is a
 * {@link BytesArray}. The names are for its errors.
 */
export function toNdArray(
  tensor: Tensor,
  direction: "input" | "output" = "input",
  name?: string,
  modelName?: string,
): NdArray<Elements> {
  return ndArrayOf(tensor.elements, tensor.shape, direction, name, modelName);
}

/** Makes an ndarray over elements in row-major order, as {@link toNdArray}. */
export function ndArrayOf(
  elements: Elements,
  shape: Shape,
  direction: "input" | "output",
  name?: string,
  modelName?: string,
): NdArray<Elements> {
  if (!Array.isArray(elements)) return viewOf(elements, shape);
  const origin = name === undefined || modelName === undefined ? undefined : { direction, name, modelName };
  return bytesArray(elements, shape, origin);
}

/** Makes an ndarray over some elements of another array. */
export function ndArrayLike(
  array: NdArray<Elements>,
  elements: Elements,
  shape: readonly number[],
): NdArray<Elements> {
  return Array.isArray(elements) ? bytesArrayLike(array, elements, shape) : viewOf(elements, shape);
}

/** True for any object made by the `ndarray` package, also by another copy of it. */
export function isNdArray(value: unknown): value is NdArray<Elements> {
  if (typeof value !== "object" || value === null) return false;
  const candidate = value as Partial<NdArray>;
  return (
    Array.isArray(candidate.shape) &&
    Array.isArray(candidate.stride) &&
    typeof candidate.offset === "number" &&
    typeof candidate.data === "object"
  );
}

/**
 * The elements of an ndarray in row-major order: a view if they are already stored in that order, else a copy.
 *
 * @throws TritonError INVALID_ARG for a shape with anything but integers of at least 0, and strides that leave the data
 */
export function contiguousElements(array: NdArray<Elements>): Elements {
  const { data, shape, stride, offset } = array;
  const size = elementCount(shape);
  if (isRowMajor(shape, stride)) {
    if (offset === 0 && data.length === size) return data;
    return Array.isArray(data)
      ? data.slice(offset, offset + size)
      : (data as Float32Array).subarray(offset, offset + size);
  }
  return gather(data as Float32Array, shape, stride, offset, size);
}

function isRowMajor(shape: readonly number[], stride: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const dim = shape[axis]!;
    if (dim > 1 && stride[axis] !== expected) return false;
    expected *= dim;
  }
  return true;
}

/** Checks that strides stay within the elements, because users can set any strides. */
function assertInside(
  length: number,
  shape: readonly number[],
  stride: readonly number[],
  offset: number,
): void {
  let [first, last] = [offset, offset];
  for (const [axis, dim] of shape.entries()) {
    if (dim === 0) return;
    const reach = (dim - 1) * stride[axis]!;
    if (reach < 0) first += reach;
    else last += reach;
  }
  if (first >= 0 && last < length) return;
  throw new TritonError(
    "INVALID_ARG",
    `ndarray of shape [${shape.join()}] and stride [${stride.join()}]: expected more elements than its ${length}`,
    { reason: "INVALID_INPUT" },
  );
}

/** Walks the axes like an odometer: the last one changes fastest. */
function gather(
  data: Float32Array,
  shape: readonly number[],
  stride: readonly number[],
  offset: number,
  size: number,
): Elements {
  assertInside(data.length, shape, stride, offset);
  // A subclass of Uint8Array, such as Buffer, may not support `new`.
  const like = (data as unknown) instanceof Uint8Array ? Uint8Array : data.constructor;
  const out = Array.isArray(data) ? new Array(size) : new (like as Float32ArrayConstructor)(size);
  const index = new Array<number>(shape.length).fill(0);
  let from = offset;
  for (let i = 0; i < size; i++) {
    out[i] = data[from]!;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      from += stride[axis]!;
      if (++index[axis]! < shape[axis]!) break;
      from -= stride[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return out;
}
