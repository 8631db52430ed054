import { once } from "node:events";
import { connect as connectHttp2, createServer, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { gunzipSync, inflateSync } from "node:zlib";
import { Tensor } from "@tritonjs/core";
import { decodeMessage, encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import type { CompressionLevel } from "../../../src/index.js";
import { CONNECTION_DEFAULTS, Connection } from "../../../src/transport/connection.js";
import { FrameReader, frame } from "../../../src/transport/frames.js";
import { timeoutOf } from "../../../src/transport/http2-transport.js";
import { FakeService, responseTo } from "../../support/fake-service.js";
import { framed, rawSession } from "../../support/raw-call.js";
import { serve } from "../../support/serve.js";

describe("frames", () => {
  const framed = (...messages: string[]) =>
    Buffer.concat(messages.flatMap((message) => frame([Buffer.from(message)])));

  const limitOf = (bytes: number) => ({ bytes, name: "an option" });

  describe("message frames", () => {
    test("are put together whatever the chunks", () => {
      const bytes = framed("one", "", "three", "x".repeat(300));
      for (const size of [1, 2, 3, 4, 5, 6, 7, 100, bytes.length]) {
        const reader = new FrameReader(limitOf(1000));
        const messages: string[] = [];
        for (let at = 0; at < bytes.length; at += size) {
          for (const { bytes: message } of reader.push(bytes.subarray(at, at + size)))
            messages.push(message.toString());
        }
        expect(messages).toEqual(["one", "", "three", "x".repeat(300)]);
      }
    });

    test("end at an address aligned for elements of any size when they arrive in chunks", () => {
      const bytes = framed("x".repeat(1000), "next");
      const reader = new FrameReader(limitOf(2000));
      expect(reader.push(bytes.subarray(0, 400))).toEqual([]);
      const [message, next] = reader.push(bytes.subarray(400));
      expect((message!.bytes.byteOffset + message!.bytes.length) % 8).toBe(0);
      expect(next!.bytes.toString()).toBe("next");
    });

    test("are copied out of their pieces, whose memory may then change", () => {
      const content = Buffer.from(Array.from({ length: 3_000_001 }, (_, i) => i));
      const bytes = Buffer.concat(frame([content]));
      const reader = new FrameReader(limitOf(bytes.length));
      const messages = [];
      for (let at = 0; at < bytes.length; at += 65_536) {
        const piece = Buffer.from(bytes.subarray(at, at + 65_536));
        messages.push(...reader.push(piece));
        piece.fill(0xff);
      }
      expect(messages).toHaveLength(1);
      expect(messages[0]!.bytes.equals(content)).toBe(true);
    });

    test.each([
      ["small", 1000, true],
      ["large", 100_000, false],
    ])(
      "that are %s and arrive in one piece have memory of their own only if they are large",
      (_, size, isView) => {
        const piece = Buffer.concat(frame([Buffer.alloc(size, 7)]));
        const [message] = new FrameReader(limitOf(size)).push(piece);
        expect(message!.bytes.buffer === piece.buffer).toBe(isView);
        expect(message!.bytes.equals(Buffer.alloc(size, 7))).toBe(true);
      },
    );

    test("above the limit are rejected from their header", () => {
      const reader = new FrameReader(limitOf(10));
      expect(() => reader.push(Buffer.of(0, 0xff, 0xff, 0xff, 0xff))).toThrow(
        "Received message larger than max (4294967295 vs. 10)",
      );
    });

    test.each([2, 3, 128, 255])("are rejected with the flag %i", (flag) => {
      const reader = new FrameReader(limitOf(10));
      const hex = flag.toString(16).padStart(2, "0");
      expect(() => reader.push(Buffer.of(flag, 0, 0, 0, 0))).toThrow(`Bad GRPC frame type 0x${hex}`);
    });

    test("are written without copying large parts", () => {
      const large = Buffer.alloc(600_000);
      const pieces = frame([Buffer.from("head"), large, Buffer.from("tail")]);
      expect(pieces).toHaveLength(3);
      expect(pieces[1]).toBe(large);
      const [message] = new FrameReader(limitOf(1e6)).push(Buffer.concat(pieces));
      expect(message!.bytes.length).toBe(600_008);
    });
  });

  describe("grpc-timeout", () => {
    test.each([
      ["1S", 1000],
      ["250m", 250],
      ["5000u", 5],
      ["2M", 120_000],
      ["99999999H", undefined],
      [undefined, undefined],
    ])("%s is %s milliseconds", (header, milliseconds) => {
      expect(timeoutOf(header)).toBe(milliseconds);
    });

    test.each(["", "S", "1", "-1S", "1x", "123456789m"])("%j is rejected", (header) => {
      expect(() => timeoutOf(header)).toThrow("Invalid grpc-timeout value");
    });
  });
});

const zeros = (count: number) => ({
  modelName: "m",
  inputs: [{ name: "X", datatype: "UINT8", shape: [count] }],
  rawInputContents: [new Uint8Array(count)],
});

/** The bytes and the encoding of the response to a call that accepts `encodings`. */
async function answerTo(url: string, count: number, encodings?: string) {
  const stream = rawSession(url).request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelInfer",
    "content-type": "application/grpc",
    te: "trailers",
    ...(encodings !== undefined && { "grpc-accept-encoding": encodings }),
  });
  stream.end(framed(encodeMessage(inference.ModelInferRequest, zeros(count))));
  let encoding: unknown;
  stream.on("response", (headers) => (encoding = headers["grpc-encoding"]));
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  const bytes = Buffer.concat(pieces);
  return { encoding, compressed: bytes[0] === 1, message: bytes.subarray(5) };
}

