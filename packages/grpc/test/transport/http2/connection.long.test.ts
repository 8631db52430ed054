import { EventEmitter, once } from "node:events";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { Tensor } from "@tritonjs/core";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { CONNECTION_DEFAULTS, Connection, ResetAbuse } from "../../../src/transport/connection.js";
import { FakeService, responseTo } from "../../support/fake-service.js";
import { framed, rawCall, rawSession } from "../../support/raw-call.js";
import { FRAME, frameOf, openFrame, rawConnection, resetFrame } from "../../support/raw-frames.js";
import { serve } from "../../support/serve.js";

const STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer";
const message = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));

const works = async (port: number) =>
  expect((await rawCall(rawSession(`localhost:${port}`), message)).grpcStatus).toBe(0);

describe("a connection with many calls over http2", () => {
  test("limits calls to 1024, and refuses further calls of a client that ignores the limit", async () => {
    const { address } = await serve(new FakeService());
    const { socket, frames } = await rawConnection(address.port);
    const ids = Array.from({ length: 1100 }, (_, index) => 2 * index + 1);
    // Each message claims 2 GiB and sends nothing, so no memory may be reserved for it.
    const huge = Buffer.of(0, 0x7f, 0xff, 0xff, 0xff);
    for (const id of ids) {
      socket.write(openFrame(id, STREAM_INFER));
      if (id < 2000) socket.write(frameOf(FRAME.DATA, id, huge));
    }
    const refused = () => frames.filter(({ type }) => type === FRAME.RST_STREAM).map(({ stream }) => stream);
    await expect.poll(() => refused().length).toBe(1100 - 1024);
    expect(refused()).toEqual(ids.slice(1024));
    await works(address.port);
  });

  test("accepts no more calls while its client leaves too many bytes unread", async () => {
    const large = Tensor.fromBytes("UINT8", [4_000_000], new Uint8Array(4_000_000));
    const service = new FakeService(
      {},
      (request) =>
        void request.respond(responseTo(request, new Map(request.id === "large" ? [["Y", large]] : []))),
    );
    const { address } = await serve(service, { maxSessionMemory: 1_000_000 });
    const session = rawSession(address.url);
    const unread = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
    });
    unread.end(framed(encodeMessage(inference.ModelInferRequest, { modelName: "m", id: "large" })));
    await new Promise((resolve) => unread.once("response", resolve));
    await expect.poll(async () => (await rawCall(session, message)).reset).toBe(11);
    unread.resume();
    await new Promise((resolve) => unread.once("close", resolve));
    expect((await rawCall(session, message)).grpcStatus).toBe(0);
  });
});

describe("an HTTP/2 connection", () => {
  test("is closed soon after too many resets, and does not delay a stop", async () => {
    const { address, frontend } = await serve(new FakeService(), { stopGraceMs: 3_600_000 });
    const { socket, frames, closed } = await rawConnection(address.port);
    for (let id = 1; id < 200; id += 2) socket.write(openFrame(id, STREAM_INFER));
    for (let id = 201; id < 3201; id += 2)
      socket.write(Buffer.concat([openFrame(id, STREAM_INFER), resetFrame(id)]));
    await closed;
    expect(frames.some(({ type }) => type === FRAME.GOAWAY)).toBe(true);
    await works(address.port);
    await frontend.stop();
  });

  test("is closed by a stop after a protocol error, without waiting for its calls", async () => {
    const { address, frontend } = await serve(new FakeService(), { stopGraceMs: 3_600_000 });
    const { socket, frames, closed } = await rawConnection(address.port);
    socket.write(openFrame(1, STREAM_INFER));
    socket.write(frameOf(FRAME.DATA, 1, Buffer.alloc(0), 0xff_ffff));
    await expect.poll(() => frames.some(({ type }) => type === FRAME.GOAWAY)).toBe(true);
    await frontend.stop();
    await closed;
  });
});

describe("stream resets", () => {
  test("are too many after 900 at once", () => {
    const abuse = new ResetAbuse();
    const verdicts = Array.from({ length: 901 }, () => abuse.isOneTooMany(0));
    expect(verdicts.indexOf(true)).toBe(900);
  });

  test("are never too many at 30 a second", () => {
    const abuse = new ResetAbuse();
    const verdicts = Array.from({ length: 10_000 }, (_, count) => abuse.isOneTooMany((count * 1000) / 30));
    expect(verdicts).not.toContain(true);
  });
});

/** Timers and the monotonic clock stand still until the test advances them; sockets are not affected. */
function holdTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

const immediate = () => new Promise((resolve) => setImmediate(resolve));

/** Advances the held time in steps, so that each timer finds what has arrived by then. */
async function pass(totalMs: number, stepMs = 5000): Promise<void> {
  for (let ms = 0; ms < totalMs; ms += stepMs) {
    vi.advanceTimersByTime(Math.min(stepMs, totalMs - ms));
    await immediate();
    await immediate();
  }
}

