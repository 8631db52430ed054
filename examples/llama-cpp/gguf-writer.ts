/** A value of the metadata of a GGUF file: the number of its type, and the value. */
type Metadata =
  | { readonly type: "uint32" | "float32"; readonly value: number }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: readonly string[] }
  | { readonly type: "float32s" | "int32s"; readonly value: readonly number[] };

/** A tensor of a GGUF file. The first dimension is the one whose elements lie side by side. */
export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

const TYPES = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 } as const;
const ALIGNMENT = 32;

/** Writes a file in the format of llama.cpp (GGUF, version 3) with tensors of FP32. */
export function writeGguf(
  metadata: Readonly<Record<string, Metadata>>,
  tensors: readonly GgufTensor[],
): Buffer {
  const parts = new Parts();
  parts.bytes(Buffer.from("GGUF"));
  parts.uint32(3);
  parts.uint64(tensors.length);
  parts.uint64(Object.keys(metadata).length);
  for (const [key, { type, value }] of Object.entries(metadata)) {
    parts.string(key);
    if (typeof value !== "object") {
      parts.uint32(TYPES[type as "uint32" | "float32" | "string"]);
      parts.element(type, value);
      continue;
    }
    const element = type.slice(0, -1) as "string" | "float32" | "int32";
    parts.uint32(TYPES.array);
    parts.uint32(TYPES[element]);
    parts.uint64(value.length);
    for (const one of value) parts.element(element, one);
  }
  let offset = 0;
  for (const { name, shape, data } of tensors) {
    parts.string(name);
    parts.uint32(shape.length);
    for (const dimension of shape) parts.uint64(dimension);
    parts.uint32(0); // FP32
    parts.uint64(offset);
    offset += aligned(data.byteLength);
  }
  parts.align();
  for (const { data } of tensors) {
    parts.bytes(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    parts.align();
  }
  return parts.joined();
}

function aligned(size: number): number {
  return Math.ceil(size / ALIGNMENT) * ALIGNMENT;
}

/** Collects the parts of a file, with all numbers in little-endian order. */
class Parts {
  readonly #parts: Buffer[] = [];
  #size = 0;

  bytes(part: Buffer): void {
    this.#parts.push(part);
    this.#size += part.length;
  }

  uint32(value: number): void {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(value);
    this.bytes(part);
  }

  uint64(value: number): void {
    const part = Buffer.alloc(8);
    part.writeBigUInt64LE(BigInt(value));
    this.bytes(part);
  }

  string(text: string): void {
    const part = Buffer.from(text);
    this.uint64(part.length);
    this.bytes(part);
  }

  element(type: string, value: string | number): void {
    if (typeof value === "string") this.string(value);
    else if (type === "float32") this.bytes(Buffer.from(Float32Array.of(value).buffer));
    else this.bytes(Buffer.from(Int32Array.of(value).buffer));
  }

  align(): void {
    this.bytes(Buffer.alloc(aligned(this.#size) - this.#size));
  }

  joined(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