const contentsOf = (message: Buffer) =>
  decodeMessage(inference.ModelInferResponse, message).rawOutputContents[0]!.length;

describe("inference responses", () => {
  test.each(["low", "medium", "high"] as const)("are compressed at level %s", async (level) => {
    const { address, client } = await serve(new FakeService(), { inferResponseCompressionLevel: level });
    const { encoding, compressed, message } = await answerTo(address.url, 100_000, "identity, deflate, gzip");
    expect([encoding, compressed]).toEqual(["gzip", true]);
    expect(message.length).toBeLessThan(10_000);
    expect(contentsOf(gunzipSync(message))).toBe(100_000);
    const { rawOutputContents } = await client.infer(zeros(100_000));
    expect(rawOutputContents[0]).toHaveLength(100_000);
  });

  test("are compressed in an encoding that the client accepts", async () => {
    const level: CompressionLevel = "low";
    const { address } = await serve(new FakeService(), { inferResponseCompressionLevel: level });
    const deflated = await answerTo(address.url, 100_000, "identity,deflate");
    expect([deflated.encoding, deflated.compressed]).toEqual(["deflate", true]);
    expect(contentsOf(inflateSync(deflated.message))).toBe(100_000);
    for (const encodings of [undefined, "identity", "snappy"]) {
      const plain = await answerTo(address.url, 100_000, encodings);
      expect([plain.encoding, plain.compressed]).toEqual([undefined, false]);
    }
  });

  test("are not compressed when they are small or the option is unset", async () => {
    const { address } = await serve(new FakeService(), { inferResponseCompressionLevel: "high" });
    expect(await answerTo(address.url, 8, "gzip")).toMatchObject({ encoding: "gzip", compressed: false });
    const { address: usual } = await serve(new FakeService());
    expect(await answerTo(usual.url, 100_000, "gzip")).toMatchObject({ compressed: false });
  });

  test("keep their order on a stream and arrive before its end", async () => {
    const service = new FakeService({ modelTransactionPolicy: { decoupled: true } }, (request) => {
      for (let i = 0; i < 50; i++) {
        const bytes = new Uint8Array(i % 2 === 0 ? 200_000 : 10).fill(i);
        const outputs = new Map([["Y", Tensor.fromBytes("UINT8", [bytes.length], bytes)]]);
        request.respond(responseTo(request, outputs), i === 49);
      }
    });
    const { client } = await serve(service, { inferResponseCompressionLevel: "low" });
    const stream = client.stream();
    stream.write({ modelName: "m" });
    stream.end();
    const seen: number[] = [];
    for await (const { inferResponse } of stream) seen.push(inferResponse.rawOutputContents[0][0]);
    expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });
});

