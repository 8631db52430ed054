import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { Tensor } from "@tritonjs/core";
import { encodeMessage, inference } from "@tritonjs/grpc-messages";
import { describe, expect, test } from "vitest";
import { ResetAbuse } from "../../../src/transport/http2/client-abuse.js";
import { SilenceWatch } from "../../../src/transport/http2/silence-watch.js";
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

describe("the watch over a silent connection", () => {
  /** A connection whose timers the test runs by hand. */
  function watched({ answers = false, sends = true, calls = false } = {}) {
    const timers: { ms: number; action: () => void }[] = [];
    const seen = { pings: 0, destroyed: false, written: 0 };
    const session = {
      state: { outboundQueueSize: 0 },
      ping(done: (error: Error | null) => void) {
        seen.pings++;
        if (!sends) session.state.outboundQueueSize++;
        if (answers) done(null);
        return true;
      },
      destroy() {
        seen.destroyed = true;
      },
    };
    const socket = { bytesWritten: 0, writable: true, write: () => void seen.written++ };
    let now = Number.NEGATIVE_INFINITY;
    new SilenceWatch({
      session: session as unknown as ServerHttp2Session,
      socket: socket as unknown as Socket,
      lastSign: () => now,
      hasCalls: () => calls,
      after: (ms, action) => void timers.push({ ms, action }),
    });
    now = performance.now() - 20_000;
    /** Runs the timer that was set first, and returns its delay. */
    const next = () => {
      const { ms, action } = timers.shift()!;
      action();
      return ms;
    };
    return { seen, next, session };
  }

  test("pings once and then stops when the client answers", () => {
    const { seen, next } = watched({ answers: true });
    for (let turn = 0; turn < 20; turn++) next();
    expect(seen).toEqual({ pings: 1, destroyed: false, written: 0 });
  });

  test("destroys a session that no longer sends anything", () => {
    const { seen, next } = watched({ sends: false });
    expect([next(), next()]).toEqual([10_000, 5000]);
    expect(seen).toMatchObject({ pings: 1, destroyed: true });
  });

  test("pings an unresponsive client at growing intervals, and closes it after the ninth ping when it has no calls", () => {
    const { seen, next } = watched();
    let waitedMs = 0;
    while (!seen.destroyed) {
      const ms = next();
      if (ms !== 5000) waitedMs += ms;
    }
    expect(seen.pings).toBe(9);
    expect(seen.written).toBe(9);
    expect(waitedMs).toBeGreaterThan(3_600_000);
  });

  test("keeps a connection with calls open without an answer", () => {
    const { seen, next } = watched({ calls: true });
    for (let turn = 0; turn < 50; turn++) next();
    expect(seen.destroyed).toBe(false);
  });
});
