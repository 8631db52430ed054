/** Data types of packed protobuf fields, with protobuf's names. */
export type PackedType = "bool" | "int32" | "uint32" | "int64" | "uint64" | "float" | "double";

/** Values of a packed field; booleans as 0 and 1. */
export type PackedValues =
  | Uint8Array
  | Int32Array
  | Uint32Array
  | BigInt64Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | Float32Array
  | Float64Array;

/**
 * Decodes the bytes of a packed field. A list of JavaScript values would take 8 to 24 bytes for a value that takes one
 * byte in the message.
 *
 * @throws Error for bytes that are not values of this type.
 */
export function unpackValues(type: PackedType, bytes: Uint8Array): PackedValues {
  switch (type) {
    case "float":
      return new Float32Array(wholeNumbers(bytes, 4));
    case "double":
      return new Float64Array(wholeNumbers(bytes, 8));
    case "bool": {
      const values = new Uint8Array(countVarints(bytes));
      readVarints(bytes, (index, low, high) => {
        values[index] = (low | high) === 0 ? 0 : 1;
      });
      return values;
    }
    case "int32":
    case "uint32": {
      const values = new Uint32Array(countVarints(bytes));
      readVarints(bytes, (index, low) => {
        values[index] = low;
      });
      return type === "int32" ? new Int32Array(values.buffer) : values;
    }
    case "int64":
    case "uint64": {
      const halves = new Uint32Array(2 * countVarints(bytes));
      readVarints(bytes, (index, low, high) => {
        halves[2 * index] = low;
        halves[2 * index + 1] = high;
      });
      return type === "int64" ? new BigInt64Array(halves.buffer) : new BigUint64Array(halves.buffer);
    }
  }
}

/** Copies numbers of a fixed size into memory of their own, which is aligned for them. */
function wholeNumbers(bytes: Uint8Array, size: number): ArrayBuffer {
  if (bytes.length % size !== 0) {
    throw new RangeError(`packed field: expected a multiple of ${size} bytes, got ${bytes.length}`);
  }
  return Uint8Array.from(bytes).buffer;
}

/** Counts varints: each ends with the only byte that is less than 128. */
function countVarints(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte < 0x80) count++;
  return count;
}

/** Passes on the low and the high 32 bits of each varint. */
function readVarints(bytes: Uint8Array, store: (index: number, low: number, high: number) => void): void {
  let at = 0;
  for (let index = 0; at < bytes.length; index++) {
    let byte = bytes[at++]!;
    let low = byte & 0x7f;
    let high = 0;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 63 || at === bytes.length) throw new RangeError("packed field: invalid varint");
      byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 28) high |= bits << (shift - 32);
      else if (shift === 28) high = bits >> 4;
    }
    store(index, low, high);
  }
}
