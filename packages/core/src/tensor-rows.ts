import {
  type DataType,
  type Elements,
  elementByteSize,
  elementCount,
  encodeBytes,
  type Shape,
  sameShape,
  shapeToString,
  Tensor,
  TritonError,
  type TypedArray,
  tensorFromValue,
  typedArrayFor,
} from "@tritonjs/protocol";

/** Returns memory of a size in bytes, aligned for elements of any type. All of it will be written. */
export type Allocate = (byteSize: number) => Uint8Array<ArrayBuffer>;

/**
 * Joins tensors of one data type along their first axis in one new buffer.
 *
 * @param allocate gives the buffer, except for BYTES; by default it is new
 * @throws TritonError UNSUPPORTED when their other dimensions differ.
 */
export function concatRows(tensors: readonly Tensor[], allocate?: Allocate): Tensor {
  const first = tensors[0]!;
  let rows = 0;
  for (const tensor of tensors) {
    if (!sameShape(tensor.shape, first.shape, 1)) {
      throw new TritonError(
        "UNSUPPORTED",
        `cannot join tensors of shapes ${shapeToString(first.shape)} and ${shapeToString(tensor.shape)}`,
      );
    }
    rows += tensor.shape[0]!;
  }
  const shape = [rows, ...first.shape.slice(1)];
  if (first.datatype === "BYTES") return concatBytes(tensors, shape);
  if (tensors.every(({ hasElements }) => hasElements))
    return concatElements(tensors, shape, first.datatype, allocate);
  const byteSize = elementCount(shape) * elementByteSize(first.datatype);
  const out = allocate?.(byteSize) ?? new Uint8Array(byteSize);
  return Tensor.fromBytes(first.datatype, shape, copyBytes(tensors, out));
}

function copyBytes(tensors: readonly Tensor[], out: Uint8Array): Uint8Array {
  let offset = 0;
  for (const { bytes } of tensors) {
    out.set(bytes, offset);
    offset += bytes.byteLength;
  }
  return out;
}

/** Copies elements: reading the bytes of a small typed array costs more, because its buffer must be made first. */
function concatElements(
  tensors: readonly Tensor[],
  shape: readonly number[],
  datatype: Exclude<DataType, "BYTES">,
  allocate: Allocate | undefined,
): Tensor {
  const count = elementCount(shape);
  const Elements = typedArrayFor(datatype);
  const memory = allocate?.(count * elementByteSize(datatype));
  const out = (
    memory === undefined ? new Elements(count) : new Elements(memory.buffer, memory.byteOffset, count)
  ) as Float32Array;
  let offset = 0;
  for (const tensor of tensors) {
    const elements = tensor.elements as TypedArray as Float32Array;
    out.set(elements, offset);
    offset += elements.length;
  }
  return Tensor.fromElements(datatype, shape, out);
}

function concatBytes(tensors: readonly Tensor[], shape: readonly number[]): Tensor {
  if (tensors.some((tensor) => tensor.hasElements)) {
    const elements = tensors.flatMap((tensor) => tensor.elements as Uint8Array[]);
    return Tensor.fromElements("BYTES", shape, elements);
  }
  const total = tensors.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
  return Tensor.fromBytes("BYTES", shape, copyBytes(tensors, new Uint8Array(total)));
}

/** Joins the elements of tensors of one data type in a tensor of one dimension. Their shapes may differ. */
export function concatFlat(tensors: readonly Tensor[]): Tensor {
  const flat = tensors.map((tensor) => tensor.reshaped([elementCount(tensor.shape)]));
  return flat.length === 1 ? flat[0]! : concatRows(flat);
}

/** Rows `[start, start + rows)` of a tensor's first axis, as a view. */
export function sliceRows(tensor: Tensor, start: number, rows: number): Tensor {
  return new RowSlices(tensor, start).next(rows);
}

/** Cuts a tensor along its first axis into consecutive views. */
export class RowSlices {
  readonly #tensor: Tensor;
  readonly #rowShape: Shape;
  readonly #perRow: number;
  #row: number;
  /** Shape of the previous slice, which the next one shares if it has as many rows. */
  #shape: Shape = [];

  constructor(tensor: Tensor, start = 0) {
    this.#tensor = tensor;
    this.#rowShape = tensor.shape.slice(1);
    this.#perRow = elementCount(this.#rowShape);
    this.#row = start;
  }

