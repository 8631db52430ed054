import { TritonError } from "../errors/triton-error.js";

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
export function* decodeBytesSteps(raw: Uint8Array): Generator<void, Uint8Array[]> {
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
export interface BytesScan {
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
