import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { deflateSync, gzipSync } from "node:zlib";
import { RequestMemory, type RequestShare } from "@tritonjs/server";
import type { InferenceRequest } from "@tritonjs/testing";
import { expect, it, onTestFinished, test } from "vitest";
import { fetchHandler } from "../../src/fetch.js";
import { http } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const path = "/v2/models/m/infer";
/** A tensor as the whole body. */
const raw = { "inference-header-content-length": "0" };
const LIMIT = 10_000;

/** A gzip body of many members, which takes long to unpack. */
const long = Buffer.concat(Array<Buffer>(512).fill(gzipSync(Buffer.alloc(1 << 20))));

type Memory = ConstructorParameters<typeof RequestMemory>[0];

/** A server whose requests wait until the test answers them. */
async function open(options: Memory = { byteSize: LIMIT }) {
  const service = new IdentityService(identityConfig("m", "UINT8"));
  const memory = new RequestMemory(options);
  service.requestMemory = memory;
  /** Shares of requests in order of arrival. */
  const shares: RequestShare[] = [];
  const makeShare = memory.share.bind(memory);
  memory.share = () => {
    const share = makeShare();
    shares.push(share);
    return share;
  };
  const port = await startHttp(service);
  const infer = (body: Uint8Array | readonly Uint8Array[], headers = {}) =>
    send(port, { path, headers: { ...raw, ...headers }, body });
  /** The next request that reaches the model; the test has to answer it. */
  const held = () =>
    new Promise<InferenceRequest>((resolve) => {
      service.onRequest = (request) => {
        service.onRequest = undefined;
        resolve(request);
      };
    });
  const used = () => service.requestMemory.usedBytes;
  /** Occupies the only decompression until it is cancelled. */
  const takeTurn = () => {
    const abort = new AbortController();
    const share = makeShare();
    const limits = { share, maxBytes: 2 ** 30, signal: abort.signal };
    const turn = service.requestMemory.unpack(long, "gzip", limits);
    turn.catch(() => share.release());
    onTestFinished(() => abort.abort());
    return async () => {
      abort.abort();
      await turn.catch(() => {});
      share.release();
    };
  };
  return { service, port, infer, held, used, shares, takeTurn };
}

/** One decompression at a time, with a gibibyte of memory. */
const oneTurn: Memory = { byteSize: 2 ** 30, maxDecompressions: 1, maxCompressionRatio: 0 };

const gone = (socket: Socket) => new Promise<void>((resolve) => void socket.once("close", () => resolve()));

test("long JSON counts as the tensors that it became, and is freed", async () => {
  const { service, infer, held, used } = await open({ byteSize: 250_000 });
  const count = 70_000;
  const body = Buffer.from(
    `{"inputs":[{"name":"IN","datatype":"UINT8","shape":[${count}],"data":[${Array(count).fill(7)}]}]}`,
  );
  const json = { "inference-header-content-length": String(body.length) };
  const atModel = held();
  const first = infer(body, json);
  const request = await atModel;
  expect(used()).toBe(count);
  // The next one fits as JSON, but not once its tensor counts as well.
  const refused = await infer(body, json);
  expect([refused.status, refused.text]).toEqual([
    503,
    expect.stringContaining("of request memory, got 70000"),
  ]);
  expect(used()).toBe(count);
  service.answer(request);
  expect((await first).status).toBe(200);
  expect(used()).toBe(0);
});

test("requests hold their bytes until they are answered, and requests beyond the budget are rejected", async () => {
  const { service, infer, held, used } = await open();
  const atModel = held();
  const first = infer(Buffer.alloc(6000));
  const request = await atModel;
  expect(used()).toBe(6000);
  const refused = await infer(Buffer.alloc(6000));
  expect(refused.status).toBe(503);
  expect(refused.headers["retry-after"]).toBe("1");
  expect(refused.text).toContain(
    `request refused: expected at most ${LIMIT - 6000} more bytes of request memory, got 6000 (6000 of ${LIMIT} are in use).`,
  );
  expect((await infer(Buffer.alloc(4000))).status).toBe(200);
  service.answer(request);
  expect((await first).status).toBe(200);
  expect(used()).toBe(0);
  expect((await infer(Buffer.alloc(6000))).status).toBe(200);
  expect(service.requestMemory.refusals.BUDGET).toBe(1);
});

test("a chunked body is rejected at the chunk that exceeds the budget", async () => {
  const { service, infer, held, used } = await open();
  const atModel = held();
  const first = infer(Buffer.alloc(6000));
  const request = await atModel;
  const chunks = Array.from({ length: 10 }, () => Buffer.alloc(1000));
  expect((await infer(chunks)).status).toBe(503);
  expect(used()).toBe(6000);
  service.answer(request);
  await first;
});

test("a single request may exceed the budget", async () => {
  const { infer, used } = await open();
  expect((await infer(Buffer.alloc(3 * LIMIT))).status).toBe(200);
  expect(used()).toBe(0);
});

