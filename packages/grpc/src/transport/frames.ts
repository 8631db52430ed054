import type { ServerHttp2Stream } from "node:http2";
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import type { RequestMemory, RequestShare } from "@tritonjs/server";
import { LARGE_REQUEST_BYTES, UnpackFault } from "@tritonjs/server/internal";
import { RefusedCall, STATUS } from "../status-from-code.js";
import type { CompressionLevel, Connection, MessageLimit } from "./connection.js";

/*
 * Messages on a stream, as gRPC frames them:
 *
 *   compressed: 1 byte | length: 4 bytes, big-endian | message
 */

/** Text for a message that arrives with more bytes than the limit: gRPC's own, with the name of the option. */
function tooLarge(size: number, { bytes, name }: MessageLimit): string {
  return `Received message larger than max (${size} vs. ${bytes}). Use ${name} to increase the limit.`;
}

/** Bytes before each message. */
export const HEADER_BYTES = 5;

/** Bytes below which messages are copied together and written in one piece. */
const JOIN_BELOW = 64 * 1024;

export interface Frame {
  readonly compressed: boolean;
  readonly bytes: Buffer;
}

/** Bytes allocated for an announced message at once. A longer one gets the rest when it has sent this much. */
const TRUSTED_BYTES = 1024 * 1024;

/** Size of the largest tensor element, in bytes. */
const ALIGNMENT = 8;

const NO_BYTES = Buffer.alloc(0);

/**
 * Assembles messages from pieces. A small message in one piece is a view of it. Pieces of other messages are copied as
 * they arrive, so that their memory is free at once, and a large message has memory of its own.
 */
export class FrameReader {
  /** Bytes of a header that is incomplete. */
  #header: Buffer = NO_BYTES;
  #compressed = false;
  /** Length of the current message; undefined until its header is complete. */
  #length: number | undefined;
  /** Memory of the current message, and the number of its bytes that have arrived. */
  #message: Buffer = NO_BYTES;
  #size = 0;

  constructor(private readonly limit: MessageLimit) {}

  /**
   * Adds a piece, and appends the messages that it completes to `frames`.
   *
   * @throws RefusedCall RESOURCE_EXHAUSTED for a message above the limit, before it arrives and without memory for it;
   * INTERNAL for an unknown flag.
   */
  push(piece: Buffer, frames: Frame[] = []): Frame[] {
    let at = 0;
    while (at < piece.length) {
      if (this.#length === undefined) at = this.#readHeader(piece, at);
      const length = this.#length;
      if (length === undefined) break;
      const end = Math.min(piece.length, at + length - this.#size);
      if (end - at === length && length < LARGE_REQUEST_BYTES) this.#message = piece.subarray(at, end);
      else if (end > at) this.#append(piece.subarray(at, end), length);
      this.#size += end - at;
      at = end;
      if (this.#size === length) frames.push(this.#complete());
    }
    return frames;
  }

  /** Reads what a piece has of the header from `at` on. Returns the position behind it. */
  #readHeader(piece: Buffer, at: number): number {
    const rest = this.#header;
    const end = Math.min(piece.length, at + HEADER_BYTES - rest.length);
    if (rest.length === 0 && end - at === HEADER_BYTES) {
      this.#begin(piece, at);
      return end;
    }
    const header = Buffer.concat([rest, piece.subarray(at, end)]);
    this.#header = header;
    if (header.length === HEADER_BYTES) {
      this.#header = NO_BYTES;
      this.#begin(header, 0);
    }
    return end;
  }

  /** Begins the message whose header is at `at`. */
  #begin(bytes: Buffer, at: number): void {
    const flag = bytes[at]!;
    if (flag > 1) {
      throw new RefusedCall(STATUS.INTERNAL, `Bad GRPC frame type 0x${flag.toString(16).padStart(2, "0")}`);
    }
    const length = bytes.readUInt32BE(at + 1);
    if (length > this.limit.bytes) {
      throw new RefusedCall(STATUS.RESOURCE_EXHAUSTED, tooLarge(length, this.limit));
    }
    this.#compressed = flag === 1;
    this.#length = length;
  }

  #append(part: Buffer, length: number): void {
    const needed = this.#size + part.length;
    if (needed > this.#message.length) {
      const isFirst = this.#size === 0 && needed <= TRUSTED_BYTES;
      const grown = allocate(length, isFirst ? Math.min(length, TRUSTED_BYTES) : length);
      this.#message.copy(grown, 0, 0, this.#size);
      this.#message = grown;
    }
    part.copy(this.#message, this.#size);
  }

  #complete(): Frame {
    const frame = { compressed: this.#compressed, bytes: this.#message };
    this.#message = NO_BYTES;
    this.#size = 0;
    this.#length = undefined;
    return frame;
  }
}

/**
 * Allocates the first bytes of a message, placed so that the end of the message is at a multiple of 8. The raw contents
 * of a request are at its end, so aligned elements can be read without a copy.
 */
function allocate(length: number, size: number): Buffer {
  const padding = (ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT;
  return Buffer.allocUnsafeSlow(padding + size).subarray(padding);
}

/** The pieces to write for a message: small ones are joined, large ones left as they are. */
export function frame(parts: readonly Uint8Array[], compressed = false): Uint8Array[] {
  let length = 0;
  for (const part of parts) length += part.byteLength;
  const header = Buffer.allocUnsafe(length < JOIN_BELOW ? HEADER_BYTES + length : HEADER_BYTES);
  header[0] = Number(compressed);
  header.writeUInt32BE(length, 1);
  if (length < JOIN_BELOW) {
    let at = HEADER_BYTES;
    for (const part of parts) {
      header.set(part, at);
      at += part.byteLength;
    }
    return [header];
  }
  const pieces: Uint8Array[] = [];
  let small: Uint8Array[] = [header];
  for (const part of parts) {
    if (part.byteLength < JOIN_BELOW) small.push(part);
    else {
      pieces.push(Buffer.concat(small), part);
      small = [];
    }
  }
  if (small.length > 0) pieces.push(Buffer.concat(small));
  return pieces;
}

export const RESPONSE_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity,deflate,gzip",
};

/** Leaves out the header `date`, which gRPC does not have. Node's types lack the option. */
export const NO_DATE = { sendDate: false } as const;
const WITH_TRAILERS = { waitForTrailers: true, ...NO_DATE };

const encoders = { gzip: promisify(gzip), deflate: promisify(deflate) };

const LEVELS: Readonly<Record<CompressionLevel, number>> = { none: 0, low: 1, medium: 6, high: 9 };

/** Size from which messages are compressed, in bytes. */
const WORTH_IT_BYTES = 1024;

const DONE: Promise<void> = Promise.resolve();

/**
 * The messages of a call on their way to the client. Compression, if any, happens off the event loop and keeps the
 * order.
 */
export class Outgoing {
  /** The encoding of compressed messages, which the client accepts; undefined for a call without compression. */
  readonly #encoding: keyof typeof encoders | undefined;
  #onDrain: (() => void) | undefined;
  /** Messages that are being compressed, or wait for an earlier one to be compressed. */
  #compressing = 0;
  #last = DONE;

