import { DATA_TYPES, type DataType, elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";
import { SHARED_BYTES, type TensorMemory } from "./tensor-memory.js";

/*
 * Frames to and from the process of a Python model.
 *
 *     magic u32 | size of the header u32 | size of the body u48 | place u16 | header (JSON) | body (the bytes of tensors)
 *
 * The body follows the header if the place is 0. Otherwise it is in that place of the memory that both processes share.
 * The header gives the place of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
 */

const MAGIC = 0x4a535450;
const START_BYTES = 16;
const ALIGNMENT = 64;
/** Smaller bodies are copied behind their header, so that the frame is one piece. */
const JOINED_BYTES = 16 * 1024;
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

/** A frame, as the pieces to write. A large body goes to a place of `memory`, if there is one. */
export function pythonFrame(
  header: object,
  { pieces, size }: FrameBody = new FrameBody(),
  memory?: TensorMemory,
): readonly Uint8Array[] {
  const text = JSON.stringify(header);
  const textBytes = Buffer.byteLength(text);
  const place = size < SHARED_BYTES ? 0 : (memory?.write(pieces, size) ?? 0);
  const joined = size <= JOINED_BYTES;
  const start = Buffer.allocUnsafe(START_BYTES + textBytes + (joined ? size : 0));
  start.writeUInt32LE(MAGIC, 0);
  start.writeUInt32LE(textBytes, 4);
  start.writeUIntLE(size, 8, 6);
  start.writeUInt16LE(place, 14);
  start.write(text, START_BYTES);
  if (place > 0) return [start];
  if (!joined) return [start, ...pieces];
  let at = START_BYTES + textBytes;
  for (const piece of pieces) {
    start.set(piece, at);
    at += piece.byteLength;
  }
  return [start];
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
  /** Set when both processes share memory. */
  memory: TensorMemory | undefined;
  #start = Buffer.alloc(START_BYTES);
  #header: Buffer | undefined;
  #body: Buffer | undefined;
  #bodySize = 0;
  #place = 0;
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
      const size = this.#start.readUInt32LE(4);
      if (this.#start.readUInt32LE(0) !== MAGIC || size === 0 || size > MOST_HEADER_BYTES) {
        throw new Error("the message is not a valid frame");
      }
      this.#header = Buffer.allocUnsafe(size);
      this.#bodySize = this.#start.readUIntLE(8, 6);
      this.#place = this.#start.readUInt16LE(14);
    } else if (this.#body === undefined && this.#bodySize > 0 && this.#place === 0) {
      this.#body = Buffer.allocUnsafeSlow(this.#bodySize);
    } else {
      const text = this.#header.toString("utf8");
      const body = this.#place === 0 ? (this.#body ?? NO_BYTES) : this.#read(this.#place);
      this.#header = undefined;
      this.#body = undefined;
      this.onFrame(JSON.parse(text), body);
    }
  }

  #read(place: number): Uint8Array {
    if (this.memory === undefined) throw new Error("the message is in memory that is not shared");
    return this.memory.read(place, this.#bodySize);
  }
}

const NO_BYTES = new Uint8Array(0);
