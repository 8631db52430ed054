import { STATUS } from "../../status-from-code.js";
import { RefusedCall } from "../refused-call.js";

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
export function unpacksTooLarge({ bytes, name }: MessageLimit): string {
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

/** Assembles messages from pieces with one copy, or without a copy for a message in one piece. */
export class FrameReader {
  readonly #limit: MessageLimit;
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(limit: MessageLimit) {
    this.#limit = limit;
  }

  /**
   * Adds a piece and returns the messages that it completes.
   *
   * @throws RefusedCall RESOURCE_EXHAUSTED for a message above the limit, before it arrives and without memory for it;
   * INTERNAL for an unknown flag.
   */
  push(piece: Buffer): Frame[] {
    this.#pieces.push(piece);
    this.#size += piece.length;
    const frames: Frame[] = [];
    for (let length = this.#messageLength(); length !== undefined; length = this.#messageLength()) {
      const flag = this.#pieces[0]![0]!;
      if (flag > 1) {
        const hex = flag.toString(16).padStart(2, "0");
        throw new RefusedCall(STATUS.INTERNAL, `Bad GRPC frame type 0x${hex}`);
      }
      if (length > this.#limit.bytes) {
        throw new RefusedCall(STATUS.RESOURCE_EXHAUSTED, tooLarge(length, this.#limit));
      }
      if (this.#size < HEADER_BYTES + length) break;
      frames.push(this.#take(length));
    }
    return frames;
  }

  /** Length of the current message; undefined before its header is complete. */
  #messageLength(): number | undefined {
    if (this.#size < HEADER_BYTES) return undefined;
    if (this.#pieces[0]!.length < HEADER_BYTES) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!.readUInt32BE(1);
  }

  #take(length: number): Frame {
    const end = HEADER_BYTES + length;
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : joined(this.#pieces, this.#size, end);
    this.#pieces = whole.length === end ? [] : [whole.subarray(end)];
    this.#size -= end;
    return { compressed: whole[0] === 1, bytes: whole.subarray(HEADER_BYTES, end) };
  }
}

/**
 * Joins the pieces, placed so that the byte at `end` is at a multiple of 8. The raw contents of a request are at its
 * end, so aligned elements can be read without a copy.
 */
function joined(pieces: readonly Buffer[], size: number, end: number): Buffer {
  const padding = -end & 7;
  const buffer = Buffer.allocUnsafeSlow(padding + size);
  let at = padding;
  for (const piece of pieces) at += piece.copy(buffer, at);
  return buffer.subarray(padding);
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
