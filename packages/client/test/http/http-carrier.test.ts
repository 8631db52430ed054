import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { IdentityService, identityConfig } from "../../../http/test/support/identity-service.js";
import { startHttp } from "../../../http/test/support/start-http.js";
import { retryAfterOf } from "../../src/http/http-carrier.js";
import {
  type ClientOptions,
  type Fetch,
  HttpStatusError,
  InferenceServerClient,
  TritonError,
} from "../../src/http/index.js";
import { fakeFetch, json } from "./support/fake-fetch.js";
import { bindIdentity, deadUrl, serve, serveByHand } from "./support/serve.js";

const inputs = { IN: Float32Array.of(1, 2) };

/** A server that takes requests and never answers; with `head`, it sends only the head of an answer. */
async function silent({ head = false } = {}) {
  const { url, server } = await serveByHand((request, response) => {
    request.resume();
    if (head) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": wait\n\n");
    }
  });
  return { url, arrived: once(server, "request") as Promise<[IncomingMessage]> };
}

describe("an abort signal", () => {
  it("ends a call before it begins", async () => {
    const { fetch, sent } = fakeFetch(json({}));
    const client = new InferenceServerClient("host:1", { fetch });
    const reason = new Error("enough");
    const error = await client
      .infer("m", { inputs, signal: AbortSignal.abort(reason) })
      .catch((e: unknown) => e);
    expect(error).toMatchObject({
      name: "AbortError",
      code: "CANCELLED",
      message: "the request was cancelled",
      cause: reason,
    });
    expect(TritonError.is(error)).toBe(true);
    expect(sent).toHaveLength(0);
  });

  it.each([false, true])("ends a running call and its connection (answer head sent: %s)", async (head) => {
    const { url, arrived } = await silent({ head });
    const controller = new AbortController();
    const client = new InferenceServerClient(url);
    const pending = client.infer("m", { inputs, signal: controller.signal });
    const [request] = await arrived;
    const closed = new Promise((resolve) => request.socket.once("close", resolve).on("error", () => {}));
    controller.abort();
    await expect(pending).rejects.toMatchObject({
      name: "AbortError",
      code: "CANCELLED",
      cause: controller.signal.reason,
    });
    await closed;
  });

  it("cancels the request at the server", async () => {
    let started: (signal: AbortSignal) => void;
    const running = new Promise<AbortSignal>((resolve) => {
      started = resolve;
    });
    const url = await serve((triton) =>
      triton.bind({
        modelName: "m",
        inputs: [{ name: "IN", dtype: "FP32", shape: [2] }],
        outputs: [{ name: "OUT", dtype: "FP32", shape: [2] }],
        inferFunc: async (requests, { signal }) => {
          started(signal);
          await once(signal, "abort");
          return requests.map(({ inputs: { IN } }) => ({ OUT: IN }));
        },
        config: { batching: false },
      }),
    );
    const controller = new AbortController();
    const pending = new InferenceServerClient(url).infer("m", { inputs, signal: controller.signal });
    const signal = await running;
    controller.abort();
    await expect(pending).rejects.toMatchObject({ code: "CANCELLED" });
    if (!signal.aborted) await once(signal, "abort");
  });

  it("ends the pause before a retry", async () => {
    const controller = new AbortController();
    const { fetch, sent } = fakeFetch(() => {
      queueMicrotask(() => setImmediate(() => controller.abort()));
      return Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }));
    });
    const client = new InferenceServerClient("host:1", { fetch, retryDelayMs: 2 ** 30 });
    await expect(client.getServerMetadata({ signal: controller.signal })).rejects.toMatchObject({
      code: "CANCELLED",
    });
    expect(sent).toHaveLength(1);
  });

  it("may be shared by calls, which remove their listeners", async () => {
    const { fetch } = fakeFetch(json({}));
    const client = new InferenceServerClient("host:1", { fetch });
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    for (const calls of [1, 50]) {
      await Promise.all(Array.from({ length: calls }, () => client.getServerMetadata({ signal })));
    }
    expect(added).toHaveBeenCalledTimes(2);
    expect(removed).toHaveBeenCalledTimes(2);
  });

  it("ends all calls that share it", async () => {
    const fetch = (_url: string, { signal }: RequestInit) =>
      new Promise<Response>((_resolve, reject) => {
        signal!.addEventListener("abort", () => reject(signal!.reason));
      });
    const client = new InferenceServerClient("host:1", { fetch });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [1, 2, 3].map(() => client.getServerMetadata({ signal }));
    controller.abort();
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "CANCELLED" });
    await expect(client.getServerMetadata({ signal })).rejects.toMatchObject({ code: "CANCELLED" });
  });
});

