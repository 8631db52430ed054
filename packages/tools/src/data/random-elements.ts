import {
  type DataType,
  elementByteSize,
  float32ToBfloat16,
  float32ToFloat16,
  typedArrayFor,
} from "@tritonjs/protocol";
import type { Random } from "./random.js";

/** perf_analyzer's characters. */
const CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .?!";

/**
 * Limit of random whole numbers, so that they are valid where a model looks them up, such as ids of tokens. Pixels
 * (UINT8) take all values.
 */
const INTEGER_LIMIT = 128;

/** The bytes of random elements: floats in [0, 1), whole numbers from 0 to 127 (UINT8 to 255), or characters. */
export function randomElements(datatype: DataType, count: number, random: Random): Uint8Array {
  if (datatype === "BYTES") return randomCharacters(count, random);
  if (datatype === "FP16" || datatype === "BF16") {
    const floats = Float32Array.from({ length: count }, () => random.uniform());
    return bytesOf(datatype === "FP16" ? float32ToFloat16(floats) : float32ToBfloat16(floats));
  }
  const elements = new (typedArrayFor(datatype))(count);
  const next = nextElement(datatype, random);
  const out: { [index: number]: number | bigint } = elements;
  for (let i = 0; i < count; i++) out[i] = next();
  return bytesOf(elements);
}

/** Size of the unit that may be replaced alone: an element, or a character of a string. */
export const unitByteSize = (datatype: DataType): number =>
  datatype === "BYTES" ? 1 : elementByteSize(datatype);

function nextElement(datatype: DataType, random: Random): () => number | bigint {
  switch (datatype) {
    case "FP32":
    case "FP64":
      return () => random.uniform();
    case "BOOL":
      return () => random.below(2);
    case "UINT8":
      return () => random.below(256);
    case "INT64":
    case "UINT64":
      return () => BigInt(random.below(INTEGER_LIMIT));
    default:
      return () => random.below(INTEGER_LIMIT);
  }
}

function randomCharacters(count: number, random: Random): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i++) bytes[i] = CHARACTERS.charCodeAt(random.below(CHARACTERS.length));
  return bytes;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
