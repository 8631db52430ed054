import { closeSync, openSync, readSync, writeSync, writevSync } from "node:fs";
import { DATA_TYPES, type DataType, elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";

import type { GpuPlace, PythonGpuMemory } from "./gpu-memory.js";

/*
 * Frames to and from the process of a Python model.
 *
 *     magic u32 | size of the header u32 | size of the body u48 | place u16 | header (JSON) | body (the bytes of tensors)
 *
 * The body follows the header if the place is 0. Otherwise it is in that place of the memory that both processes share.
 * The header gives the place of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
 */

const MAGIC = 0x4a535450;
const FRAME_START_BYTES = 16;
const ALIGNMENT = 64;
/** Smaller bodies are copied behind their header, so that the frame is one piece. */
const JOINED_BYTES = 16 * 1024;
const MOST_HEADER_BYTES = 256 * 1024 * 1024;

export interface PythonTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly size: number;
  /** Memory of a GPU that has the elements instead of the body; from the process only its number. */
  readonly gpu?: GpuPlace | number;
}

/** The body of a frame under construction: tensors one after another. */
export class FrameBody {
  readonly pieces: Uint8Array[] = [];
  size = 0;

  add(bytes: Uint8Array): { offset: number; size: number } {
    const padding = -this.size & (ALIGNMENT - 1);
    if (padding > 0) this.pieces.push(new Uint8Array(padding));
    const offset = this.size + padding;
    if (bytes.byteLength > 0) this.pieces.push(bytes);
    this.size = offset + bytes.byteLength;
    return { offset, size: bytes.byteLength };
  }