  /** @param acceptEncoding the encodings that the client accepts */
  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly level: CompressionLevel,
    acceptEncoding: string | undefined,
    private readonly connection: Connection,
  ) {
    if (level === "none" || acceptEncoding === undefined) return;
    const accepted = acceptEncoding.split(",").map((name) => name.trim());
    this.#encoding = (["gzip", "deflate"] as const).find((name) => accepted.includes(name));
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
    this.stream.on("drain", () => this.#drained());
  }

  /** Sends a message; false when the client or the compression is too slow. */
  write(parts: readonly Uint8Array[]): boolean {
    if (this.#isClosed()) return true;
    if (this.#encoding === undefined) {
      this.#send(frame(parts));
      return !this.stream.writableNeedDrain;
    }
    this.#compressing++;
    this.#last = this.#last.then(async () => {
      const compressed = await this.#compressed(parts).catch(() => undefined);
      if (!this.#isClosed()) this.#send(compressed === undefined ? frame(parts) : frame([compressed], true));
      this.#compressing--;
      this.#drained();
    });
    return false;
  }

  /** Calls `then` when all messages have been passed to the stream. */
  flushed(then: () => void): void {
    if (this.#compressing === 0) then();
    else this.#last = this.#last.then(then);
  }

  /** The compressed message; undefined when it would not be smaller. */
  async #compressed(parts: readonly Uint8Array[]): Promise<Buffer | undefined> {
    const bytes = Buffer.concat(parts);
    if (bytes.length < WORTH_IT_BYTES) return undefined;
    const compressed = await encoders[this.#encoding!](bytes, { level: LEVELS[this.level] });
    return compressed.length < bytes.length ? compressed : undefined;
  }

  #send(pieces: readonly Uint8Array[]): void {
    const stream = this.stream;
    if (!stream.headersSent) {
      const encoding = this.#encoding;
      const headers =
        encoding === undefined ? RESPONSE_HEADERS : { ...RESPONSE_HEADERS, "grpc-encoding": encoding };
      stream.respond(headers, WITH_TRAILERS);
    }
    const connection = this.connection;
    if (pieces.length > 1) stream.cork();
    for (const piece of pieces) {
      connection.writing(piece.byteLength);
      stream.write(piece, connection.written);
    }
    if (pieces.length > 1) stream.uncork();
    connection.sent();
  }

  #drained(): void {
    if (this.#compressing === 0 && !this.stream.writableNeedDrain) this.#onDrain?.();
  }

  #isClosed(): boolean {
    return this.stream.closed || this.stream.destroyed;
  }
}

/**
 * Decompresses a message.
 *
 * @throws RefusedCall RESOURCE_EXHAUSTED for a message that becomes larger than `limit`, or too large for its
 * compressed size; UNIMPLEMENTED for an unknown encoding; INTERNAL for broken data. TritonError UNAVAILABLE when the
 * memory or the decompression queue is full.
 */
export async function unpackMessage(
  bytes: Buffer,
  encoding: string,
  memory: RequestMemory,
  share: RequestShare,
  limit: MessageLimit,
  signal: AbortSignal,
): Promise<Buffer> {
  if (encoding === "identity") return bytes;
  if (encoding !== "gzip" && encoding !== "deflate") {
    throw new RefusedCall(
      STATUS.UNIMPLEMENTED,
      `Received message compressed with unsupported encoding "${encoding}"`,
    );
  }
  try {
    return await memory.unpack(bytes, encoding, { share, maxBytes: limit.bytes, signal });
  } catch (error) {
    throw error instanceof UnpackFault ? toRefusal(error, limit) : error;
  }
}

function toRefusal({ kind, message }: UnpackFault, { bytes, name }: MessageLimit): RefusedCall {
  if (kind === "DATA") return new RefusedCall(STATUS.INTERNAL, "Failed to decompress message");
  const tooLarge = `Received message that decompresses to a size larger than ${bytes}. Use ${name} to increase the limit.`;
  return new RefusedCall(STATUS.RESOURCE_EXHAUSTED, kind === "SIZE" ? tooLarge : message);
}
