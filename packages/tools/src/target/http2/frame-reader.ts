import { FLAG, FRAME, FRAME_HEAD_BYTES } from "./frames.js";

/** Receives frames. Byte ranges are valid only during the call. */
export interface FrameListener {
  /** A part of the data of a stream. `isLast` tells that the stream ends with it. */
  onData(stream: number, bytes: Buffer, isLast: boolean): void;
  /** Bytes that count against the windows, padding included. */
  onFlow(stream: number, byteSize: number): void;
  /** A whole block of headers. */
  onHeaders(stream: number, block: Buffer, isLast: boolean): void;
  /** Any other frame, as a whole. */
  onFrame(type: number, flags: number, stream: number, payload: Buffer): void;
}

/** Longest frame that is collected; data is passed on as it comes. */
const LARGEST_PAYLOAD = 1024 * 1024;
const EMPTY = Buffer.alloc(0);

/** Takes the frames out of the bytes of a connection. */
export class Http2FrameReader {
  readonly #listener: FrameListener;
  /** Bytes of an incomplete head, or of an incomplete frame. */
  #pending: Buffer = EMPTY;
  /** Data of the current frame that is still to come, then its padding. */
  #dataLeft = 0;
  #paddingLeft = 0;
  #dataStream = 0;
  #dataEndsStream = false;
  /** A block of headers that goes on in further frames. */
  #block: Buffer[] = [];
  #blockEndsStream = false;

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** @throws Error for bytes that are not HTTP/2. */
  read(arrived: Buffer): void {
    let bytes = arrived;
    let at = 0;
    if (this.#pending.length > 0) {
      bytes = Buffer.concat([this.#pending, arrived]);
      this.#pending = EMPTY;
    }
    while (at < bytes.length) {
      if (this.#dataLeft > 0 || this.#paddingLeft > 0) {
        at = this.#data(bytes, at);
        continue;
      }
      const next = this.#frame(bytes, at);
      if (next < 0) {
        this.#pending = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** Reads a frame, or the beginning of one with data. Returns the position after it, or -1 if it is incomplete. */
  #frame(bytes: Buffer, at: number): number {
    if (bytes.length - at < FRAME_HEAD_BYTES) return -1;
    const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    const type = bytes[at + 3]!;
    const flags = bytes[at + 4]!;
    const stream = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    const payloadAt = at + FRAME_HEAD_BYTES;
    if (length > LARGEST_PAYLOAD) throw new Error(`a frame has ${length} bytes`);
    if (type === FRAME.DATA) {
      const isPadded = (flags & FLAG.PADDED) !== 0;
      if (isPadded && bytes.length <= payloadAt) return -1;
      const padding = isPadded ? bytes[payloadAt]! : 0;
      const prefix = isPadded ? 1 : 0;
      if (prefix + padding > length) throw new Error("a frame has more padding than bytes");
      this.#listener.onFlow(stream, length);
      this.#dataLeft = length - prefix - padding;
      this.#paddingLeft = padding;
      this.#dataStream = stream;
      this.#dataEndsStream = (flags & FLAG.END_STREAM) !== 0;
      if (this.#dataLeft === 0) this.#listener.onData(stream, EMPTY, this.#dataEndsStream);
      return payloadAt + prefix;
    }
    if (bytes.length - payloadAt < length) return -1;
    const end = payloadAt + length;
    const payload = bytes.subarray(payloadAt, end);
    if (type === FRAME.HEADERS) this.#headers(flags, stream, payload);
    else if (type === FRAME.CONTINUATION) this.#continuation(flags, stream, payload);
    else this.#listener.onFrame(type, flags, stream, payload);
    return end;
  }

  #data(bytes: Buffer, from: number): number {
    let at = from;
    if (this.#dataLeft > 0) {
      const length = Math.min(this.#dataLeft, bytes.length - at);
      this.#dataLeft -= length;
      const isLast = this.#dataLeft === 0 && this.#dataEndsStream;
      this.#listener.onData(this.#dataStream, bytes.subarray(at, at + length), isLast);
      at += length;
    }
    const padding = Math.min(this.#paddingLeft, bytes.length - at);
    this.#paddingLeft -= padding;
    return at + padding;
  }

  #headers(flags: number, stream: number, payload: Buffer): void {
    let from = 0;
    let to = payload.length;
    if ((flags & FLAG.PADDED) !== 0) {
      to -= payload[0] ?? 0;
      from++;
    }
    if ((flags & FLAG.PRIORITY) !== 0) from += 5;
    if (from > to) throw new Error("a frame has more padding than bytes");
    const block = payload.subarray(from, to);
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    if ((flags & FLAG.END_HEADERS) !== 0) this.#listener.onHeaders(stream, block, isLast);
    else {
      this.#block = [Buffer.from(block)];
      this.#blockEndsStream = isLast;
    }
  }

  #continuation(flags: number, stream: number, payload: Buffer): void {
    this.#block.push(Buffer.from(payload));
    if ((flags & FLAG.END_HEADERS) === 0) return;
    const block = Buffer.concat(this.#block);
    this.#block = [];
    this.#listener.onHeaders(stream, block, this.#blockEndsStream);
  }
}
