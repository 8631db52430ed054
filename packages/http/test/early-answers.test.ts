import { once } from "node:events";
import { connect } from "node:net";
import { batch, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type HttpOptions, http } from "../src/index.js";

/** More than the socket buffers of both sides hold, so that the client can only finish if the server reads. */
const BODY = Buffer.alloc(12_000_000, 32);
const RAW = "inference-header-content-length: 0\r\n";

/**
 * Sends a head and then the whole body, reads only afterwards, and resolves with the first line of the answer.
 *
 * @param waits whether the body is sent only when the server has answered
 */
async function writeThenRead(port: number, head: string, waits = false): Promise<string> {
  const socket = connect({ port, host: "localhost", allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.write(head);
  if (waits) await once(socket, "readable");
  await new Promise<void>((resolve, reject) =>
    socket.write(BODY, (error) => (error ? reject(error) : resolve())),
  );
  if (!waits) await once(socket, "readable");
  const answer = socket.read() as Buffer;
  socket.destroy();
  return answer.toString("latin1").split("\r\n")[0]!;
}

const post = (model: string, headers = "") =>
  `POST /v2/models/${model}/infer HTTP/1.1\r\nhost: x\r\n${RAW}${headers}content-length: ${BODY.length}\r\n\r\n`;

const refuse = () => {
  throw new TritonError("UNAVAILABLE", "no credentials", { reason: "UNAUTHENTICATED" });
};

const gates: (() => void)[] = [];
afterEach(() => {
  for (const open of gates.splice(0)) open();
});

/** A server of a model that holds its requests until the test has ended. */
async function serve(
  options: ConstructorParameters<typeof Triton>[0],
  httpOptions: HttpOptions = {},
  config: ModelOptions = {},
) {
  const triton = new Triton(options);
  onTestFinished(() => triton.close());
  const gate = new Promise<void>((resolve) => gates.push(resolve));
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
    outputs: [{ name: "y", dtype: "UINT8", shape: [-1] }],
    inferFunc: batch(async ({ x }) => {
      begin();
      await gate;
      return { y: x };
    }),
    config,
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0, ...httpOptions })] });
  return { triton, model, port: addresses.http!.port, begun };
}

/** Starts a request that the model holds. */
async function hold({ port, begun }: { port: number; begun: Promise<void> }): Promise<void> {
  const body = Buffer.alloc(90_000);
  const url = `http://localhost:${port}/v2/models/m/infer`;
  void fetch(url, { method: "POST", body, headers: { "inference-header-content-length": "0" } }).catch(
    () => {},
  );
  await begun;
}

describe.each([
  ["a kept connection", ""],
  ["a connection that ends after the answer", "connection: close\r\n"],
])("a client that reads only after it has sent its body, on %s", (_how, headers) => {
  it("gets 400 for a body over the limit", async () => {
    const { port } = await serve({}, { maxInputSize: 1000 });
    expect(await writeThenRead(port, post("m", headers))).toBe("HTTP/1.1 400 Bad Request");
  });

  it("gets 404 for an unknown model", async () => {
    const { port } = await serve({});
    expect(await writeThenRead(port, post("unknown", headers))).toBe("HTTP/1.1 404 Not Found");
  });

  it("gets 403 for a restricted route", async () => {
    const { port } = await serve({ security: { restrictedEndpoints: ["inference"] } });
    expect(await writeThenRead(port, post("m", headers))).toBe("HTTP/1.1 403 Forbidden");
  });

  it("gets 401 without credentials", async () => {
    const { port } = await serve({ security: { authenticate: refuse } });
    expect(await writeThenRead(port, post("m", headers))).toBe("HTTP/1.1 401 Unauthorized");
  });

  it("gets 503 when the memory of requests is used up", async () => {
    const server = await serve({ requestMemory: { byteSize: 100_000 } });
    await hold(server);
    expect(await writeThenRead(server.port, post("m", headers))).toBe("HTTP/1.1 503 Service Unavailable");
  });

  it("gets 503 when the queue of the model is full", async () => {
    const config = { maxBatchSize: 1, batcher: { defaultQueuePolicy: { maxQueueSize: 1 } } };
    const server = await serve({}, {}, config);
    await hold(server);
    const x = new Uint8Array(1);
    const waiting = server.model.inferSample({ x });
    await expect(server.model.inferSample({ x })).rejects.toMatchObject({ reason: "QUEUE_FULL" });
    expect(await writeThenRead(server.port, post("m", headers))).toBe("HTTP/1.1 503 Service Unavailable");
    for (const open of gates.splice(0)) open();
    await waiting;
  });

  it("gets 503 from a server that stops", async () => {
    const server = await serve({});
    await hold(server);
    const closed = server.triton.close();
    expect(await writeThenRead(server.port, post("m", headers))).toBe("HTTP/1.1 503 Service Unavailable");
    for (const open of gates.splice(0)) open();
    await closed;
  });
});

describe("a client that reads only after it has sent all", () => {
  it("gets 405 for bytes that are not HTTP", async () => {
    const { port } = await serve({});
    expect(await writeThenRead(port, "GARBAGE\r\n\r\n")).toBe("HTTP/1.1 405 Method Not Allowed");
  });

  it("gets 408 for a head that is not complete in time", async () => {
    const { port } = await serve({}, { limits: { headersTimeoutMs: 50, requestTimeoutMs: 100 } });
    // The whole body belongs to a header without an end.
    const head = "POST /v2/models/m/infer HTTP/1.1\r\nhost: x\r\nx-slow: ";
    expect(await writeThenRead(port, head, true)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("gets 408 for a body that is not complete in time", async () => {
    const { port } = await serve({}, { limits: { headersTimeoutMs: 50, requestTimeoutMs: 100 } });
    expect(await writeThenRead(port, post("m"), true)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("gets 431 for headers over the limit", async () => {
    const { port } = await serve({}, { limits: { maxHeaderSize: 1000 } });
    expect(await writeThenRead(port, post("m", `x: ${"a".repeat(2000)}\r\n`))).toMatch(/^HTTP\/1\.1 431 /);
  });
});

it("a request that arrives as the idle time of its connection ends is answered", async () => {
  const { port } = await serve({}, { limits: { keepAliveTimeoutMs: 50 } });
  const socket = connect({ port, host: "localhost" });
  onTestFinished(() => void socket.destroy());
  const ask = "GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n";
  socket.write(ask);
  expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
  socket.write(ask);
  // The event loop stands still beyond the idle time, as if the process was suspended.
  await new Promise<void>((resolve) => {
    setImmediate(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
      resolve();
    });
  });
  expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
});