/** A server that answers each stream with this many bytes, and the session and the socket of its only connection. */
async function openServer(answerBytes: number) {
  const server = createServer();
  onTestFinished(() => void server.close());
  const sockets: Socket[] = [];
  const sessions: ServerHttp2Session[] = [];
  server.prependListener("connection", (socket: Socket) => sockets.push(socket));
  server.on("session", (session) => {
    new Connection(session, sockets.at(-1)!, CONNECTION_DEFAULTS);
    sessions.push(session);
  });
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200 });
    stream.end(Buffer.alloc(answerBytes));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, sockets, sessions };
}

const immediate = () => new Promise((resolve) => setImmediate(resolve));

describe("connection destroy", () => {
  it("a session that cannot send ends with its connection in the same turn", async () => {
    const { port, sockets, sessions } = await openServer(64 * 1024 * 1024);
    const raw = connect(port, "127.0.0.1");
    const settings = { initialWindowSize: 2 ** 30 };
    const client = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => raw, settings });
    onTestFinished(() => client.destroy());
    client.on("error", () => {});
    await once(client, "remoteSettings");
    client.setLocalWindowSize(2 ** 30);
    const stream = client.request({ ":path": "/" });
    stream.on("error", () => {});
    await once(stream, "response");
    // The client's process reads on only after this test: its window is open, and the system's buffers fill up.
    stream.pause();
    raw.pause();
    const [session, socket] = [sessions[0]!, sockets[0]!];
    const queued = () => {
      const size = session.state.outboundQueueSize ?? 0;
      if (size === 0) session.ping(() => {});
      return size;
    };
    // A ping stays in the queue when nothing can be sent any more.
    await expect.poll(queued).toBeGreaterThan(0);
    expect(socket.destroyed).toBe(false);
    session.destroy();
    await immediate();
    expect(socket.destroyed).toBe(true);
  });

  it("a session that has sent everything ends its connection after the client has got it", async () => {
    const { port, sockets, sessions } = await openServer(10);
    const client = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => client.destroy());
    const stream = client.request({ ":path": "/" });
    stream.resume();
    await once(stream, "end");
    await expect.poll(() => sessions[0]!.state.outboundQueueSize).toBe(0);
    sessions[0]!.destroy();
    await immediate();
    expect(sockets[0]!.destroyed).toBe(false);
    await once(client, "close");
  });
});

describe("connection without state", () => {
  /** Takes the property `state` from all sessions of this file, as Bun does with those that it ends. */
  beforeAll(async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    const opened = once(server, "session");
    await once(server, "listening");
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    let owner: object = (await opened)[0];
    while (!Object.hasOwn(owner, "state")) owner = Object.getPrototypeOf(owner);
    Object.defineProperty(owner, "state", { get: () => undefined });
    client.destroy();
    server.close();
  });

  it("the frontend answers, and stops with open connections, where sessions have no state", async () => {
    const { client, frontend, address } = await serve(new FakeService(), { stopGraceMs: 60_000 });
    expect(await client.ask("ServerLive", {})).toMatchObject({ live: true });
    const idle = rawSession(address.url);
    await once(idle, "remoteSettings");
    expect(idle.state).toBeUndefined();
    await Promise.all([once(idle, "close"), frontend.stop()]);
  });

  it("a session without a state is destroyed with its connection", async () => {
    const { frontend, address } = await serve(new FakeService(), { stopGraceMs: 0 });
    const client = rawSession(address.url);
    await once(client, "remoteSettings");
    const stream = client.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ServerLive",
    });
    stream.on("error", () => {});
    onTestFinished(() => void stream.destroy());
    await Promise.all([once(client, "close"), frontend.stop()]);
  });
});
