import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { InferenceServerClient, TritonError } from "../../../src/http/index.js";
import { fakeFetch, json } from "../support/fake-fetch.js";
import { serve, serveByHand } from "../support/serve.js";

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
