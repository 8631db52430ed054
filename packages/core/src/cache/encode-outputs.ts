import {
  type DataType,
  elementByteSize,
  elementCount,
  isDataType,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

import type { CachedOutputs } from "./response-cache.js";

/*
 * Binary format of outputs, for a cache outside of this process:
 *
 *   "TJC1" | length of the header, 4 bytes, little endian | header | bytes of each tensor, one after the other
 *
 * The header is JSON: [name, data type, shape, bytes] for each output.
 */

const MAGIC = Buffer.from("TJC1");
const START = MAGIC.length + 4;

type Entry = readonly [name: string, datatype: DataType, shape: readonly number[], byteLength: number];

/** Encodes outputs in one buffer. */
export function encodeOutputs(outputs: CachedOutputs): Buffer {
  const entries = [...outputs].map(
    ([name, { datatype, shape, bytes }]): Entry => [name, datatype, shape, bytes.byteLength],
  );
  const header = Buffer.from(JSON.stringify(entries));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.byteLength);
  return Buffer.concat([MAGIC, length, header, ...[...outputs.values()].map(({ bytes }) => bytes)]);
}

/**
 * Decodes the format of {@link encodeOutputs}; tensors are views of `bytes`.
 *
 * @throws TritonError INTERNAL for anything else.
 */
export function decodeOutputs(bytes: Buffer): CachedOutputs {
  const start = START + (bytes.byteLength >= START ? bytes.readUInt32LE(MAGIC.length) : 0);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC) || start > bytes.byteLength) throw unreadable();
  const outputs = new Map<string, Tensor>();
  let at = start;
  for (const [name, datatype, shape, byteLength] of readHeader(bytes.subarray(START, start))) {
    if (at + byteLength > bytes.byteLength) throw unreadable();
    outputs.set(name, Tensor.fromBytes(datatype, shape, bytes.subarray(at, at + byteLength)));
    at += byteLength;
  }
  if (at !== bytes.byteLength) throw unreadable();
  return outputs;
}

function readHeader(bytes: Buffer): readonly Entry[] {
  let header: unknown;
  try {
    header = JSON.parse(bytes.toString());
  } catch (error) {
    throw unreadable(error);
  }
  if (!Array.isArray(header) || !header.every(isEntry)) throw unreadable();
  return header;
}

function isEntry(entry: unknown): entry is Entry {
  if (!Array.isArray(entry)) return false;
  const [name, datatype, shape, byteLength] = entry as unknown[];
  if (typeof name !== "string" || typeof datatype !== "string" || !isDataType(datatype)) return false;
  if (!Array.isArray(shape) || !shape.every(isSize) || !isSize(byteLength)) return false;
  return datatype === "BYTES" || byteLength === elementCount(shape) * elementByteSize(datatype);
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function unreadable(cause?: unknown): TritonError {
  return new TritonError("INTERNAL", "cannot read an entry of the response cache", { cause });
}