describe("the timeout", () => {
  it.each([false, true])("ends a call with UNAVAILABLE (answer head sent: %s)", async (head) => {
    const { url } = await silent({ head });
    const client = new InferenceServerClient(url, { timeoutMs: 30 });
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the server did not answer within 30 ms",
    });
  });

  it("covers all attempts together", async () => {
    const { fetch } = fakeFetch(json({}, 503));
    const options = { fetch, retryUnavailable: true, retries: Number.POSITIVE_INFINITY, retryDelayMs: 0 };
    const client = new InferenceServerClient("host:1", options);
    await expect(client.getServerMetadata({ timeoutMs: 20 })).rejects.toMatchObject({
      message: "the server did not answer within 20 ms",
    });
  });

  it("can be infinite", async () => {
    const { fetch } = fakeFetch(json({ name: "x" }));
    const client = new InferenceServerClient("host:1", { fetch, timeoutMs: Number.POSITIVE_INFINITY });
    expect(await client.getServerMetadata()).toEqual({ name: "x" });
  });

  it("ends a silent stream", async () => {
    const { url } = await silent({ head: true });
    const client = new InferenceServerClient(url, { timeoutMs: 30 });
    await expect(client.generateStream("m", {}).next()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the server did not answer within 30 ms",
    });
  });
});

describe("closing the client", () => {
  it("ends running calls and rejects new ones", async () => {
    const { url, arrived } = await silent();
    let pending: Promise<unknown>;
    let closedClient: InferenceServerClient;
    {
      await using client = new InferenceServerClient(url);
      closedClient = client;
      pending = client.infer("m", { inputs }).catch((error: unknown) => error);
      await arrived;
    }
    expect(await pending).toMatchObject({ code: "CANCELLED", message: "the client was closed" });
    const error = await closedClient.isServerLive().catch((thrown: unknown) => thrown);
    expect(TritonError.is(error) && [error.code, error.message]).toEqual([
      "UNAVAILABLE",
      "the client is closed",
    ]);
  });
});

const answer = { outputs: [{ name: "OUT", datatype: "FP32", shape: [1], data: [1] }] };

/** A client whose first requests end with these `failures`. */
function failing(failures: (() => Response | Promise<Response>)[], options: ClientOptions = {}) {
  const { fetch, sent } = fakeFetch(...failures, json(answer));
  return { client: new InferenceServerClient("host:1", { fetch, retryDelayMs: 0, ...options }), sent };
}

const refused = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }));

const reset = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));

const untold = () => Promise.reject(new TypeError("Failed to fetch"));

const cut = () =>
  new Response(new ReadableStream({ start: (stream) => stream.error(new TypeError("terminated")) }));

const busy = json({ error: "Exceeds maximum queue size" }, 503);