  /** @param gpu memory that the process shares, for tensors on a GPU */
  addTensors(tensors: ReadonlyMap<string, Tensor>, gpu?: PythonGpuMemory): PythonTensor[] {
    return [...tensors].map(([name, tensor]) => {
      const { datatype, shape } = tensor;
      const place = gpu?.lend(tensor);
      if (place !== undefined) return { name, datatype, shape, offset: 0, size: 0, gpu: place };
      return { name, datatype, shape, ...this.add(tensor.bytes) };
    });
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
  const start = Buffer.allocUnsafe(FRAME_START_BYTES + textBytes + (joined ? size : 0));
  start.writeUInt32LE(MAGIC, 0);
  start.writeUInt32LE(textBytes, 4);
  start.writeUIntLE(size, 8, 6);
  start.writeUInt16LE(place, 14);
  start.write(text, FRAME_START_BYTES);
  if (place > 0) return [start];
  if (!joined) return [start, ...pieces];
  let at = FRAME_START_BYTES + textBytes;
  for (const piece of pieces) {
    start.set(piece, at);
    at += piece.byteLength;
  }
  return [start];
}

/**
 * Reads the tensors of a received frame. They are views of its body, or lie on a GPU.
 *
 * @param stays whether a tensor may stay on a GPU
 * @throws Error for an invalid tensor
 */
export function readTensors(
  tensors: readonly PythonTensor[],
  body: Uint8Array,
  gpu?: PythonGpuMemory,
  stays: (name: string) => boolean = () => false,
): Map<string, Tensor> {
  return new Map(
    tensors.map(({ name, datatype, shape, offset, size, gpu: place }) => {
      if (typeof place === "number" && gpu !== undefined && datatype !== "BYTES") {
        const byteSize = elementByteSize(datatype) * elementCount(shape);
        return [name, gpu.take(place, datatype, shape, byteSize, stays(name))];
      }
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
  #start = Buffer.alloc(FRAME_START_BYTES);
  #header: Buffer | undefined;
  #body: Buffer | undefined;
  #bodySize = 0;
  #place = 0;
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

/*
 * Memory that the process of a model shares with this one, for the tensors of large messages. It is made of two files
 * without a name, which the process has created, one for each direction. So it is gone when both processes are.
 *
 * A file has a counter (u32) for each of its places, then the places. The body of a message lies in one place. The
 * sender takes a place that the receiver has released as often as the sender has used it. Bytes are copied into a file
 * and out of it by the system, so this process maps nothing.
 */

/** The process has the same numbers (tensor_memory.py). */
const PLACES = 16;
const PLACE_BYTES = 32 * 1024 * 1024;
const FILE_START_BYTES = 4096;
const NONCE_AT = 2048;

/** Bodies from this size on go through memory: below, the bytes behind a header cost less than two more system calls. */
const SHARED_BYTES = 32 * 1024;

/** How the process describes its files. */
export interface MemoryDescription {
  readonly process: number;
  /** Its descriptors: of inputs, of outputs. */
  readonly files: readonly [number, number];
  /** Hexadecimal bytes that the files contain. */
  readonly nonce: string;
}

/** The memory that one process shares with this one. */
export class TensorMemory {
  /** How often each place for inputs was used, and each place for outputs was read. */
  readonly #uses = new Uint32Array(PLACES);
  readonly #reads = new Uint32Array(PLACES);
  /** How often the process has released each place for inputs, when that was last read. */
  readonly #releases = new Uint32Array(PLACES);

  private constructor(
    private readonly inputs: number,
    private readonly outputs: number,
  ) {}

  /** Opens the files of a process; undefined if this process cannot see them. */
  static open({ process, files, nonce }: MemoryDescription): TensorMemory | undefined {
    const opened: number[] = [];
    try {
      for (const file of files) {
        const descriptor = openSync(`/proc/${process}/fd/${file}`, "r+");
        opened.push(descriptor);
        const found = Buffer.alloc(nonce.length / 2);
        readSync(descriptor, found, 0, found.byteLength, NONCE_AT);
        if (found.toString("hex") !== nonce) throw new Error("another process has this number here");
      }
      return new TensorMemory(opened[0]!, opened[1]!);
    } catch {
      for (const descriptor of opened) closeSync(descriptor);
      return undefined;
    }
  }

  /** Copies a body to a free place. Returns the place, from 1; 0 if there is none, or no memory. */
  write(pieces: readonly Uint8Array[], size: number): number {
    if (size > PLACE_BYTES) return 0;
    const place = this.#freePlace();
    if (place === undefined) return 0;
    try {
      writeAll(this.inputs, pieces, FILE_START_BYTES + place * PLACE_BYTES);
    } catch {
      return 0;
    }
    this.#uses[place]!++;
    return place + 1;
  }

  /** Copies a body from its place. The process may then use the place again. @throws Error if there is no such place */
  read(place: number, size: number): Uint8Array {
    if (place > PLACES || size > PLACE_BYTES) throw new Error("the message has no place in memory");
    const body = Buffer.allocUnsafeSlow(size);
    const first = FILE_START_BYTES + (place - 1) * PLACE_BYTES;
    for (let done = 0; done < size; ) {
      const count = readSync(this.outputs, body, done, size - done, first + done);
      if (count === 0) throw new Error("the file with the message is too short");
      done += count;
    }
    this.#reads[place - 1]!++;
    writeSync(this.outputs, this.#reads, 4 * (place - 1), 4, 4 * (place - 1));
    return body;
  }

  close(): void {
    closeSync(this.inputs);
    closeSync(this.outputs);
  }

  /** The first place that the process does not use, because its pages are most likely in use already. */
  #freePlace(): number | undefined {
    readSync(this.inputs, this.#releases, 0, 4 * PLACES, 0);
    const free = this.#uses.findIndex((uses, place) => uses === this.#releases[place]);
    return free < 0 ? undefined : free;
  }
}

/** The system writes at most this many pieces, and 2 GiB, in one call. */
const MOST_PIECES = 1024;

function writeAll(descriptor: number, pieces: readonly Uint8Array[], position: number): void {
  let at = position;
  for (let first = 0; first < pieces.length; first += MOST_PIECES) {
    const some = pieces.slice(first, first + MOST_PIECES);
    const size = some.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (writevSync(descriptor, some, at) < size) throw new Error("there is no more memory");
    at += size;
  }
}
