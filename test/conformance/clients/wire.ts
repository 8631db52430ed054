import type { DataType } from "@tritonjs/core";
import type { Element } from "./client.js";

/* Tensors in the binary form of the protocol, written again here so that the library is not compared with itself. */

interface FixedCodec {
  readonly size: number;
  write(view: DataView, at: number, element: number | bigint): void;
  read(view: DataView, at: number): number | bigint;
}

const sixteenBits: FixedCodec = {
  size: 2,
  write: (view, at, element) => view.setUint16(at, Number(element), true),
  read: (view, at) => view.getUint16(at, true),
};

const oneByte: FixedCodec = {
  size: 1,
  write: (view, at, element) => view.setUint8(at, Number(element)),
  read: (view, at) => view.getUint8(at),
};

const codecs: Record<Exclude<DataType, "BYTES">, FixedCodec> = {
  BOOL: oneByte,
  UINT8: oneByte,
  UINT16: sixteenBits,
  UINT32: {
    size: 4,
    write: (view, at, element) => view.setUint32(at, Number(element), true),
    read: (view, at) => view.getUint32(at, true),
  },
  UINT64: {
    size: 8,
    write: (view, at, element) => view.setBigUint64(at, BigInt(element), true),
    read: (view, at) => view.getBigUint64(at, true),
  },
  INT8: {
    size: 1,
    write: (view, at, element) => view.setInt8(at, Number(element)),
    read: (view, at) => view.getInt8(at),
  },
  INT16: {
    size: 2,
    write: (view, at, element) => view.setInt16(at, Number(element), true),
    read: (view, at) => view.getInt16(at, true),
  },
  INT32: {
    size: 4,
    write: (view, at, element) => view.setInt32(at, Number(element), true),
    read: (view, at) => view.getInt32(at, true),
  },
  INT64: {
    size: 8,
    write: (view, at, element) => view.setBigInt64(at, BigInt(element), true),
    read: (view, at) => view.getBigInt64(at, true),
  },
  FP16: sixteenBits,
  BF16: sixteenBits,
  FP32: {
    size: 4,
    write: (view, at, element) => view.setFloat32(at, Number(element), true),
    read: (view, at) => view.getFloat32(at, true),
  },
  FP64: {
    size: 8,
    write: (view, at, element) => view.setFloat64(at, Number(element), true),
    read: (view, at) => view.getFloat64(at, true),
  },
};

/** Writes elements one after the other. */
export function toWire(datatype: DataType, elements: readonly Element[]): Buffer {
  if (datatype === "BYTES") return Buffer.concat(elements.flatMap((one) => withLength(one as Uint8Array)));
  const codec = codecs[datatype];
  const bytes = Buffer.alloc(elements.length * codec.size);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const [i, element] of elements.entries())
    codec.write(view, i * codec.size, element as number | bigint);
  return bytes;
}

/** Reads the elements in `bytes`. */
export function fromWire(datatype: DataType, bytes: Uint8Array): Element[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Element[] = [];
  if (datatype === "BYTES") {
    for (let at = 0; at < bytes.byteLength; ) {
      const end = at + 4 + view.getUint32(at, true);
      elements.push(plainBytes(bytes.subarray(at + 4, end)));
      at = end;
    }
    return elements;
  }
  const codec = codecs[datatype];
  for (let at = 0; at < bytes.byteLength; at += codec.size) elements.push(codec.read(view, at));
  return elements;
}

/** The same bytes as a plain `Uint8Array`, so that a `Buffer` equals it. */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes);
}

function withLength(element: Uint8Array): Uint8Array[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(element.byteLength);
  return [length, element];
}