describe("http carrier retries", () => {
  it("a call that changes the server is not retried", async () => {
    const { client, sent } = failing([reset]);
    await expect(client.loadModel("m")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(sent).toHaveLength(1);
  });

  it("the client distinguishes a refused connection from a broken one", async () => {
    const alive = await serve((triton) => bindIdentity(triton, "m", "FP32", [2]));
    const dead = await deadUrl();
    const addresses = [dead, alive];
    const fetch: Fetch = (url, init) => {
      const path = new URL(url).pathname;
      return globalThis.fetch(`${addresses.shift()}${path}`, init);
    };
    const client = new InferenceServerClient(alive, { fetch, retryDelayMs: 0 });
    expect((await client.infer("m", { inputs })).elements("OUT")).toEqual(inputs.IN);
    expect(addresses).toHaveLength(0);
  });

  it("the client reuses connections, even after an error and a retry", async () => {
    let connections = 0;
    let requests = 0;
    const { url, server } = await serveByHand((request, response) => {
      request.resume().on("end", () => {
        response.writeHead([503, 200, 404][requests++ % 3]!).end("{}");
      });
    });
    server.on("connection", () => connections++);
    const client = new InferenceServerClient(url, { retryUnavailable: true, retryDelayMs: 0 });
    for (let i = 0; i < 10; i++) {
      await client.getServerMetadata();
      await client.getServerMetadata().catch(() => {});
    }
    expect(requests).toBe(30);
    // The next request may come before its connection is free.
    expect(connections).toBeLessThanOrEqual(2);
  });
});

describe("an inference", () => {
  it("is retried when it was never sent", async () => {
    const { client, sent } = failing([refused, refused]);
    expect((await client.infer("m", { inputs })).elements("OUT")).toEqual(Float32Array.of(1));
    expect(sent).toHaveLength(3);
    expect(sent[2]!.body).toBe(sent[0]!.body);
  });

  it.each([
    ["its connection broke", reset],
    ["the failure is unknown", untold],
    ["its answer was cut short", cut],
    ["it is rejected with 503", busy],
  ])("is not retried when %s", async (_case, failure) => {
    const { client, sent } = failing([failure]);
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(sent).toHaveLength(1);
  });

  it("is retried after status 503 on request", async () => {
    const { client, sent } = failing([busy], { retryUnavailable: true });
    await client.infer("m", { inputs });
    expect(sent).toHaveLength(2);
  });

  it("is retried on request when it was lost, but not a step of a sequence", async () => {
    const { client, sent } = failing([reset, json({ error: "bad gateway" }, 502)], {
      retryLostInferences: true,
    });
    await client.infer("m", { inputs });
    expect(sent).toHaveLength(3);
    const steps = failing([reset], { retryLostInferences: true });
    const step = steps.client.infer("m", { inputs, sequence: { id: 1, start: true } });
    await expect(step).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(steps.sent).toHaveLength(1);
  });

  it("carries the id of its sequence in the client's header for proxies", async () => {
    const { client, sent } = failing([], { sequenceHeader: "x-sequence-id" });
    await client.infer("m", { inputs, sequence: { id: "a/ü", start: true } });
    expect(sent[0]!.headers.get("x-sequence-id")).toBe("a%2F%C3%BC");
  });

  it("carries no such header without a sequence", async () => {
    const { client, sent } = failing([], { sequenceHeader: "x-sequence-id" });
    await client.infer("m", { inputs });
    expect(sent[0]!.headers.has("x-sequence-id")).toBe(false);
  });

  it("is never retried after another status", async () => {
    const { client, sent } = failing([json({ error: "no" }, 400)], { retryUnavailable: true });
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({ message: "no" });
    expect(sent).toHaveLength(1);
  });
});

describe("a read-only call", () => {
  it.each([
    ["GET", refused, (c: InferenceServerClient) => c.getServerMetadata()],
    ["GET", reset, (c: InferenceServerClient) => c.getServerMetadata()],
    ["GET", cut, (c: InferenceServerClient) => c.getServerMetadata()],
    ["POST", reset, (c: InferenceServerClient) => c.getModelRepositoryIndex()],
  ])("is retried by %s", async (_method, failure, ask) => {
    const { client, sent } = failing([failure]);
    expect(await ask(client)).toEqual(answer);
    expect(sent).toHaveLength(2);
  });

  it("is retried up to the limit", async () => {
    const { client, sent } = failing([reset, reset, reset], { retries: 1 });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(sent).toHaveLength(2);
  });
});

describe("retry after", () => {
  const inputs = { IN: Int32Array.of(1) };

  const answer = json({ outputs: [{ name: "OUT", datatype: "FP32", shape: [1], data: [1] }] });

  /** A rejection with this header. */
  const refusal = (retryAfter: string, status: number) => () =>
    new Response('{"error":"too late"}', { status, headers: { "retry-after": retryAfter } });

  describe("the retry-after header", () => {
    const now = Date.UTC(2026, 0, 1);

    it.each([
      ["3", 3000],
      [" 0 ", 0],
      ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
      ["Thu Jan  1 00:00:10 2026 GMT", 10_000],
      ["Wed, 31 Dec 2025 23:59:00 GMT", 0],
    ])("'%s' is a time", (value, milliseconds) => {
      expect(retryAfterOf(new Headers({ "retry-after": value }), now)).toBe(milliseconds);
    });

    it.each(["", "-1", "1.5", "soon", "2026-01-01", "1e3"])("'%s' is not a time", (value) => {
      expect(retryAfterOf(new Headers({ "retry-after": value }), now)).toBeUndefined();
    });

    it("is optional", () => {
      expect(retryAfterOf(new Headers(), now)).toBeUndefined();
    });
  });

  describe("an error thrown by the client", () => {
    it("carries the retry time that the server gives", async () => {
      const service = new IdentityService(identityConfig("m", "INT32"));
      service.onRequest = () => {
        throw new TritonError("UNAVAILABLE", "too late", { retryAfterMs: 1200 });
      };
      const client = new InferenceServerClient(`localhost:${await startHttp(service)}`);
      const error = await client.infer("m", { inputs }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "UNAVAILABLE", message: "too late", retryAfterMs: 2000 });
    });

    it("carries no retry time when a retry cannot help", async () => {
      const { fetch } = fakeFetch(refusal("1", 400));
      const error = await new InferenceServerClient("host:1", { fetch })
        .infer("m", { inputs })
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "INVALID_ARG", message: "too late" });
      expect(error).not.toHaveProperty("retryAfterMs");
    });
  });

  describe("a retry", () => {
    it("waits as long as the server asks", async () => {
      vi.useFakeTimers();
      onTestFinished(() => void vi.useRealTimers());
      const { fetch, sent } = fakeFetch(refusal("2", 503), answer);
      const client = new InferenceServerClient("host:1", { fetch, retryUnavailable: true, retryDelayMs: 1 });
      const result = client.infer("m", { inputs });
      await vi.advanceTimersByTimeAsync(1999);
      expect(sent).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(sent).toHaveLength(2);
      expect((await result).elements("OUT")).toEqual(Float32Array.of(1));
    });

    it.each([{ timeoutMs: 2000 }, { timeoutMs: Number.POSITIVE_INFINITY, retryAfter: "9999999999" }])(
      "is skipped when it would come too late: $timeoutMs ms",
      async ({ timeoutMs, retryAfter = "2" }) => {
        const { fetch, sent } = fakeFetch(refusal(retryAfter, 503), answer);
        const client = new InferenceServerClient("host:1", { fetch, retryUnavailable: true, timeoutMs });
        const refused = client.infer("m", { inputs });
        await expect(refused).rejects.toMatchObject({
          message: "too late",
          retryAfterMs: Number(retryAfter) * 1000,
        });
        expect(sent).toHaveLength(1);
      },
    );
  });
});

