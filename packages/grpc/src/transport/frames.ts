import type { RequestMemory, RequestShare } from "@tritonjs/core/frontend";
import { LARGE_REQUEST_BYTES, UnpackFault } from "@tritonjs/core/internal";
import { RefusedCall, STATUS } from "../status-from-code.js";

/*
 * Messages on a stream, as gRPC frames them:
 *
 *   compressed: 1 byte | length: 4 bytes, big-endian | message
 */

/** The limit on messages, which all calls of a server share. */
export interface MessageLimit {
  readonly bytes: number;
  /** Name of the option for the limit, for the errors of clients. */
  readonly name: string;
}

/** Text for a message that arrives with more bytes than the limit: gRPC's own, with the name of the option. */
function tooLarge(size: number, { bytes, name }: MessageLimit): string {
  return `Received message larger than max (${size} vs. ${bytes}). Use ${name} to increase the limit.`;
}

/** Text for a message that exceeds the limit after decompression. */
function unpacksTooLarge({ bytes, name }: MessageLimit): string {
  return `Received message that decompresses to a size larger than ${bytes}. Use ${name} to increase the limit.`;
}

/** Bytes before each message. */
export const HEADER_BYTES = 5;

/** Bytes below which messages are copied together and written in one piece. */
const JOIN_BELOW = 64 * 1024;

/** A message as it arrived. */
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
   * Adds a piece and returns the messages that it completes.
   *
   * @throws RefusedCall RESOURCE_EXHAUSTED for a message above the limit, before it arrives and without memory for it;
   * INTERNAL for an unknown flag.
   */
  push(piece: Buffer): Frame[] {
    const frames: Frame[] = [];
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
    const end = Math.min(piece.length, at + HEADER_BYTES - this.#header.length);
    const part = piece.subarray(at, end);
    const header = this.#header.length === 0 ? part : Buffer.concat([this.#header, part]);
    this.#header = header;
    if (header.length < HEADER_BYTES) return end;
    this.#header = NO_BYTES;
    const flag = header[0]!;
    if (flag > 1) {
      throw new RefusedCall(STATUS.INTERNAL, `Bad GRPC frame type 0x${flag.toString(16).padStart(2, "0")}`);
    }
    const length = header.readUInt32BE(1);
    if (length > this.limit.bytes) {
      throw new RefusedCall(STATUS.RESOURCE_EXHAUSTED, tooLarge(length, this.limit));
    }
    this.#compressed = flag === 1;
    this.#length = length;
    return end;
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

/** Accepted encodings of messages. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

/** Limits on the decompression of one message. */
interface UnpackLimits {
  readonly memory: RequestMemory;
  /** Counts the message. */
  readonly share: RequestShare;
  readonly limit: MessageLimit;
  /** Aborts when the call is over. */
  readonly signal: AbortSignal;
}

/**
 * Decompresses a message.
 *
 * @throws RefusedCall RESOURCE_EXHAUSTED for a message that becomes larger than `limit`, or too large for its
 * compressed size; UNIMPLEMENTED for an unknown encoding; INTERNAL for broken data. TritonError UNAVAILABLE when the
 * memory or the decompression queue is full.
 */
export async function unpackMessage(bytes: Buffer, encoding: string, limits: UnpackLimits): Promise<Buffer> {
  if (encoding === "identity") return bytes;
  if (encoding !== "gzip" && encoding !== "deflate") {
    throw new RefusedCall(
      STATUS.UNIMPLEMENTED,
      `Received message compressed with unsupported encoding "${encoding}"`,
    );
  }
  const { memory, share, limit, signal } = limits;
  try {
    return await memory.unpack(bytes, encoding, { share, maxBytes: limit.bytes, signal });
  } catch (error) {
    throw error instanceof UnpackFault ? toRefusal(error, limit) : error;
  }
}

function toRefusal(fault: UnpackFault, limit: MessageLimit): RefusedCall {
  switch (fault.kind) {
    case "SIZE":
      return new RefusedCall(STATUS.RESOURCE_EXHAUSTED, unpacksTooLarge(limit));
    case "RATIO":
      return new RefusedCall(STATUS.RESOURCE_EXHAUSTED, fault.message);
    case "DATA":
      return new RefusedCall(STATUS.INTERNAL, "Failed to decompress message");
  }
}