test("a compressed body is counted by its unpacked bytes", async () => {
  const { service, infer, held, used } = await open();
  const atModel = held();
  const answer = infer(gzipSync(Buffer.alloc(9000)), { "content-encoding": "gzip" });
  const request = await atModel;
  expect(used()).toBe(9000);
  expect((await infer(gzipSync(Buffer.alloc(9000)), { "content-encoding": "gzip" })).status).toBe(503);
  service.answer(request);
  expect((await answer).status).toBe(200);
  expect(used()).toBe(0);
});

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
])("a bomb of %s is rejected for its ratio", async (encoding, compress) => {
  const { service, infer, used } = await open({});
  const bomb = compress(Buffer.alloc(16 << 20));
  const { status, text } = await infer(bomb, { "content-encoding": encoding });
  expect({ status, text }).toMatchObject({
    status: 400,
    text: expect.stringMatching(
      /the decompressed request has more than 100 times its compressed size of \d+ bytes/,
    ),
  });
  expect(service.requestMemory.refusals.RATIO).toBe(1);
  expect(used()).toBe(0);
});

test("a compressed body waits in line, and a stopping server waits for it", async () => {
  const { service, used, shares, takeTurn } = await open(oneTurn);
  const frontend = http({ port: 0 });
  const { port } = await frontend.start({ service });
  const endTurn = takeTurn();
  const body = gzipSync("waiting");
  const answer = send(port, { path, headers: { ...raw, "content-encoding": "gzip" }, body });
  await expect.poll(() => shares[0]?.bytes).toBe(body.length);
  const stopped = frontend.stop();
  await endTurn();
  expect((await answer).status).toBe(200);
  await stopped;
  expect(used()).toBe(0);
  expect(service.requestMemory.refusals).toEqual({ BUDGET: 0, QUEUE: 0, RATIO: 0 });
});

test("a compressed body is rejected when no more may wait", async () => {
  const { infer, takeTurn } = await open({ ...oneTurn, maxWaitingDecompressions: 0 });
  const endTurn = takeTurn();
  const { status, headers, text } = await infer(gzipSync("x"), { "content-encoding": "gzip" });
  expect({ status, retry: headers["retry-after"] }).toEqual({ status: 503, retry: "1" });
  expect(text).toContain("too many compressed requests wait to be decompressed (1 run, 0 wait)");
  await endTurn();
});

test.each(["while it waits for its turn", "while it is unpacked"])(
  "a client that leaves %s frees its bytes",
  async (when) => {
    const { service, port, used, shares, takeTurn } = await open(oneTurn);
    const endTurn = when === "while it is unpacked" ? undefined : takeTurn();
    const body = gzipSync(Buffer.alloc(60 << 20));
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`;
    const socket = connect(
      port,
      "localhost",
      () => void socket.write(Buffer.concat([Buffer.from(head), body])),
    );
    const least = endTurn === undefined ? body.length + 1 : body.length;
    await expect.poll(() => shares[0]?.bytes ?? 0, { interval: 1 }).toBeGreaterThanOrEqual(least);
    socket.destroy();
    await gone(socket);
    await expect.poll(() => shares[0]!.bytes, { interval: 1 }).toBe(0);
    await endTurn?.();
    expect(used()).toBe(0);
    expect(service.requests).toEqual([]);
  },
);

it.each<[string, Uint8Array, Record<string, string>]>([
  ["is broken JSON", Buffer.from("{"), { "inference-header-content-length": "1" }],
  ["has a bad header", Buffer.from("{}"), { "inference-header-content-length": "100" }],
  ["is broken gzip", Buffer.from("no gzip"), { "content-encoding": "gzip" }],
  ["is half a gzip", gzipSync(randomBytes(5000)).subarray(0, 3000), { "content-encoding": "gzip" }],
])("no bytes stay reserved for a body that %s", async (_what, body, headers) => {
  const { infer, used } = await open();
  expect((await infer(body, headers)).status).toBeGreaterThanOrEqual(400);
  expect(used()).toBe(0);
});

it("no bytes stay reserved when a client leaves while it sends", async () => {
  const { port, used } = await open();
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n`;
  const socket = connect(port, "localhost", () => void socket.write(`${head}${"x".repeat(1000)}`));
  await expect.poll(used).toBe(1000);
  socket.destroy();
  await expect.poll(used).toBe(0);
});

it("a stream of responses holds its bytes until the last response", async () => {
  const { port, held, used } = await open();
  const atModel = held();
  const body = '{"IN":[1,2]}';
  const answer = send(port, { path: "/v2/models/m/generate_stream", body });
  const request = await atModel;
  const response = {
    modelName: "m",
    modelVersion: "1",
    id: "",
    parameters: request.parameters,
    outputs: new Map(),
  };
  request.respond(response, false);
  await new Promise(setImmediate);
  expect(used()).toBe(body.length);
  request.respond(response, true);
  expect((await answer).status).toBe(200);
  expect(used()).toBe(0);
});

it("the budget covers requests of the fetch handler", async () => {
  const service = new IdentityService(identityConfig("m", "UINT8"));
  service.requestMemory = new RequestMemory({ byteSize: LIMIT });
  const other = service.requestMemory.share();
  other.take(6000);
  const handler = fetchHandler({ service });
  const ask = (size: number) =>
    handler(
      new Request(`http://localhost${path}`, { method: "POST", headers: raw, body: new Uint8Array(size) }),
    );
  expect([(await ask(5000)).status, (await ask(4000)).status]).toEqual([503, 200]);
  expect(service.requestMemory.usedBytes).toBe(6000);
});
