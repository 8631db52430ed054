import { DATA_TYPES, type DataType, elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";

/*
 * Frames to and from the process of a Python model.
 *
 *     magic u32 | size of the header u32 | size of the body u64 | header (JSON) | body (the bytes of tensors)
 *
 * The header gives the place of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
 */

const MAGIC = 0x4a535450;
const START_BYTES = 16;
const ALIGNMENT = 64;
/** Largest header of a valid frame. */
const MOST_HEADER_BYTES = 256 * 1024 * 1024;

/** The header's entry for a tensor. */
export interface PythonTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly size: number;
}

/** The body of a frame under construction: tensors one after another. */
export class FrameBody {
  readonly pieces: Uint8Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds bytes. @returns their place */
  add(bytes: Uint8Array): { offset: number; size: number } {
    const padding = -this.#size & (ALIGNMENT - 1);
    if (padding > 0) this.pieces.push(new Uint8Array(padding));
    const offset = this.#size + padding;
    if (bytes.byteLength > 0) this.pieces.push(bytes);
    this.#size = offset + bytes.byteLength;
    return { offset, size: bytes.byteLength };
  }

  /** Adds tensors. @returns their entries for the header */
  addTensors(tensors: ReadonlyMap<string, Tensor>): PythonTensor[] {
    return [...tensors].map(([name, { datatype, shape, bytes }]) => ({
      name,
      datatype,
      shape,
      ...this.add(bytes),
    }));
  }
}

/** A frame, as the pieces to write. */
export function pythonFrame(header: object, body: FrameBody = new FrameBody()): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header));
  const start = Buffer.allocUnsafe(START_BYTES + text.byteLength);
  start.writeUInt32LE(MAGIC, 0);
  start.writeUInt32LE(text.byteLength, 4);
  start.writeBigUInt64LE(BigInt(body.size), 8);
  text.copy(start, START_BYTES);
  return [start, ...body.pieces];
}

/** Reads the tensors of a received frame. They are views of its body. @throws Error for an invalid tensor */
export function readTensors(tensors: readonly PythonTensor[], body: Uint8Array): Map<string, Tensor> {
  return new Map(
    tensors.map(({ name, datatype, shape, offset, size }) => {
      const whole = datatype === "BYTES" || elementByteSize(datatype) * elementCount(shape) === size;
      if (!DATA_TYPES.includes(datatype) || !whole || offset + size > body.byteLength) {
        throw new Error(`tensor '${name}' is not in its frame`);
      }
      return [name, Tensor.fromBytes(datatype, shape, body.subarray(offset, offset + size))];
    }),
  );
}

/** Assembles frames from received pieces. */
export class PythonFrameReader {
  #start = Buffer.alloc(START_BYTES);
  #header: Buffer | undefined;
  #body: Buffer | undefined;
  /** Bytes received of the current part. */
  #got = 0;

  constructor(private readonly onFrame: (header: unknown, body: Uint8Array) => void) {}

  /** @throws Error for bytes that are not a frame */
  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.byteLength > 0) {
      const part = this.#body ?? this.#header ?? this.#start;
      const count = Math.min(part.byteLength - this.#got, rest.byteLength);
      rest.copy(part, this.#got, 0, count);
      rest = rest.subarray(count);
      this.#got += count;
      if (this.#got === part.byteLength) this.#next();
    }
  }

  /** Continues after the current part is complete. */
  #next(): void {
    this.#got = 0;
    if (this.#header === undefined) {
      const [size, bodySize] = [this.#start.readUInt32LE(4), Number(this.#start.readBigUInt64LE(8))];
      if (this.#start.readUInt32LE(0) !== MAGIC || size === 0 || size > MOST_HEADER_BYTES) {
        throw new Error("the message is not a valid frame");
      }
      this.#header = Buffer.allocUnsafeSlow(size);
      this.#bodySize = bodySize;
    } else if (this.#body === undefined && this.#bodySize > 0) {
      this.#body = Buffer.allocUnsafeSlow(this.#bodySize);
    } else {
      const [header, body] = [this.#header, this.#body ?? Buffer.alloc(0)];
      this.#header = undefined;
      this.#body = undefined;
      this.onFrame(JSON.parse(header.toString("utf8")), body);
    }
  }

  #bodySize = 0;
}
