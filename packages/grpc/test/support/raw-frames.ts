import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Types of HTTP/2 frames. */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** A received frame. */
export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** An HTTP/2 connection without any rules, closed at the end of the test. */
export async function rawConnection(port: number, settings = Buffer.alloc(0)) {
  const socket = connect(port, "localhost");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const closed = once(socket, "close");
  closed.catch(() => {});
  const frames: RawFrame[] = [];
  readFrames(socket, frames);
  await once(socket, "connect");
  socket.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`);
  socket.write(frameOf(FRAME.SETTINGS, 0, settings));
  return { socket, frames, closed };
}

/** A frame; `length` may differ from that of `payload`. Headers are complete unless `flags` says otherwise. */
export function frameOf(
  type: number,
  stream: number,
  payload: Buffer,
  length = payload.length,
  flags = type === FRAME.HEADERS ? END_HEADERS : 0,
): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** Opens a call of `path` and leaves it open. */
export function openFrame(stream: number, path: string): Buffer {
  // Each field without indexing: the name as an index, the value as text.
  const block = Buffer.concat([
    Buffer.of(0x83, 0x86),
    field(4, path),
    field(1, "test"),
    field(31, "application/grpc"),
  ]);
  return frameOf(FRAME.HEADERS, stream, block);
}

/** Resets a stream. */
export function resetFrame(stream: number): Buffer {
  return frameOf(FRAME.RST_STREAM, stream, Buffer.of(0, 0, 0, 8));
}

const END_HEADERS = 4;

function field(index: number, value: string): Buffer {
  const name = index < 15 ? [index] : [15, index - 15];
  return Buffer.concat([Buffer.of(...name, value.length), Buffer.from(value)]);
}

function readFrames(socket: Socket, frames: RawFrame[]): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (piece: Buffer) => {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 9) {
      const end = 9 + rest.readUIntBE(0, 3);
      if (rest.length < end) break;
      frames.push({
        type: rest[3]!,
        flags: rest[4]!,
        stream: rest.readUInt32BE(5),
        payload: rest.subarray(9, end),
      });
      rest = rest.subarray(end);
    }
  });
}
