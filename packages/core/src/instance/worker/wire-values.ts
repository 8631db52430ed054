import { types } from "node:util";
import { contiguousElements, type Elements, isNdArray, type TypedArray } from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

/*
 * Values of a program in messages between threads. An ndarray is sent as its elements and its shape, and recognised on
 * the other side. Nested arrays are cloned.
 */

/** Packs values by name for a message; `transfer` receives the buffers that may be transferred. */
export function packValues(
  values: Readonly<Record<string, unknown>>,
  transfer: ArrayBuffer[],
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, packValue(value, transfer)]),
  );
}

function packValue(value: unknown, transfer: ArrayBuffer[]): unknown {
  if (isNdArray(value)) {
    const data = packElements(contiguousElements(value), transfer);
    return { data, shape: [...value.shape], stride: rowMajor(value), offset: 0 };
  }
  return types.isTypedArray(value) ? packElements(value as TypedArray, transfer) : value;
}

/** Copies elements, so that no other data of the same buffer is sent, and the sender keeps its own. */
function packElements(elements: Elements, transfer: ArrayBuffer[]): Elements {
  if (Array.isArray(elements)) return elements.map((element) => new Uint8Array(element));
  const like = Buffer.isBuffer(elements) ? Uint8Array : elements.constructor;
  const copy = new (like as Uint8ArrayConstructor)(elements as Uint8Array);
  transfer.push(copy.buffer);
  return copy;
}

function rowMajor({ shape }: NdArray<Elements>): number[] {
  const stride = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--) stride[axis] = stride[axis + 1]! * shape[axis + 1]!;
  return stride;
}
