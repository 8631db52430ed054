import { describe, expect, it } from "vitest";
import { type ClientOptions, type Fetch, InferenceServerClient } from "../../../src/http/index.js";
import { fakeFetch, json } from "../support/fake-fetch.js";
import { bindIdentity, deadUrl, serve, serveByHand } from "../support/serve.js";

const inputs = { IN: Float32Array.of(1, 2) };
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
