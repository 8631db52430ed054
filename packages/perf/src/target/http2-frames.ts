import type { Socket } from "node:net";

/* Frames of HTTP/2 (RFC 9113). */

export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
} as const;

export const FRAME_HEAD_BYTES = 9;
export const LARGEST_WINDOW = 2 ** 31 - 1;
export const CANCEL = 8;

const ERROR_NAMES = (
  "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR " +
  "REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED"
).split(" ");

/** Writes the head of a frame. Returns the position after it. */
export function writeFrameHead(
  into: Buffer,
  at: number,
  frame: { readonly length: number; readonly type: number; readonly flags: number; readonly stream: number },
): number {
  into.writeUIntBE(frame.length, at, 3);
  into[at + 3] = frame.type;
  into[at + 4] = frame.flags;
  into.writeUInt32BE(frame.stream, at + 5);
  return at + FRAME_HEAD_BYTES;
}

/** A whole frame with a short payload. */
export function shortFrame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD_BYTES + payload.length);
  bytes.set(payload, writeFrameHead(bytes, 0, { length: payload.length, type, flags, stream }));
  return bytes;
}

function numberFrame(type: number, stream: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value);
  return shortFrame(type, 0, stream, payload);
}

export const windowUpdate = (stream: number, increment: number): Buffer =>
  numberFrame(FRAME.WINDOW_UPDATE, stream, increment);

export const resetStream = (stream: number, code: number): Buffer =>
  numberFrame(FRAME.RST_STREAM, stream, code);

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const DEFAULT_WINDOW = 65_535;
const LARGEST_FRAME = 1024 * 1024;

/** Preface of a client: no push, no dynamic table, and windows that never fill. */
export function clientPreface(): Buffer {
  const settings: readonly (readonly [number, number])[] = [
    [SETTING.HEADER_TABLE_SIZE, 0],
    [SETTING.ENABLE_PUSH, 0],
    [SETTING.INITIAL_WINDOW_SIZE, LARGEST_WINDOW],
    [SETTING.MAX_FRAME_SIZE, LARGEST_FRAME],
  ];
  const payload = Buffer.allocUnsafe(6 * settings.length);
  settings.forEach(([id, value], i) => {
    payload.writeUInt16BE(id, 6 * i);
    payload.writeUInt32BE(value, 6 * i + 2);
  });
  return Buffer.concat([
    PREFACE,
    shortFrame(FRAME.SETTINGS, 0, 0, payload),
    windowUpdate(0, LARGEST_WINDOW - DEFAULT_WINDOW),
  ]);
}

export const errorName = (code: number): string => ERROR_NAMES[code] ?? `error ${code}`;

/** Reads a GOAWAY frame: calls on later streams than `lastStream` fail with the text. */
export function readGoAway(payload: Buffer): { readonly lastStream: number; readonly text: string } {
  const lastStream = payload.readUInt32BE() & 0x7fff_ffff;
  const code = payload.readUInt32BE(4);
  const debug = payload.toString("latin1", 8);
  const why = code === 0 ? "" : `: ${errorName(code)}`;
  return { lastStream, text: `the server closes the connection${why}${debug === "" ? "" : ` (${debug})`}` };
}

/** Longest frame that is collected; data is passed on as it comes. */
const LARGEST_PAYLOAD = 1024 * 1024;
const EMPTY = Buffer.alloc(0);

export abstract class Http2FrameReader {
  #pending: Buffer = EMPTY;
  /** Data of the current frame that is still to come, then its padding. */
  #dataLeft = 0;
  #paddingLeft = 0;
  #dataStream = 0;
  #dataEndsStream = false;
  /** A block of headers that continues in further frames. */
  #block: Buffer[] = [];
  #blockEndsStream = false;

  /* Byte ranges are valid only during a call. */
  /** A part of the data of a stream. `isLast` tells that the stream ends with it. */
  protected abstract onData(stream: number, bytes: Buffer, isLast: boolean): void;
  /** Bytes that count against the windows, padding included. */
  protected abstract onFlow(stream: number, byteSize: number): void;
  protected abstract onHeaders(stream: number, block: Buffer, isLast: boolean): void;
  /** Any other frame, as a whole. */
  protected abstract onFrame(type: number, flags: number, stream: number, payload: Buffer): void;

