import { closeSync, openSync, readSync, writeSync, writevSync } from "node:fs";
import { DATA_TYPES, type DataType, elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";

import type { GpuTensor, PythonGpuMemory } from "./gpu-memory.js";

/*
 * Frames to and from the process of a Python model.
 *
 *     magic u32 | size of the header u32 | size of the body u48 | slot u16 | header (JSON) | body (the bytes of tensors)
 *
 * The body follows the header if the slot is 0. Otherwise it is in that slot of the memory that both processes share.
 * The header gives the position of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
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
  readonly gpu?: GpuTensor | number;
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
      const lent = gpu?.lend(tensor);
      if (lent !== undefined) return { name, datatype, shape, offset: 0, size: 0, gpu: lent };
      return { name, datatype, shape, ...this.add(tensor.bytes) };
    });
  }
}

/** A frame, as the pieces to write. A large body goes to a slot of `memory`, if there is one. */
export function pythonFrame(
  header: object,
  { pieces, size }: FrameBody = new FrameBody(),
  memory?: TensorMemory,
): readonly Uint8Array[] {
  const text = JSON.stringify(header);
  const textBytes = Buffer.byteLength(text);
  const slot = size < SHARED_BYTES ? 0 : (memory?.write(pieces, size) ?? 0);
  const joined = size <= JOINED_BYTES;
  const start = Buffer.allocUnsafe(FRAME_START_BYTES + textBytes + (joined ? size : 0));
  start.writeUInt32LE(MAGIC, 0);
  start.writeUInt32LE(textBytes, 4);
  start.writeUIntLE(size, 8, 6);
  start.writeUInt16LE(slot, 14);
  start.write(text, FRAME_START_BYTES);
  if (slot > 0) return [start];
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
    tensors.map(({ name, datatype, shape, offset, size, gpu: lent }) => {
      if (typeof lent === "number" && gpu !== undefined && datatype !== "BYTES") {
        const byteSize = elementByteSize(datatype) * elementCount(shape);
        return [name, gpu.take(lent, datatype, shape, byteSize, stays(name))];
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
  #slot = 0;
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
      this.#slot = this.#start.readUInt16LE(14);
    } else if (this.#body === undefined && this.#bodySize > 0 && this.#slot === 0) {
      this.#body = Buffer.allocUnsafeSlow(this.#bodySize);
    } else {
      const text = this.#header.toString("utf8");
      const body = this.#slot === 0 ? (this.#body ?? NO_BYTES) : this.#read(this.#slot);
      this.#header = undefined;
      this.#body = undefined;
      this.onFrame(JSON.parse(text), body);
    }
  }

  #read(slot: number): Uint8Array {
    if (this.memory === undefined) throw new Error("the message is in memory that is not shared");
    return this.memory.read(slot, this.#bodySize);
  }
}

const NO_BYTES = new Uint8Array(0);

/*
 * Memory that the process of a model shares with this one, for the tensors of large messages. It is made of two files
 * without a name, which the process has created, one for each direction. So it is gone when both processes are.
 *
 * A file has a counter (u32) for each of its slots, then the slots. The body of a message lies in one slot. The
 * sender takes a slot that the receiver has released as often as the sender has used it. Bytes are copied into a file
 * and out of it by the system, so this process maps nothing.
 */

/** The process has the same numbers (tensor_memory.py). */
const SLOTS = 16;
const SLOT_BYTES = 32 * 1024 * 1024;
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
  /** How often each slot for inputs was used, and each slot for outputs was read. */
  readonly #uses = new Uint32Array(SLOTS);
  readonly #reads = new Uint32Array(SLOTS);
  /** How often the process has released each slot for inputs, when that was last read. */
  readonly #releases = new Uint32Array(SLOTS);

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

  /** Copies a body to a free slot. Returns the slot, from 1; 0 if there is none, or no memory. */
  write(pieces: readonly Uint8Array[], size: number): number {
    if (size > SLOT_BYTES) return 0;
    const slot = this.#freeSlot();
    if (slot === undefined) return 0;
    try {
      writeAll(this.inputs, pieces, FILE_START_BYTES + slot * SLOT_BYTES);
    } catch {
      return 0;
    }
    this.#uses[slot]!++;
    return slot + 1;
  }

  /** Copies a body from its slot. The process may then use the slot again. @throws Error if there is no such slot */
  read(slot: number, size: number): Uint8Array {
    if (slot > SLOTS || size > SLOT_BYTES) throw new Error("the message has no slot in memory");
    const body = Buffer.allocUnsafeSlow(size);
    const first = FILE_START_BYTES + (slot - 1) * SLOT_BYTES;
    for (let done = 0; done < size; ) {
      const count = readSync(this.outputs, body, done, size - done, first + done);
      if (count === 0) throw new Error("the file with the message is too short");
      done += count;
    }
    this.#reads[slot - 1]!++;
    writeSync(this.outputs, this.#reads, 4 * (slot - 1), 4, 4 * (slot - 1));
    return body;
  }

  close(): void {
    closeSync(this.inputs);
    closeSync(this.outputs);
  }

  /** The first slot that the process does not use, because its pages are most likely in use already. */
  #freeSlot(): number | undefined {
    readSync(this.inputs, this.#releases, 0, 4 * SLOTS, 0);
    const free = this.#uses.findIndex((uses, slot) => uses === this.#releases[slot]);
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
