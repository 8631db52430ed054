import { closeSync, openSync, readSync, writeSync, writevSync } from "node:fs";

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
const START_BYTES = 4096;
const NONCE_AT = 2048;

/** Bodies from this size on go through memory: below, the bytes behind a header cost less than two more system calls. */
export const SHARED_BYTES = 32 * 1024;

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
  readonly #inputs: number;
  readonly #outputs: number;
  /** How often each place for inputs was used, and each place for outputs was read. */
  readonly #uses = new Uint32Array(PLACES);
  readonly #reads = new Uint32Array(PLACES);
  /** How often the process has released each place for inputs, when that was last read. */
  readonly #releases = new Uint32Array(PLACES);

  private constructor(inputs: number, outputs: number) {
    this.#inputs = inputs;
    this.#outputs = outputs;
  }

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
      writeAll(this.#inputs, pieces, START_BYTES + place * PLACE_BYTES);
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
    const first = START_BYTES + (place - 1) * PLACE_BYTES;
    for (let done = 0; done < size; ) {
      const count = readSync(this.#outputs, body, done, size - done, first + done);
      if (count === 0) throw new Error("the file with the message is too short");
      done += count;
    }
    this.#reads[place - 1]!++;
    writeSync(this.#outputs, this.#reads, 4 * (place - 1), 4, 4 * (place - 1));
    return body;
  }

  close(): void {
    closeSync(this.#inputs);
    closeSync(this.#outputs);
  }

  /** The first place that the process does not use, because its pages are most likely in use already. */
  #freePlace(): number | undefined {
    readSync(this.#inputs, this.#releases, 0, 4 * PLACES, 0);
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