describe("the watch over a silent connection", () => {
  /** A session whose client does what the test says. */
  function watched({ answers = false, sends = true, options = {} } = {}) {
    holdTime();
    const session = Object.assign(new EventEmitter(), {
      destroyed: false,
      state: { outboundQueueSize: 0, remoteWindowSize: 65_535 },
      pings: 0,
      ping(done: (error: Error | null) => void) {
        session.pings++;
        if (!sends) session.state.outboundQueueSize++;
        if (answers) done(null);
        return true;
      },
      destroy() {
        session.destroyed = true;
        session.emit("close");
      },
    });
    const socket = {
      remoteAddress: "::1",
      isDestroyed: false,
      destroy() {
        socket.isDestroyed = true;
      },
    };
    const connection = new Connection(session as unknown as ServerHttp2Session, socket as unknown as Socket, {
      ...CONNECTION_DEFAULTS,
      ...options,
    });
    const open = () => {
      const stream = Object.assign(new EventEmitter(), { rstCode: 0, aborted: false });
      connection.opened();
      stream.on("close", () => connection.closed(stream as unknown as ServerHttp2Stream));
      return stream;
    };
    return { session, socket, connection, open };
  }

  const HOUR = 3_600_000;

  test("pings a client that answers once in ten minutes", async () => {
    const { session } = watched({ answers: true });
    await pass(590_000);
    expect(session.pings).toBe(1);
    await pass(HOUR);
    expect(session.pings).toBeGreaterThanOrEqual(5);
    expect(session.pings).toBeLessThanOrEqual(7);
    expect(session.destroyed).toBe(false);
  });

  test("destroys a session that does not send a ping although the client has read everything", async () => {
    const { session, socket } = watched({ sends: false });
    await pass(10_000);
    expect([session.pings, session.destroyed]).toEqual([1, false]);
    await pass(5000);
    expect([session.destroyed, socket.isDestroyed]).toEqual([true, true]);
  });

  test("keeps a session whose ping waits behind a message of which a slow client takes a part each hour", async () => {
    const { session, connection, open } = watched({ sends: false });
    open();
    connection.writing(10_000_000);
    connection.sent();
    for (let hour = 0; hour < 48; hour++) {
      await pass(HOUR, 60_000);
      expect(session.destroyed).toBe(false);
      session.state.remoteWindowSize += 1000;
    }
    connection.written();
  });

  test("gives up a client that takes nothing for two hours, with and without calls", async () => {
    for (const hasCalls of [false, true]) {
      const { session, connection, open } = watched({ options: { keepaliveTimeMs: 1000 * HOUR } });
      if (hasCalls) open();
      connection.writing(10_000_000);
      connection.sent();
      await pass(HOUR, 60_000);
      expect(session.destroyed).toBe(false);
      await pass(HOUR, 60_000);
      expect([session.pings, session.destroyed]).toEqual([8, true]);
    }
  });

  test("counts the time for the answer to a keepalive ping from the moment that the ping leaves", async () => {
    const options = { keepaliveTimeMs: 10_000, keepaliveTimeoutMs: 1000 };
    const { session, connection, open } = watched({ sends: false, options });
    open();
    connection.writing(10_000_000);
    connection.sent();
    await pass(60_000, 500);
    expect(session.destroyed).toBe(false);
    // The client has taken the message, and the ping follows it.
    connection.written();
    session.state.outboundQueueSize = 0;
    await pass(1000, 500);
    expect(session.destroyed).toBe(false);
    await pass(1500, 500);
    expect(session.destroyed).toBe(true);
  });

  test("destroys a session at the time-out of a keepalive ping that was sent", async () => {
    const { session, open } = watched({ options: { keepaliveTimeMs: 10_000, keepaliveTimeoutMs: 1000 } });
    open();
    await pass(10_500, 500);
    expect(session.destroyed).toBe(false);
    await pass(1000, 500);
    expect(session.destroyed).toBe(true);
  });
});

describe("a client that reads slowly", () => {
  const BYTES = 10_000_000;

  /** Opens a call whose answer has 10 MB. The client grants a window for all of it. */
  async function callForLargeAnswer(options = {}) {
    const large = Tensor.fromBytes("UINT8", [BYTES], new Uint8Array(BYTES));
    const service = new FakeService(
      {},
      (request) => void request.respond(responseTo(request, new Map([["Y", large]]))),
    );
    holdTime();
    const { address } = await serve(service, options);
    const { socket, frames } = await rawConnection(address.port, Buffer.of(0, 4, 0x10, 0, 0, 0));
    socket.write(openFrame(1, "/inference.GRPCInferenceService/ModelInfer"));
    socket.pause();
    const grantWindow = () => socket.write(frameOf(FRAME.WINDOW_UPDATE, 0, Buffer.of(0x10, 0, 0, 0)));
    const ask = () => socket.write(frameOf(FRAME.DATA, 1, message, message.length, 1));
    const received = () => {
      const data = frames.filter(({ type }) => type === FRAME.DATA);
      return data.reduce((sum, { payload }) => sum + payload.length, 0);
    };
    const isOver = () =>
      frames.some(({ type, flags }) => type === FRAME.HEADERS && (flags & 1) === 1 && received() > BYTES);
    return { service, socket, frames, grantWindow, ask, received, isOver, port: address.port };
  }

  test("gets its whole answer when it reads nothing for an hour, answers no ping and then reads on", async () => {
    const { service, socket, grantWindow, ask, isOver, port } = await callForLargeAnswer();
    ask();
    await expect.poll(() => service.requests.length).toBe(1);
    await pass(12_000);
    grantWindow();
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
    await pass(3_600_000, 60_000);
    socket.resume();
    await expect.poll(isOver).toBe(true);
    vi.useRealTimers();
    await works(port);
  });

  test("gets its whole answer when it reads a part every ten seconds", async () => {
    const { service, socket, received, grantWindow, ask, isOver } = await callForLargeAnswer();
    grantWindow();
    ask();
    await expect.poll(() => service.requests.length).toBe(1);
    let before = -1;
    while (!isOver()) {
      await pass(10_000);
      const read = once(socket, "data");
      socket.resume();
      await read;
      socket.pause();
      expect(received()).toBeGreaterThanOrEqual(before);
      before = received();
    }
  });
});
