import type { DataType } from "@tritonjs/core";
import type { Element, NamedTensor } from "../clients/client.js";

/** ONNX's numbers of data types, with the fields of `TensorProto` that hold their elements. */
const TYPES: Readonly<Record<number, readonly [datatype: DataType, bytes: number, field: number]>> = {
  1: ["FP32", 4, 4],
  2: ["UINT8", 1, 5],
  3: ["INT8", 1, 5],
  4: ["UINT16", 2, 5],
  5: ["INT16", 2, 5],
  6: ["INT32", 4, 5],
  7: ["INT64", 8, 7],
  8: ["BYTES", 0, 6],
  9: ["BOOL", 1, 5],
  10: ["FP16", 2, 5],
  11: ["FP64", 8, 10],
  12: ["UINT32", 4, 11],
  13: ["UINT64", 8, 11],
};

const RAW_DATA = 9;

type Field = readonly [number: number, value: number | bigint | Uint8Array];

/**
 * Reads a file `input_0.pb` of ONNX's conformance data.
 *
 * @returns undefined for a type that the v2 protocol lacks, and for a file that has not one tensor
 */
export function readTensorProto(bytes: Uint8Array): NamedTensor | undefined {
  const fields = [...fieldsOf(bytes)];
  const numberOf = (number: number) => Number(fields.find(([one]) => one === number)?.[1] ?? 0);
  const type = TYPES[numberOf(2)];
  if (type === undefined) return undefined;
  const [datatype, size, field] = type;
  const shape = packed(fields, 1).map(Number);
  const name = fields.find(([one]) => one === 8)?.[1];
  const raw = fields.find(([one]) => one === RAW_DATA)?.[1] as Uint8Array | undefined;
  const elements =
    datatype === "BYTES"
      ? fields.filter(([one]) => one === field).map(([, value]) => value as Uint8Array)
      : raw === undefined
        ? numbers(fields, field, datatype, size)
        : rawElements(raw, datatype, size);
  if (elements.length !== shape.reduce((product, one) => product * one, 1)) return undefined;
  return {
    name: name === undefined ? "" : Buffer.from(name as Uint8Array).toString(),
    datatype,
    shape,
    elements,
  };
}

function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = view.getUint8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
  };
  while (at < bytes.byteLength) {
    const tag = Number(varint());
    const number = tag >> 3;
    const wireType = tag & 7;
    if (wireType === 0) {
      yield [number, varint()];
      continue;
    }
    const length = wireType === 2 ? Number(varint()) : wireType === 1 ? 8 : 4;
    yield [number, bytes.subarray(at, at + length)];
    at += length;
  }
}

/** A repeated number, each in a field of its own or all in one. */
function packed(fields: readonly Field[], number: number): bigint[] {
  return fields
    .filter(([one]) => one === number)
    .flatMap(([, value]) => {
      if (!(value instanceof Uint8Array)) return [BigInt(value)];
      const numbers: bigint[] = [];
      let current = 0n;
      let shift = 0n;
      for (const byte of value) {
        current |= BigInt(byte & 0x7f) << shift;
        shift += 7n;
        if (byte >= 0x80) continue;
        numbers.push(BigInt.asIntN(64, current));
        current = 0n;
        shift = 0n;
      }
      return numbers;
    });
}

/** Elements in a field of numbers. */
function numbers(fields: readonly Field[], field: number, datatype: DataType, size: number): Element[] {
  if (datatype === "FP32" || datatype === "FP64") {
    const chunks = fields.filter(([one]) => one === field).map(([, value]) => value as Uint8Array);
    return rawElements(Buffer.concat(chunks), datatype, size);
  }
  const all = packed(fields, field);
  return datatype === "INT64" || datatype === "UINT64" ? all : all.map(Number);
}

function rawElements(raw: Uint8Array, datatype: DataType, size: number): Element[] {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const read: Readonly<Partial<Record<DataType, (at: number) => Element>>> = {
    FP32: (at) => view.getFloat32(at, true),
    FP64: (at) => view.getFloat64(at, true),
    FP16: (at) => view.getUint16(at, true),
    INT8: (at) => view.getInt8(at),
    UINT8: (at) => view.getUint8(at),
    BOOL: (at) => view.getUint8(at),
    INT16: (at) => view.getInt16(at, true),
    UINT16: (at) => view.getUint16(at, true),
    INT32: (at) => view.getInt32(at, true),
    UINT32: (at) => view.getUint32(at, true),
    INT64: (at) => view.getBigInt64(at, true),
    UINT64: (at) => view.getBigUint64(at, true),
  };
  return Array.from({ length: raw.byteLength / size }, (_, i) => read[datatype]!(i * size));
}
