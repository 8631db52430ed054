import { once } from "node:events";
import { connect } from "node:net";
import { batch, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type HttpOptions, http } from "../src/index.js";
import { PackedNumbers } from "../src/json/json-value.js";
import { parseJson } from "../src/json/parse-json.js";
import { IdentityService, identityConfig } from "./support/identity-service.js";
import { oneConnection, send } from "./support/send.js";
import { sendRaw, sendRawToEnd } from "./support/speak.js";
import { startHttp } from "./support/start-http.js";

const path = "/v2/models/m/infer";

const good = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

const maxInputSize = 1000;

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("limits", () => {
  it.each([
    ["raw", { "inference-header-content-length": "0" }, 1001, "Raw input has a byte_size (1001 bytes)"],
    [
      "of JSON and tensors",
      { "inference-header-content-length": "1" },
      80_000,
      "request body size of 80000 bytes",
    ],
  ])("a body %s has a limit of its own", async (_what, headers, size, reason) => {
    const port = await startHttp(identity(), { maxInputSize });
    const answer = await send(port, { path, headers, body: Buffer.alloc(size) });
    expect([answer.status, answer.text.includes(reason)]).toEqual([400, true]);
  });

  it("pipelined requests are served", async () => {
    const port = await startHttp(identity());
    const one = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{`;
    const two = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${good.length}\r\n\r\n${good}`;
    const answers = await sendRaw(port, one + two, '"data":[1]');
    expect(answers).toContain("HTTP/1.1 500");
    expect(answers).toContain("HTTP/1.1 200");
  });

  it("Expect: 100-continue is answered before the body", async () => {
    const port = await startHttp(identity());
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${good.length}\r\n\r\n`;
    expect(await sendRaw(port, head, "\r\n\r\n")).toMatch(/^HTTP\/1\.1 100 /);
  });

  it("Expect: 100-continue is not answered within an answer that waits for an earlier one", async () => {
    const service = identity();
    const port = await startHttp(service);
    service.onRequest = (request) => {
      if (service.requests.length === 1) return;
      service.answer(request);
      setImmediate(() => service.answer(service.requests[0]!));
    };
    // An answer that is written in pieces.
    const count = 20_000;
    const many = good.replace("[1]", `[${count}]`).replace("[1]", `[${Array(count).fill(1)}]`);
    const post = (body: string, headers = "") =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
    const second = post(many, "Expect: 100-continue\r\nConnection: close\r\n");
    const answers = (await sendRawToEnd(port, post(good) + second)).split("HTTP/1.1 ").slice(1);
    const [head, body] = answers.at(-1)!.split("\r\n\r\n");
    expect(head).toMatch(/^200 OK/);
    expect(head!.toLowerCase()).toContain(`content-length: ${body!.length}\r\n`);
  });

  it("a request that cannot be parsed is answered after the requests before it", async () => {
    const service = identity();
    const port = await startHttp(service);
    service.onRequest = async (request) => {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      service.answer(request);
    };
    const one = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${good.length}\r\n\r\n${good}`;
    const answers = (await sendRawToEnd(port, `${one}GARBAGE\r\n\r\n`)).split("HTTP/1.1 ").slice(1);
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(["200", "405"]);
  });
});

describe("a body over the limit", () => {
  it.each([
    ["declared", Buffer.alloc(1 << 20)],
    ["in chunks", Array.from({ length: 64 }, () => Buffer.alloc(1 << 14))],
  ])("%s is rejected, and its connection serves the next request", async (_how, body) => {
    const port = await startHttp(identity(), { maxInputSize });
    const agent = oneConnection();
    const refused = await send(port, { path, body, agent });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(
      /request JSON size of \d+ bytes exceeds the maximum allowed input size of 73536 bytes. Use http\(\{ maxInputSize \}\) to/,
    );
    expect((await send(port, { path, body: good, agent })).status).toBe(200);
    agent.destroy();
  });

  it("is rejected before it is sent", async () => {
    const port = await startHttp(identity(), { maxInputSize });
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n`;
    expect(await sendRaw(port, head, "exceeds")).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("a tensor in JSON", () => {
  const tensor = (count: number, element: string) =>
    `{"inputs":[{"name":"IN","datatype":"INT32","shape":[${count}],"data":[${Array(count).fill(element).join(", ")}]}]}`;

  it("may have as many bytes as the limit, however long its JSON is", async () => {
    const port = await startHttp(new IdentityService(identityConfig("m", "INT32", [-1])), {
      maxInputSize: 1 << 20,
    });
    const body = tensor(1 << 18, "-2000000000");
    expect(body.length).toBeGreaterThan(3 << 20);
    expect((await send(port, { path, body })).status).toBe(200);
  });

  it("is rejected for its own size, not that of its JSON", async () => {
    const port = await startHttp(identity(), { maxInputSize });
    const answer = await send(port, { path, body: tensor(251, "1") });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      400,
      {
        error:
          "JSON input 'IN' has a byte_size (1004 bytes) that exceeds the maximum allowed value of 1000 bytes. " +
          "Use http({ maxInputSize }) to increase the limit.",
      },
    ]);
  });

  it("cannot have more numbers than the limit has bytes, so that memory stays bounded", () => {
    const count = 1 << 21;
    const numbers = Buffer.from(`[${"1,".repeat(count - 1)}1]`);
    expect(() => parseJson(numbers, count - 1)).toThrow(
      `request JSON: expected at most ${count - 1} numbers, got more`,
    );
    expect(parseJson(numbers, count)).toBeInstanceOf(PackedNumbers);
  });
});

describe("a chunked body", () => {
  it("is put together", async () => {
    const chunks = [...Buffer.from(good)].map((byte) => Buffer.of(byte));
    expect((await send(await startHttp(identity()), { path, body: chunks })).status).toBe(200);
  });

  it("is rejected when it has too many chunks", async () => {
    const port = await startHttp(identity());
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(port, head + "1\r\n \r\n".repeat(65_537), "}");
    expect(answer).toContain("Chunked request body exceeds maximum of 65536 non-empty chunks.");
    expect(answer.toLowerCase()).toContain("connection: close");
  });
});

describe("a client that leaves", () => {
  it("while it sends is forgotten", async () => {
    const service = identity();
    const port = await startHttp(service);
    const socket = connect(port, "localhost");
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    await new Promise<void>((resolve) =>
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{`, () => resolve()),
    );
    socket.destroy();
    expect((await send(port, { path, body: good })).status).toBe(200);
    expect(service.requests).toHaveLength(1);
  });

  it("while it waits gets its request cancelled", async () => {
    const service = identity();
    const port = await startHttp(service);
    const cancelled = new Promise<void>((resolve) => {
      service.onRequest = (request) => {
        request.startExecution();
        request.signal.addEventListener("abort", () => resolve());
        socket.destroy();
      };
    });
    const socket = connect(port, "localhost", () => {
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${good.length}\r\n\r\n${good}`);
    });
    await cancelled;
  });
});

describe("early answers", () => {
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
});
