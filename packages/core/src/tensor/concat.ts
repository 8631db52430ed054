import {
  type DataType,
  elementByteSize,
  elementCount,
  sameShape,
  shapeToString,
  Tensor,
  TritonError,
  type TypedArray,
  typedArrayFor,
} from "@tritonjs/protocol";

/** Returns memory of at least `byteSize` bytes for a joined tensor. */
export type JoinMemory = (byteSize: number) => ArrayBuffer;

/**
 * Joins tensors of one data type along their first axis in one new buffer.
 *
 * @param memory the buffer to use instead of a new one; not used for `BYTES`
 * @throws TritonError UNSUPPORTED when their other dimensions differ.
 */
export function concatRows(tensors: readonly Tensor[], memory?: JoinMemory): Tensor {
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
  if (tensors.every(({ hasElements }) => hasElements)) {
    return concatElements(tensors, shape, first.datatype, memory);
  }
  const byteSize = elementCount(shape) * elementByteSize(first.datatype);
  const out = memory === undefined ? new Uint8Array(byteSize) : new Uint8Array(memory(byteSize), 0, byteSize);
  let offset = 0;
  for (const tensor of tensors) {
    out.set(tensor.bytes, offset);
    offset += tensor.bytes.byteLength;
  }
  return Tensor.fromBytes(first.datatype, shape, out);
}

/**
 * Copies elements rather than bytes. Reading the bytes of a small typed array costs more than copying it, because its
 * buffer must be made first.
 */
function concatElements(
  tensors: readonly Tensor[],
  shape: readonly number[],
  datatype: Exclude<DataType, "BYTES">,
  memory: JoinMemory | undefined,
): Tensor {
  const count = elementCount(shape);
  const Elements = typedArrayFor(datatype);
  const out = (
    memory === undefined
      ? new Elements(count)
      : new Elements(memory(count * Elements.BYTES_PER_ELEMENT), 0, count)
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
    return Tensor.fromElements(
      "BYTES",
      shape,
      (tensors as readonly Tensor[]).flatMap((t) => t.elements as Uint8Array[]),
    );
  }
  let total = 0;
  for (const tensor of tensors) total += tensor.bytes.byteLength;
  const out = new Uint8Array(total);
  let offset = 0;
  for (const tensor of tensors) {
    out.set(tensor.bytes, offset);
    offset += tensor.bytes.byteLength;
  }
  return Tensor.fromBytes("BYTES", shape, out);
}
