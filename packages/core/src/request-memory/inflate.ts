import { createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { cancelled, onAbort } from "@tritonjs/protocol";

import type { RequestShare } from "./request-share.js";

/**
 * Faults of a compressed input: the output is too large, the output is too large for the input's size, or the data is
 * broken.
 */
export type UnpackFaultKind = "SIZE" | "RATIO" | "DATA";

/** The error of an input that cannot be unpacked. Each frontend has its own text for it. */
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

/** Compression formats. `gzip-data` is a gzip member without its header, and any bytes after it. */
export type CompressionFormat = "gzip" | "gzip-data" | "deflate";

/** Limits of unpacking one input. */
export interface InflateLimits {
  readonly maxBytes: number;
  /** Largest ratio of output to input; `Infinity` for any. */
  readonly maxRatio: number;
  /** Counts the output as it arrives. */
  readonly share: RequestShare;
  /** Cancels the unpacking. */
  readonly signal: AbortSignal;
}

/** Up to this size an output may have any ratio. A batch of images that are all zeros is not an attack. */
const RATIO_EXEMPT_BYTES = 8 * 1024 * 1024;

/** Bytes of output of one zlib call. The limits are checked after each call. */
const MAX_CHUNK = 64 * 1024;
const MIN_CHUNK = 1024;
/**
 * Extra bytes of a chunk, so that an output of the expected size takes one call. A full chunk needs another, empty one.
 */
const CHUNK_SLACK = 64;
/** Bytes of chunk for each byte of input, so that an output much larger than expected also takes few calls. */
const CHUNK_PER_BYTE = 16;

const openers = { gzip: createGunzip, "gzip-data": createInflateRaw, deflate: createInflate };

/**
 * Unpacks bytes piece by piece into one buffer, off the event loop.
 *
 * @throws UnpackFault for an output above the limits and for a broken input, TritonError UNAVAILABLE when the output
 * does not fit into the budget, CANCELLED when the signal aborts. After an error, no output is kept.
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
      // The stream does not destroy itself if bytes follow the compressed data.
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

/** Size of the output, as declared or suggested by the input. It may be wrong. */
function expectedSize(input: Uint8Array, compression: CompressionFormat): number {
  const end = input.byteLength;
  if (compression === "deflate" || end < 4) return 4 * end;
  // A gzip member ends with the size of its output.
  return new DataView(input.buffer, input.byteOffset + end - 4, 4).getUint32(0, true);
}

const EMPTY = Buffer.alloc(0);

/** Collects pieces in one buffer, which doubles when it is full. */
class GrowingBuffer {
  #buffer = EMPTY;
  #length = 0;
  readonly #firstCapacity: number;

  /** @param expected bytes to allocate with the first piece */
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

  /** All pieces. The bytes are copied when the buffer is less than half full. */
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
