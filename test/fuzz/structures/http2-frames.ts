import { bytes } from "./bytes.js";
import { border, type MutationSource, pick, type Structure } from "./structure.js";

/** What an HTTP/2 client sends before its frames. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** A frame of HTTP/2. */
export interface Http2Frame {
  type: number;
  flags: number;
  stream: number;
  payload: Uint8Array;
  /** Stated length; that of the payload unless given. */
  length?: number;
}

/** Writes frames after the preface. */
export function writeHttp2(frames: readonly Http2Frame[]): Buffer {
  return Buffer.concat([PREFACE, ...frames.map(frameBytes)]);
}

/** Writes one frame. */
export function frameBytes({ type, flags, stream, payload, length = payload.length }: Http2Frame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xff_ffff, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** Reads whole frames; the rest is left out. */
export function readHttp2Frames(input: Uint8Array): { readonly frames: Http2Frame[]; readonly rest: Buffer } {
  const all = Buffer.from(input);
  const frames: Http2Frame[] = [];
  let at = 0;
  while (at + 9 <= all.length) {
    const end = at + 9 + all.readUIntBE(at, 3);
    if (end > all.length) break;
    const payload = all.subarray(at + 9, end);
    frames.push({ type: all[at + 3]!, flags: all[at + 4]!, stream: all.readUInt32BE(at + 5), payload });
    at = end;
  }
  return { frames, rest: all.subarray(at) };
}

/**
 * The frames of an HTTP/2 connection behind its preface.
 *
 * @param inner form of what DATA frames carry
 */
export function http2Structure(inner: Structure): Structure {
  return {
    mutate(input, source) {
      const { random, other } = source;
      if (random.chance(0.05)) return bytes.mutate(input, source);
      const { frames } = readHttp2Frames(input.subarray(PREFACE.length));
      const others = readHttp2Frames(other.subarray(PREFACE.length)).frames;
      if (frames.length === 0) return bytes.mutate(input, source);
      pick(random, CHANGES)(frames, source, { inner, others });
      return writeHttp2(frames);
    },
  };
}

interface FrameParts {
  readonly inner: Structure;
  readonly others: readonly Http2Frame[];
}

type Change = (frames: Http2Frame[], source: MutationSource, parts: FrameParts) => void;

const DATA = 0;
const MESSAGE_HEAD = 5;

const CHANGES: readonly Change[] = [
  (frames, { random }) => void frames.splice(random.below(frames.length), 1),
  function repeat(frames, { random }) {
    const frame = pick(random, frames);
    const times = random.chance(0.1) ? 60 : 1 + random.below(3);
    frames.splice(random.below(frames.length + 1), 0, ...Array.from({ length: times }, () => ({ ...frame })));
  },
  function exchange(frames, { random }) {
    const [i, j] = [random.below(frames.length), random.below(frames.length)];
    [frames[i], frames[j]] = [frames[j]!, frames[i]!];
  },
  function takeOfOther(frames, { random }, { others }) {
    if (others.length > 0) frames.splice(random.below(frames.length + 1), 0, { ...pick(random, others) });
  },
  (frames, { random }) => {
    pick(random, frames).type = random.below(random.chance(0.9) ? 11 : 256);
  },
  (frames, { random }) => {
    pick(random, frames).flags ^= 1 << random.below(8);
  },
  (frames, { random }) => {
    pick(random, frames).stream = random.chance(0.8)
      ? random.below(10)
      : Number(BigInt.asUintN(32, border(random)));
  },
  (frames, { random }) => {
    pick(random, frames).length = Number(BigInt.asUintN(24, border(random)));
  },
  changePayload,
  changePayload,
  function changeMessage(frames, source, { inner }) {
    const messages = frames.filter(({ type, payload }) => type === DATA && payload.length > MESSAGE_HEAD);
    if (messages.length === 0) return;
    const frame = pick(source.random, messages);
    const message = inner.mutate(frame.payload.subarray(MESSAGE_HEAD), source);
    frame.payload = framedMessage(message, frame.payload[0]!);
  },
  function cutInTwo(frames, { random }) {
    const at = random.below(frames.length);
    const frame = frames[at]!;
    const place = random.below(frame.payload.length + 1);
    const second = {
      ...frame,
      type: frame.type === 1 ? 9 : frame.type,
      payload: frame.payload.subarray(place),
    };
    const first = { ...frame, flags: frame.type === 1 ? frame.flags & ~4 : frame.flags & ~1 };
    frames.splice(at, 1, { ...first, payload: frame.payload.subarray(0, place) }, second);
  },
  function changeSetting(frames, { random }) {
    const payload = Buffer.alloc(6);
    payload.writeUInt16BE(random.below(10), 0);
    payload.writeUInt32BE(Number(BigInt.asUintN(32, border(random))), 2);
    frames.splice(random.below(frames.length + 1), 0, { type: 4, flags: 0, stream: 0, payload });
  },
  function changeWindow(frames, { random }) {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(Number(BigInt.asUintN(32, border(random))));
    const stream = pick(random, frames).stream;
    frames.splice(random.below(frames.length + 1), 0, { type: 8, flags: 0, stream, payload });
  },
];

function changePayload(frames: Http2Frame[], source: MutationSource, { others }: FrameParts): void {
  const frame = pick(source.random, frames);
  const other = others.length === 0 ? source.other : pick(source.random, others).payload;
  frame.payload = bytes.mutate(frame.payload, { ...source, other });
}

/** A message as gRPC frames it. */
export function framedMessage(message: Uint8Array, compressed = 0): Buffer {
  const head = Buffer.alloc(MESSAGE_HEAD);
  head[0] = compressed;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
