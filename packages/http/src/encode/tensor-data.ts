import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { ByteWriter } from "../json/byte-writer.js";

type Elements = Tensor["elements"];

/** Numbers in one joined string: strings that grow with the tensor are slow to flatten. */
const SLICE = 4096;

/**
 * Writes the elements of a tensor as a flat JSON array. FP32 elements are printed as doubles.
 *
 * @param bare leaves the brackets out, for a single element
 * @throws TritonError INVALID_ARG for FP16 and BF16, which have no JSON form.
 */
export function writeTensorData(writer: ByteWriter, tensor: Tensor, bare = false): void {
  const { datatype, elements } = tensor;
  if (datatype === "FP16" || datatype === "BF16") {
    throw new TritonError(
      "INVALID_ARG",
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
      { reason: "INVALID_REQUESTED_OUTPUT" },
    );
  }
  if (!bare) writer.ascii("[");
  if (Array.isArray(elements)) writeStrings(writer, elements);
  else if (elements instanceof Float32Array || elements instanceof Float64Array) writer.doubles(elements);
  else if (datatype === "BOOL") writeMapped(writer, elements, (value) => (value ? "true" : "false"));
  else writeMapped(writer, elements, String);
  if (!bare) writer.ascii("]");
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
