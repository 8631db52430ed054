import {
  type DataType,
  type Elements,
  elementCount,
  type Shape,
  Tensor,
  tensorFromValue,
  typedArrayFor,
} from "@tritonjs/protocol";
import { copyBox } from "./copy-box.js";

/** Converts a scalar to an element of a data type. Throws INVALID_ARG for a scalar that does not fit. */
export function elementOf(value: unknown, datatype: DataType, what: string): number | bigint | Uint8Array {
  return tensorFromValue([value], { what, datatype, shape: [1] }).elements[0]!;
}

/** Makes a tensor whose elements are all equal. */
export function filled(datatype: DataType, shape: Shape, element: number | bigint | Uint8Array): Tensor {
  return Tensor.fromElements(datatype, shape, elementsOf(datatype, elementCount(shape), element));
}

/**
 * Joins tensors along their first axis. First it fills each up, at the end of every other axis, to the size of the
 * largest.
 */
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
