import { connect } from "node:net";
import { grpc } from "@tritonjs/grpc";
import { inferencePath } from "@tritonjs/protocol/grpc";
import { headerBlocks } from "../../../packages/perf/src/target/http2-frames.js";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import {
  frameBytes,
  framedMessage,
  type Http2Frame,
  http2Structure,
  PREFACE,
  readHttp2Frames,
  writeHttp2,
} from "../structures/http2-frames.js";
import { protobuf } from "../structures/protobuf.js";
import { GRPC_INFER } from "../support/grpc-seeds.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";

const END_STREAM = 1;
const END_HEADERS = 4;
const SETTINGS: Http2Frame = { type: 4, flags: 0, stream: 0, payload: Buffer.alloc(0) };
const ACK: Http2Frame = { ...SETTINGS, flags: 1 };
const PING: Http2Frame = { type: 6, flags: 0, stream: 0, payload: Buffer.from("fuzzping") };

/**
 * Frames of HTTP/2 and their header blocks over real sockets: each input is what a client sends on a connection. A PING
 * follows.
 */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const { addresses } = await triton.serve({
    frontends: [grpc({ port: 0, maxReceiveMessageSize: 1 << 20, reflection: true })],
  });
  const { port } = addresses.grpc!;
  const seeds = seedsOf();
  return {
    seeds,
    tokens: [
      ...V2_TOKENS,
      PREFACE,
      "grpc-timeout",
      "1S",
      "grpc-encoding",
      "gzip",
      ":path",
      "content-type",
      "te",
      Buffer.of(0x82, 0x86),
      Buffer.of(0x3f, 0xe1, 0x1f),
      Buffer.of(0x7f, 0xff, 0xff, 0x7f),
    ],
    structure: http2Structure(protobuf),
    lanes: 16,
    async run(input) {
      const { frames } = readHttp2Frames(await exchange(port, input));
      for (const frame of frames) {
        expectThat(
          frame.type <= 9 && frame.stream < 2 ** 31,
          () => `a frame of type ${frame.type} on ${frame.stream}`,
        );
      }
      if (frames.length === 0) return "closed";
      expectThat(
        frames[0]!.type === 4 || frames[0]!.type === 7,
        () => `began with a frame of type ${frames[0]!.type}`,
      );
      const away = frames.find(({ type }) => type === 7);
      if (away !== undefined) return `GOAWAY ${Buffer.from(away.payload).readUInt32BE(4)}`;
      return frames.some(({ type, flags }) => type === 6 && flags === 1) ? "PING answered" : "closed early";
    },
    async check() {
      const { frames } = readHttp2Frames(await exchange(port, seeds[0]!));
      expectThat(
        frames.some(({ type, payload }) => type === 0 && Buffer.from(payload).includes("fp32")),
        () => "no answer",
      );
    },
    close: () => triton.close(),
  };
}

function seedsOf(): Buffer[] {
  const call = (
    stream: number,
    name: string,
    message: Uint8Array,
    more: readonly (readonly [string, string])[] = [],
  ) => {
    const { plain, adding, added } = headerBlocks([
      ...([
        [":method", "POST"],
        [":scheme", "http"],
        [":path", inferencePath(name)],
        [":authority", "x"],
      ] as const),
      ...([
        ["content-type", "application/grpc"],
        ["te", "trailers"],
      ] as const),
      ...more,
    ]);
    const headers = (payload: Buffer): Http2Frame => ({ type: 1, flags: END_HEADERS, stream, payload });
    const data = { type: 0, flags: END_STREAM, stream, payload: framedMessage(message) };
    return { plain: [headers(plain), data], adding: [headers(adding), data], added: [headers(added), data] };
  };
  const empty = new Uint8Array();
  const first = call(1, "ModelInfer", GRPC_INFER[0]!);
  const padded = {
    ...first.plain[0]!,
    flags: END_HEADERS | 8,
    payload: Buffer.concat([Buffer.of(3), first.plain[0]!.payload, Buffer.alloc(3)]),
  };
  return [
    [...first.plain],
    [...first.adding, ...call(3, "ModelInfer", GRPC_INFER[1]!).added],
    [
      ...call(1, "ServerLive", empty).plain,
      ...call(3, "ModelMetadata", empty, [["grpc-timeout", "5S"]]).adding,
    ],
    [...call(1, "ModelStreamInfer", GRPC_INFER[8]!).plain],
    [padded, first.plain[1]!, { type: 2, flags: 0, stream: 3, payload: Buffer.from([0, 0, 0, 0, 16]) }],
    [...first.plain, { type: 3, flags: 0, stream: 1, payload: Buffer.from([0, 0, 0, 8]) }],
    [
      { type: 8, flags: 0, stream: 0, payload: Buffer.from([0, 0, 0xff, 0xff]) },
      ...first.plain,
      { type: 7, flags: 0, stream: 0, payload: Buffer.alloc(8) },
    ],
  ].map((frames) => writeHttp2([SETTINGS, ACK, ...frames]));
}

/** Milliseconds for an answer to the PING. A server that waits for the rest of a frame gives none. */
const IDLE_MS = 200;

/**
 * Sends bytes and a PING. Resolves with what the server sends until it ends the connection, gives it up with GOAWAY, or has
 * answered the PING. After its own GOAWAY, Node does not close the connection at once.
 */
function exchange(port: number, input: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect({ port, host: "127.0.0.1" });
    let isOver = false;
    const leave = (): void => {
      if (isOver) return;
      isOver = true;
      // Answers to calls may come behind that to the PING.
      setImmediate(() => setImmediate(() => setImmediate(() => socket.destroy())));
    };
    const idle = setTimeout(leave, IDLE_MS);
    socket.on("data", (part: Buffer) => {
      parts.push(part);
      const { frames } = readHttp2Frames(Buffer.concat(parts));
      if (frames.some(({ type, flags }) => type === 7 || (type === 6 && flags === 1))) leave();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(idle);
      resolve(Buffer.concat(parts));
    });
    socket.write(Buffer.concat([input, frameBytes(PING)]));
  });
}