  /** Returns the next `rows` rows. */
  next(rows: number): Tensor {
    const tensor = this.#tensor;
    const start = this.#row;
    this.#row += rows;
    if (start === 0 && rows === tensor.shape[0]) return tensor;
    const { datatype, elements } = tensor;
    const from = start * this.#perRow;
    const count = rows * this.#perRow;
    if (this.#shape[0] !== rows) this.#shape = [rows, ...this.#rowShape];
    return datatype === "BYTES"
      ? Tensor.fromElements(datatype, this.#shape, (elements as Uint8Array[]).slice(from, from + count))
      : Tensor.fromPart(datatype, this.#shape, elements as TypedArray, from, count);
  }
}

/** Copies a tensor to memory of its own. `shape`, if given, must have as many elements. */
export function copyTensor(tensor: Tensor, shape: Shape = tensor.shape): Tensor {
  const { datatype } = tensor;
  return datatype === "BYTES"
    ? Tensor.fromBytes(datatype, shape, encodeBytes(tensor.elements as Uint8Array[]))
    : Tensor.fromElements(datatype, shape, tensor.copyElements());
}

/** Makes a tensor of `rows` copies of the same row. Without `rows` it copies the tensor itself. */
export function repeatRows(row: Tensor, rows: number | undefined): Tensor {
  if (rows === undefined) return copyTensor(row);
  const { datatype, elements } = row;
  const shape = [rows, ...row.shape];
  if (Array.isArray(elements)) {
    return Tensor.fromElements(datatype, shape, Array.from({ length: rows }, () => elements).flat());
  }
  const repeated = new (elements.constructor as Float32ArrayConstructor)(rows * elements.length);
  for (let i = 0; i < rows; i++) repeated.set(elements as Float32Array, i * elements.length);
  return Tensor.fromElements(datatype, shape, repeated);
}

/** Converts a scalar to an element of a data type. Throws INVALID_ARG for a scalar that does not fit. */
export function elementOf(value: unknown, datatype: DataType, what: string): number | bigint | Uint8Array {
  return tensorFromValue([value], { what, datatype, shape: [1] }).elements[0]!;
}

/** Makes a tensor whose elements are all equal. */
export function filled(datatype: DataType, shape: Shape, element: number | bigint | Uint8Array): Tensor {
  return Tensor.fromElements(datatype, shape, elementsOf(datatype, elementCount(shape), element));
}

/** Joins tensors along their first axis, after each is filled up to the largest size of every other axis. */
export function padRows(tensors: readonly Tensor[], element: number | bigint | Uint8Array): Tensor {
  const { datatype } = tensors[0]!;
  const rows = tensors.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const shape = [rows, ...largest(tensors.map((tensor) => tensor.shape.slice(1)))];
  const elements = elementsOf(datatype, elementCount(shape), element);
  const perRow = elementCount(shape.slice(1));
  let row = 0;
  for (const tensor of tensors) {
    copyBox(
      { elements: tensor.elements, shape: tensor.shape, offset: 0 },
      { elements, shape, offset: row * perRow },
      tensor.shape,
    );
    row += tensor.shape[0]!;
  }
  return Tensor.fromElements(datatype, shape, elements);
}

/** Copies the beginning of each axis of a tensor. No axis of `shape` may be longer than the tensor's. */
export function cutTo(tensor: Tensor, shape: Shape): Tensor {
  const elements = elementsOf(tensor.datatype, elementCount(shape));
  copyBox(
    { elements: tensor.elements, shape: tensor.shape, offset: 0 },
    { elements, shape, offset: 0 },
    shape,
  );
  return Tensor.fromElements(tensor.datatype, shape, elements);
}

function largest(shapes: readonly Shape[]): number[] {
  return shapes[0]!.map((_, axis) => Math.max(...shapes.map((shape) => shape[axis]!)));
}

function elementsOf(datatype: DataType, count: number, element?: number | bigint | Uint8Array): Elements {
  if (datatype === "BYTES") {
    return new Array<Uint8Array>(count).fill((element as Uint8Array | undefined) ?? new Uint8Array());
  }
  const elements = new (typedArrayFor(datatype))(count) as Float32Array;
  if (element !== undefined && element !== 0 && element !== 0n) elements.fill(element as number);
  return elements;
}

/** Row-major elements with a shape, starting at an offset. */
interface ElementGrid {
  readonly elements: Elements;
  readonly shape: Shape;
  /** Index of the first element. */
  readonly offset: number;
}

/** Copies the box `[0, box[0]) x [0, box[1]) x ...` from one grid into another of the same rank and kind. */
function copyBox(from: ElementGrid, to: ElementGrid, box: Shape): void {
  if (box.includes(0)) return;
  copyAxis(from, to, box, 0, from.offset, to.offset, strides(from.shape), strides(to.shape));
}

function copyAxis(
  from: ElementGrid,
  to: ElementGrid,
  box: Shape,
  axis: number,
  fromAt: number,
  toAt: number,
  fromStrides: readonly number[],
  toStrides: readonly number[],
): void {
  if (axis >= box.length - 1) {
    copyRun(from.elements, fromAt, to.elements, toAt, box.at(-1) ?? 1);
    return;
  }
  for (let i = 0; i < box[axis]!; i++) {
    const nextFrom = fromAt + i * fromStrides[axis]!;
    const nextTo = toAt + i * toStrides[axis]!;
    copyAxis(from, to, box, axis + 1, nextFrom, nextTo, fromStrides, toStrides);
  }
}

function copyRun(from: Elements, fromAt: number, to: Elements, toAt: number, count: number): void {
  if (Array.isArray(from) || Array.isArray(to)) {
    for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i]!;
    return;
  }
  (to as Float32Array).set((from as Float32Array).subarray(fromAt, fromAt + count), toAt);
}

function strides(shape: Shape): number[] {
  const steps = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--) steps[axis] = steps[axis + 1]! * shape[axis + 1]!;
  return steps;
}

/**
 * Makes a function that gives a tensor the dimensions `to` in place of `from`. Variable dimensions keep their sizes, in
 * order. A tensor with dimensions other than `from` is returned unchanged.
 *
 * @param batched whether tensors have a batch axis before those dimensions
 */
export function reshapeRule(
  from: readonly number[],
  to: readonly number[],
  batched: boolean,
): (tensor: Tensor) => Tensor {
  const start = batched ? 1 : 0;
  return (tensor) => {
    const { shape } = tensor;
    if (shape.length !== start + from.length) return tensor;
    const sizes: number[] = [];
    for (const [axis, dim] of from.entries()) {
      const size = shape[start + axis]!;
      if (dim === -1) sizes.push(size);
      else if (dim !== size) return tensor;
    }
    let variable = 0;
    const dims = to.map((dim) => (dim === -1 ? sizes[variable++]! : dim));
    return tensor.reshaped(batched ? [shape[0]!, ...dims] : dims);
  };
}
