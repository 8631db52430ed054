import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { ByteWriter } from "../json/byte-writer.js";

type Elements = Tensor["elements"];

/** Numbers in one joined string: strings that grow with the tensor are slow to flatten. */
const SLICE = 4096;

/** Bytes of the length in front of a string in the wire form. */
const LENGTH_BYTES = 4;

/**
 * Writes the elements of a tensor as a flat JSON array. FP32 elements are printed as doubles.
 *
 * @param bare leaves the brackets out, for a single element
 * @throws TritonError INVALID_ARG for FP16 and BF16, which have no JSON form.
 */
export function writeTensorData(writer: ByteWriter, tensor: Tensor, bare = false): void {
  checkJsonForm(tensor);
  if (!bare) writer.ascii("[");
  writeElements(writer, tensor, tensor.elements);
  if (!bare) writer.ascii("]");
}

/** Elements from which a tensor takes a millisecond or more to write, and is written in turns of the event loop. */
const LONG_TENSOR_ELEMENTS = 16 * 1024;

/** True for a tensor that should be written with {@link tensorDataSteps}. */
export function isLongTensor(tensor: Tensor): boolean {
  return tensor.shape.reduce((count, dim) => count * dim, 1) >= LONG_TENSOR_ELEMENTS;
}

/** Writes a large tensor as {@link writeTensorData} does, with a pause after every few thousand elements. */
export function* tensorDataSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  checkJsonForm(tensor);
  writer.ascii("[");
  if (tensor.datatype === "BYTES" && !tensor.hasElements) yield* wireStringSteps(writer, tensor);
  else {
    const { elements } = tensor;
    for (let from = 0; from < elements.length; from += SLICE) {
      if (from > 0) writer.ascii(",");
      const to = from + SLICE;
      writeElements(
        writer,
        tensor,
        Array.isArray(elements) ? elements.slice(from, to) : elements.subarray(from, to),
      );
      yield;
    }
  }
  writer.ascii("]");
}

/** Writes strings from their wire form: an object for each would take more time and memory than the rest. */
function* wireStringSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  const { bytes } = tensor;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let count = 0; at < bytes.length; count++) {
    const from = at + LENGTH_BYTES;
    const end = from <= bytes.length ? from + view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    // Reports the fault.
    if (end > bytes.length) void tensor.elements;
    if (count > 0) writer.ascii(",");
    writer.stringBytes(bytes, from, end);
    at = end;
    if (count % SLICE === SLICE - 1) yield;
  }
}

function checkJsonForm({ datatype }: Tensor): void {
  if (datatype !== "FP16" && datatype !== "BF16") return;
  throw new TritonError(
    "INVALID_ARG",
    `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    { reason: "INVALID_REQUESTED_OUTPUT" },
  );
}

function writeElements(writer: ByteWriter, { datatype }: Tensor, elements: Elements): void {
  if (Array.isArray(elements)) writeStrings(writer, elements);
  else if (elements instanceof Float32Array || elements instanceof Float64Array) writer.doubles(elements);
  else if (datatype === "BOOL") writeMapped(writer, elements, (value) => (value ? "true" : "false"));
  else writeMapped(writer, elements, String);
}

function writeStrings(writer: ByteWriter, elements: readonly Uint8Array[]): void {
  elements.forEach((element, index) => {
    if (index > 0) writer.ascii(",");
    writer.stringBytes(element);
  });
}

function writeMapped(
  writer: ByteWriter,
  elements: Exclude<Elements, Uint8Array[]>,
  toText: (value: never) => string,
): void {
  const text = toText as (value: number | bigint) => string;
  for (let from = 0; from < elements.length; from += SLICE) {
    const to = Math.min(from + SLICE, elements.length);
    let joined = "";
    for (let i = from; i < to; i++) joined += i === 0 ? text(elements[i]!) : `,${text(elements[i]!)}`;
    writer.ascii(joined);
  }
}
