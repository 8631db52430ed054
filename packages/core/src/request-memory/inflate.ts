import { createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { cancelled, onAbort } from "@tritonjs/protocol";

import type { RequestShare } from "./request-share.js";

/** Faults of a compressed input: its output is too large, or too large for its compressed size, or its data is broken. */
export type UnpackFaultKind = "SIZE" | "RATIO" | "DATA";

/** The error of an input that cannot be unpacked. Frontends word it for their clients. */
export class UnpackFault extends Error {
  override readonly name = "UnpackFault";

  constructor(
    readonly kind: UnpackFaultKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Compression formats. `gzip-data` is a member of gzip without its header, and whatever follows it. */
export type CompressionFormat = "gzip" | "gzip-data" | "deflate";

/** Limits of unpacking one input. */
export interface InflateLimits {
  readonly maxBytes: number;
  /** Largest ratio of output to input; `Infinity` for any. */
  readonly maxRatio: number;
  /** Counts the output as it comes. */
  readonly share: RequestShare;
  /** Ends the unpacking. */
  readonly signal: AbortSignal;
}

/** Up to this size an output may have any ratio: a batch of images that are all zeros is no bomb. */
const RATIO_EXEMPT_BYTES = 8 * 1024 * 1024;

/** Bytes that one turn of zlib makes. After each of them the limits are checked. */
const MAX_CHUNK = 64 * 1024;
const MIN_CHUNK = 1024;
/** With it an output of the expected size is done in one turn: a full chunk would be followed by an empty one. */
const CHUNK_SLACK = 64;
/** Chunk for each byte of input: an output much larger than expected takes few turns too. */
const CHUNK_PER_BYTE = 16;

const openers = { gzip: createGunzip, "gzip-data": createInflateRaw, deflate: createInflate };

/**
 * Unpacks bytes piece by piece into one buffer, off the event loop.
 *
 * @throws UnpackFault for an output above the limits and an input that is broken, TritonError UNAVAILABLE when the
 * output does not fit into the budget, CANCELLED when the signal aborts. Then nothing of the output is kept.
 */
export function inflate(
  input: Uint8Array,
  compression: CompressionFormat,
  limits: InflateLimits,
): Promise<Buffer> {
  const { maxBytes, maxRatio, share, signal } = limits;
  const expected = Math.min(expectedSize(input, compression), maxBytes);
  const maxByRatio = Math.max(RATIO_EXEMPT_BYTES, maxRatio * input.length);
  const output = new GrowingBuffer(expected);
  return new Promise((resolve, reject) => {
    const stream = openers[compression]({ chunkSize: chunkSize(expected, input.length) });
    const stop = (): void => {
      stopListening();
      // It does not destroy itself where bytes follow the compressed data.
      stream.destroy();
    };
    const fail = (error: unknown): void => {
      stop();
      reject(error);
    };
    const stopListening = onAbort(signal, () => fail(cancelled(signal.reason)));
    stream.on("data", (chunk: Buffer) => {
      const size = output.length + chunk.length;
      try {
        if (size > maxBytes)
          throw new UnpackFault("SIZE", `the decompressed request has more than ${maxBytes} bytes`);
        if (size > maxByRatio) throw ratioFault(maxRatio, input.length);
        share.take(chunk.length);
        output.add(chunk);
      } catch (error) {
        fail(error);
      }
    });
    stream.on("end", () => {
      stop();
      resolve(output.bytes());
    });
    stream.on("error", (cause) => fail(new UnpackFault("DATA", cause.message, { cause })));
    stream.end(input);
  });
}

function chunkSize(expected: number, inputSize: number): number {
  const wanted = Math.max(expected + CHUNK_SLACK, CHUNK_PER_BYTE * inputSize, MIN_CHUNK);
  return Math.min(wanted, MAX_CHUNK);
}

function ratioFault(maxRatio: number, inputSize: number): UnpackFault {
  return new UnpackFault(
    "RATIO",
    `the decompressed request has more than ${maxRatio} times its compressed size of ${inputSize} bytes. Raise ` +
      "requestMemory.maxCompressionRatio (--max-compression-ratio).",
  );
}

/** Size of the output as the input gives or suggests it. It may be wrong. */
function expectedSize(input: Uint8Array, compression: CompressionFormat): number {
  const end = input.byteLength;
  if (compression === "deflate" || end < 4) return 4 * end;
  // A gzip member ends with the size of what it unpacks to.
  return new DataView(input.buffer, input.byteOffset + end - 4, 4).getUint32(0, true);
}

const EMPTY = Buffer.alloc(0);

/** Collects pieces in one piece of memory, which doubles when it is full. */
class GrowingBuffer {
  #buffer = EMPTY;
  #length = 0;
  readonly #firstCapacity: number;

  /** @param expected bytes to make room for when the first piece comes */
  constructor(expected: number) {
    this.#firstCapacity = expected;
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
  }

  /** All pieces. A buffer that is not half full is not kept. */
  bytes(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    if (2 * this.#length >= this.#buffer.length) return bytes;
    const copy = Buffer.allocUnsafeSlow(this.#length);
    copy.set(bytes);
    return copy;
  }

  #grow(needed: number): void {
    const capacity = this.#length === 0 ? this.#firstCapacity : 2 * this.#buffer.length;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, capacity));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}
