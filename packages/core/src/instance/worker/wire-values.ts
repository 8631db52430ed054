import { types } from "node:util";
import { contiguousElements, type Elements, isNdArray, type TypedArray } from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

/*
 * Values of a program on their way between threads. An ndarray travels as its elements and its shape, and is taken
 * for one on the other side; nested arrays are cloned.
 */

/** Values by name as they can be posted; `transfer` receives the buffers that go along. */
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

/** A copy, so that nothing else that lies in the same buffer goes along, and the sender keeps its own. */
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