  protected readFrames(arrived: Buffer): void {
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
      this.onFlow(stream, length);
      this.#dataLeft = length - prefix - padding;
      this.#paddingLeft = padding;
      this.#dataStream = stream;
      this.#dataEndsStream = (flags & FLAG.END_STREAM) !== 0;
      if (this.#dataLeft === 0) this.onData(stream, EMPTY, this.#dataEndsStream);
      return payloadAt + prefix;
    }
    if (bytes.length - payloadAt < length) return -1;
    const end = payloadAt + length;
    const payload = bytes.subarray(payloadAt, end);
    if (type === FRAME.HEADERS) this.#headers(flags, stream, payload);
    else if (type === FRAME.CONTINUATION) this.#continuation(flags, stream, payload);
    else this.onFrame(type, flags, stream, payload);
    return end;
  }

  #data(bytes: Buffer, from: number): number {
    let at = from;
    if (this.#dataLeft > 0) {
      const length = Math.min(this.#dataLeft, bytes.length - at);
      this.#dataLeft -= length;
      const isLast = this.#dataLeft === 0 && this.#dataEndsStream;
      this.onData(this.#dataStream, bytes.subarray(at, at + length), isLast);
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
    if ((flags & FLAG.END_HEADERS) !== 0) this.onHeaders(stream, block, isLast);
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
    this.onHeaders(stream, block, this.#blockEndsStream);
  }
}

/** Frames up to this size are copied into one piece: a copy is cheaper than a further part of a write. */
const LARGEST_JOINED = 64 * 1024;

/** Collects frames and writes those of one turn at once. */
export class FrameOutput {
  byteSize = 0;
  #frames: Buffer[] = [];
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(private readonly socket: Socket) {}

  /** @param onSent called when the connection has accepted everything up to this frame */
  add(frame: Buffer, onSent?: () => void): void {
    this.#frames.push(frame);
    if (onSent !== undefined) this.#waiting.push(onSent);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => this.flush());
  }

  flush(): void {
    this.#isScheduled = false;
    const frames = this.#frames;
    if (frames.length === 0) return;
    const waiting = this.#waiting;
    this.#frames = [];
    this.#waiting = [];
    const onSent = (error?: Error | null): void => {
      if (error == null) for (const sent of waiting) sent();
    };
    const byteSize = frames.reduce((sum, frame) => sum + frame.length, 0);
    this.byteSize += byteSize;
    const socket = this.socket;
    if (frames.length === 1 || byteSize <= LARGEST_JOINED) {
      socket.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames, byteSize), onSent);
      return;
    }
    socket.cork();
    frames.forEach((frame, i) => void socket.write(frame, i === frames.length - 1 ? onSent : undefined));
    socket.uncork();
  }
}

/* Header compression of HTTP/2 (RFC 7541), as far as a load generator needs it. */

/** Names of the static table from index 1 on. */
const STATIC_NAMES = (
  ":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status " +
  "accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow " +
  "authorization cache-control content-disposition content-encoding content-language content-length " +
  "content-location content-range content-type cookie date etag expect expires from host if-match if-modified-since " +
  "if-none-match if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate " +
  "proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security " +
  "transfer-encoding user-agent vary via www-authenticate"
).split(" ");

/** Values of the static table that responses use, by index. */
const STATIC_VALUES: Readonly<Record<number, string>> = {
  2: "GET",
  3: "POST",
  4: "/",
  5: "/index.html",
  6: "http",
  7: "https",
  8: "200",
  9: "204",
  10: "206",
  11: "304",
  12: "400",
  13: "404",
  14: "500",
  16: "gzip, deflate",
};

const STATIC_COUNT = STATIC_NAMES.length;
const ENTRY_BYTES = 32;

/** A request's headers in three forms. */
export interface HeaderBlocks {
  /** Literals only. */
  readonly plain: Buffer;
  /** Puts all headers into the server's table. */
  readonly adding: Buffer;
  /** Refers to the server's table, once `adding` was sent. */
  readonly added: Buffer;
  /** Bytes of the table that they need. */
  readonly tableBytes: number;
}

/** Encodes headers that every request of a connection has. Pseudo-headers come first. */
export function headerBlocks(headers: readonly (readonly [name: string, value: string])[]): HeaderBlocks {
  const texts = headers.map(([name, value]) => Buffer.concat([literal(name), literal(value)]));
  const form = (prefix: number) => Buffer.concat(texts.flatMap((text) => [Buffer.of(prefix), text]));
  const newest = STATIC_COUNT + 1;
  return {
    plain: form(0x00),
    adding: form(0x40),
    // The entry that was added last has the lowest index.
    added: Buffer.concat(headers.map((_, i) => integer(0x80, 7, newest + headers.length - 1 - i))),
    tableBytes: headers.reduce(
      (sum, [name, value]) => sum + ENTRY_BYTES + Buffer.byteLength(name) + Buffer.byteLength(value),
      0,
    ),
  };
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([integer(0x00, 7, bytes.length), bytes]);
}

/** A whole number in a prefix of `bits` bits, and further bytes. */
function integer(pattern: number, bits: number, value: number): Buffer {
  const limit = 2 ** bits - 1;
  if (value < limit) return Buffer.of(pattern | value);
  const bytes = [pattern | limit];
  let left = value - limit;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  bytes.push(left);
  return Buffer.from(bytes);
}

/**
 * Decodes a block of headers. The client's settings forbid a dynamic table, so blocks do not depend on earlier ones.
 */
export function decodeHeaders(block: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const number = (bits: number): number => {
    const limit = 2 ** bits - 1;
    let value = byteAt(block, at++) & limit;
    if (value < limit) return value;
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      const byte = byteAt(block, at++);
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error("a number in a header is too large");
  };
  const text = (): string => {
    const isCoded = byteAt(block, at) >= 0x80;
    const length = number(7);
    if (at + length > block.length) throw new Error("a header block ends too early");
    const bytes = block.subarray(at, at + length);
    at += length;
    return isCoded ? decodeHuffman(bytes) : bytes.toString("latin1");
  };
  while (at < block.length) {
    const first = block[at]!;
    if (first >= 0x80) {
      const index = number(7);
      headers.set(staticName(index), STATIC_VALUES[index] ?? "");
    } else if (first >= 0x20 && first < 0x40) {
      // The size of the table, which stays empty.
      number(5);
    } else {
      const index = number(first >= 0x40 ? 6 : 4);
      const name = index === 0 ? text() : staticName(index);
      headers.set(name, text());
    }
  }
  return headers;
}

function byteAt(block: Buffer, at: number): number {
  const byte = block[at];
  if (byte === undefined) throw new Error("a header block ends too early");
  return byte;
}

function staticName(index: number): string {
  const name = STATIC_NAMES[index - 1];
  if (name === undefined) throw new Error(`a header refers to entry ${index} of a table, which has none`);
  return name;
}

/*
 * The Huffman code of HPACK (RFC 7541, appendix B). It is canonical: codes of one length are consecutive numbers in the
 * order of their symbols, and follow on from those of the shorter lengths. So the lengths alone define it.
 */

/** Length of the code of each byte in bits, and of the end of a string (256). */
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const LONGEST = 30;
const END_OF_STRING = 256;

const levels = codeLevels();

interface Level {
  readonly first: number;
  readonly symbols: readonly number[];
}

function codeLevels(): readonly Level[] {
  const all: Level[] = [];
  let code = 0;
  for (let length = 1; length <= LONGEST; length++) {
    code *= 2;
    const symbols = LENGTHS.flatMap((bits, symbol) => (bits === length ? [symbol] : []));
    all.push({ first: code, symbols });
    code += symbols.length;
  }
  return all;
}

function decodeHuffman(bytes: Uint8Array): string {
  const out: number[] = [];
  let code = 0;
  let length = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      const level = levels[length++];
      if (level === undefined) throw new Error("invalid Huffman code in a header");
      const index = code - level.first;
      if (index >= level.symbols.length) continue;
      const symbol = level.symbols[index]!;
      if (symbol === END_OF_STRING) throw new Error("invalid Huffman code in a header");
      out.push(symbol);
      code = 0;
      length = 0;
    }
  }
  return Buffer.from(out).toString("latin1");
}