describe("an error answer", () => {
  it.each([
    [400, "INVALID_ARG"],
    [401, "UNAVAILABLE"],
    [403, "UNAVAILABLE"],
    [404, "NOT_FOUND"],
    [405, "UNSUPPORTED"],
    [408, "UNAVAILABLE"],
    [413, "INVALID_ARG"],
    [429, "UNAVAILABLE"],
    [499, "CANCELLED"],
    [500, "INTERNAL"],
    [501, "UNSUPPORTED"],
    [502, "UNAVAILABLE"],
    [503, "UNAVAILABLE"],
    [504, "UNAVAILABLE"],
    [507, "INTERNAL"],
    [302, "UNKNOWN"],
    [201, "UNKNOWN"],
  ])("has for status %i the code %s, with the server's text", async (status, code) => {
    const { fetch } = fakeFetch(json({ error: "what was wrong" }, status));
    const client = new InferenceServerClient("host:1", { fetch });
    const error = await client.infer("m", { inputs }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "TritonError", code, message: "what was wrong" });
    expect((error as Error).cause).toEqual(new HttpStatusError(status));
  });

  it.each([
    [
      "<html>\n<body>Bad\u0000  Gateway</body></html>",
      "HTTP status 502: <html> <body>Bad Gateway</body></html>",
    ],
    ["", "HTTP status 502"],
    ['{"error":5}', 'HTTP status 502: {"error":5}'],
    ["x".repeat(10_000), `HTTP status 502: ${"x".repeat(200)}...`],
  ])("is quoted in short when its form is not the protocol's", async (body, message) => {
    const { fetch } = fakeFetch(() => new Response(body, { status: 502 }));
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "UNAVAILABLE", message });
  });

  it("has its code and text from a real server", async () => {
    const client = new InferenceServerClient(await serve((triton) => bindIdentity(triton, "m", "FP32", [2])));
    await expect(client.infer("none", { inputs })).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: "Request for unknown model: 'none' is not found",
    });
    await expect(client.infer("m", { inputs: { IN: Int32Array.of(1, 2) } })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("data-type is 'INT32', but model 'm' expects 'FP32'"),
    });
    expect((await client.infer("m", { inputs })).elements("OUT")).toEqual(inputs.IN);
  });
});

describe("an invalid answer", () => {
  it("is an internal error when it is not JSON", async () => {
    const { fetch } = fakeFetch(() => new Response("<html>hello</html>"));
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.getServerMetadata()).rejects.toMatchObject({
      code: "INTERNAL",
      message: "cannot read the server's answer: expected JSON: <html>hello</html>",
    });
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({ code: "INTERNAL" });
  });

  it("is UNAVAILABLE when its encoding is wrong", async () => {
    const { url } = await serveByHand((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end("{}");
    });
    const client = new InferenceServerClient(url, { retries: 0 });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a connection", () => {
  it("is UNAVAILABLE when it cannot be opened", async () => {
    const url = await deadUrl();
    const client = new InferenceServerClient(url, { retries: 0 });
    await expect(client.isServerLive()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `cannot connect to ${url}: ECONNREFUSED`,
    });
  });

  it("is UNAVAILABLE when it breaks before or during the answer", async () => {
    let status: number | undefined;
    const { url } = await serveByHand(async (request, response) => {
      request.resume();
      if (status !== undefined) {
        response.writeHead(status, { "content-length": 100 }).write('{"model_name"');
      }
      response.destroy();
    });
    const client = new InferenceServerClient(url, { retries: 0 });
    for (status of [undefined, 200, 400]) {
      await expect(client.infer("m", { inputs })).rejects.toMatchObject({
        code: "UNAVAILABLE",
        message: expect.stringContaining(`incomplete answer from ${url}: `),
      });
    }
  });
});
