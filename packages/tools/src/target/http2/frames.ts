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
/** Cancels a stream. */
export const CANCEL = 8;

/** Names of error codes, for messages. */
const ERROR_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

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

export function windowUpdate(stream: number, increment: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(increment);
  return shortFrame(FRAME.WINDOW_UPDATE, 0, stream, payload);
}

export function resetStream(stream: number, code: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(code);
  return shortFrame(FRAME.RST_STREAM, 0, stream, payload);
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const DEFAULT_WINDOW = 65_535;
const LARGEST_FRAME = 1024 * 1024;

/** What a client sends first: no push, no dynamic table, and windows that never fill. */
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

/** Name of an error code. */
export const errorName = (code: number): string => ERROR_NAMES[code] ?? `error ${code}`;

/** Reads a GOAWAY frame: calls on later streams than `lastStream` fail with the text. */
export function readGoAway(payload: Buffer): { readonly lastStream: number; readonly text: string } {
  const lastStream = payload.readUInt32BE() & 0x7fff_ffff;
  const code = payload.readUInt32BE(4);
  const debug = payload.toString("latin1", 8);
  const why = code === 0 ? "" : `: ${errorName(code)}`;
  return { lastStream, text: `the server closes the connection${why}${debug === "" ? "" : ` (${debug})`}` };
}
