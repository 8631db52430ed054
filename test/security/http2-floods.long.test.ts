import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  FRAME,
  frameOf,
  openFrame,
  rawConnection,
  resetFrame,
} from "../../packages/grpc/test/support/raw-frames.js";
import { openServer } from "./support/open-server.js";

const STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer";
const NONE = Buffer.alloc(0);
const END_STREAM = 1;

/** Writes frames until the server closes the connection. A flood without a limit would run until the test fails. */
async function floodUntilClosed(socket: Socket, piece: (round: number) => Buffer): Promise<number> {
  let round = 0;
  while (!socket.destroyed) {
    socket.write(piece(round++));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return round;
}

/** Frames for one write. */
const several = (count: number, frame: (index: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => frame(index)));

describe("a flood of HTTP/2 frames ends its connection, and other clients are served:", () => {
  it("rapid reset", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    await floodUntilClosed(socket, (round) =>
      several(50, (index) => {
        const id = 2 * (50 * round + index) + 1;
        return Buffer.concat([openFrame(id, STREAM_INFER), resetFrame(id)]);
      }),
    );
    await server.serves();
  });

  it("pings", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    await floodUntilClosed(socket, () => several(10, () => frameOf(FRAME.PING, 0, Buffer.alloc(8))));
    await server.serves();
  });

  it("CONTINUATION", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    socket.write(frameOf(FRAME.HEADERS, 1, Buffer.of(0x83, 0x86), 2, 0));
    // A header without indexing: 1 KiB of value under a name of one letter.
    const header = Buffer.concat([Buffer.of(0, 1, 0x78, 0x7f, 0x81, 0x07), Buffer.alloc(1024, 0x61)]);
    await floodUntilClosed(socket, () =>
      several(8, () => frameOf(FRAME.CONTINUATION, 1, header, header.length, 0)),
    );
    await server.serves();
  });

  it("empty DATA", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    socket.write(openFrame(1, STREAM_INFER));
    await floodUntilClosed(socket, () => several(200, () => frameOf(FRAME.DATA, 1, NONE)));
    await server.serves();
  });

  it("calls beyond the limit on a connection", async () => {
    const server = await openServer({ grpc: { maxConcurrentStreams: 100 } });
    const { socket } = await rawConnection(server.grpcPort);
    await floodUntilClosed(socket, (round) =>
      several(100, (index) => openFrame(2 * (100 * round + index) + 1, STREAM_INFER)),
    );
    await server.serves();
  });
});

describe("a client that never reads", () => {
  it.each([
    ["acknowledgements of settings", () => frameOf(FRAME.SETTINGS, 0, NONE)],
    ["answers to pings, on a server without a limit on pings", () => frameOf(FRAME.PING, 0, Buffer.alloc(8))],
  ])("cannot make the server queue endless %s", async (_what, frame) => {
    const server = await openServer({ grpc: { http2MaxPingStrikes: 0 } });
    const { socket } = await rawConnection(server.grpcPort);
    socket.pause();
    let written = 0;
    // The server stops reading, or ends the connection, when its own frames are not read.
    while (!socket.destroyed && written < 64 * 2 ** 20) {
      const piece = several(5000, frame);
      written += piece.length;
      const isWritten = new Promise((resolve) => socket.write(piece, resolve));
      const isStuck = new Promise((resolve) => setTimeout(resolve, 300, "stuck").unref());
      if ((await Promise.race([isWritten, isStuck])) === "stuck") break;
    }
    expect(written).toBeLessThan(64 * 2 ** 20);
    await server.serves();
  });
});

describe("a frame of a wrong length in the read that ends its session", () => {
  const goaway = frameOf(FRAME.GOAWAY, 0, Buffer.alloc(8));
  const call = openFrame(1, STREAM_INFER);
  const badPing = frameOf(FRAME.PING, 0, Buffer.alloc(7));
  it.each([
    ["GOAWAY and a call", [goaway, call]],
    ["GOAWAY and a call that is reset", [goaway, call, resetFrame(1)]],
  ])("behind %s stops no other client", async (_what, frames) => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    await new Promise((resolve) => socket.write(Buffer.concat([...frames, badPing]), resolve));
    await server.serves();
  });
});

describe("frames that cost nothing to send", () => {
  it("of settings and priorities do not stop other clients", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    for (let round = 0; round < 100 && !socket.destroyed; round++) {
      socket.write(several(100, () => frameOf(FRAME.SETTINGS, 0, NONE)));
      socket.write(
        several(100, (index) => frameOf(FRAME.PRIORITY, 2 * index + 1, Buffer.of(0, 0, 0, 0, 15))),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    await server.serves();
  });

  it("hold back no other connection when they leave calls half open", async () => {
    const server = await openServer();
    for (let connection = 0; connection < 10; connection++) {
      const { socket } = await rawConnection(server.grpcPort);
      socket.write(several(100, (index) => openFrame(2 * index + 1, STREAM_INFER)));
      socket.write(frameOf(FRAME.DATA, 1, NONE, 0, END_STREAM));
    }
    await server.serves();
  });
});

describe("a flood of headers", () => {
  it("ends its call, and the connection serves the next one", async () => {
    const server = await openServer();
    const session = connectHttp2(`http://localhost:${server.grpcPort}`);
    onTestFinished(() => session.destroy());
    session.on("error", () => {});
    const ask = (headers: Record<string, string>) =>
      new Promise<unknown>((resolve) => {
        const call = session.request({
          ":method": "POST",
          ":path": "/inference.GRPCInferenceService/ServerLive",
          "content-type": "application/grpc",
          te: "trailers",
          ...headers,
        });
        let answer: unknown;
        call.on("response", (got) => (answer = got["grpc-status"] ?? got[":status"]));
        call.on("trailers", (got) => (answer = got["grpc-status"]));
        call.on("error", (error) => (answer ??= (error as NodeJS.ErrnoException).code));
        call.on("close", () => resolve(answer));
        call.resume();
        call.end(Buffer.alloc(5));
      });
    const flood = Object.fromEntries(
      Array.from({ length: 2000 }, (_, index) => [`x-${index}`, "v".repeat(50)]),
    );
    expect(await ask(flood)).not.toBe("0");
    await server.serves();
  });
});
