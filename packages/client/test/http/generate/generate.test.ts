import { once } from "node:events";
import type { Triton } from "@tritonjs/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type GenerateResponse, InferenceServerClient } from "../../../src/http/index.js";
import { readEvents } from "../../../src/http/infer-messages.js";
import { fakeFetch } from "../support/fake-fetch.js";
import { serve, serveByHand } from "../support/serve.js";

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

async function* inChunks(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array, void, void> {
  const at = [...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...at, bytes.length]) {
    yield bytes.slice(from, to);
    from = to;
  }
}

const encode = (text: string) => new TextEncoder().encode(text);

describe("server-sent events", () => {
  it("are the same whatever the chunks", async () => {
    const line = fc.string({ unit: fc.constantFrom("a", " ", ":", "ä", "😀", "{", '"') });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 5 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.array(fc.nat()),
        async (events, end, cuts) => {
          const text = events
            .map(
              (lines) =>
                `: note${end}id: 1${end}${lines.map((data) => `data: ${data}${end}`).join("")}${end}`,
            )
            .join("");
          expect(await collect(readEvents(inChunks(encode(text), cuts)))).toEqual(
            events.map((lines) => lines.join("\n")),
          );
        },
      ),
    );
  });

  it.each([
    ["data:a\n\ndata: b\n\n", ["a", "b"]],
    ["data:  a\n\n", [" a"]],
    ["data\n\n", [""]],
    ["\ufeffdata: a\n\n", ["a"]],
    [": only a comment\n\nevent: x\n\n", []],
    ["data: cut", ["cut"]],
    ["data: a\r\n\r\ndata: b\r\r", ["a", "b"]],
    ["", []],
  ])("%j is parsed", async (text, expected) => {
    expect(await collect(readEvents(inChunks(encode(text), [])))).toEqual(expected);
  });
});

/** A model that counts to `N` and fails at 13. */
function bindCounter(triton: Triton, onSignal?: (signal: AbortSignal) => void): void {
  triton.bind({
    modelName: "count",
    inputs: [{ name: "N", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "I", dtype: "INT32", shape: [1] }],
    inferFunc: async function* (requests, { signal }) {
      onSignal?.(signal);
      for (let i = 0; i < requests[0]!.inputs.N.get(0); i++) {
        if (i === 13) throw new Error("thirteen");
        yield [{ I: [i] }];
      }
    },
    config: { batching: false, decoupled: true },
  });
}

function counterOf(url: string) {
  const client = new InferenceServerClient(url);
  return { client, count: (n: number) => client.generateStream("count", { N: n }) };
}

describe("a decoupled model", () => {
  it("is read response by response", async () => {
    const { count } = counterOf(await serve((triton) => bindCounter(triton)));
    const responses = await collect(count(5));
    expect(responses.map(({ I }) => I)).toEqual([0, 1, 2, 3, 4]);
    expect(responses[0]).toEqual({ I: 0, model_name: "count", model_version: "1" });
    expect(await collect(count(0))).toEqual([]);
  });

  it("may fail after some responses", async () => {
    const { count } = counterOf(await serve((triton) => bindCounter(triton)));
    const seen: GenerateResponse[] = [];
    const reading = (async () => {
      for await (const response of count(20)) seen.push(response);
    })();
    await expect(reading).rejects.toMatchObject({
      code: "UNKNOWN",
      message: expect.stringContaining("thirteen"),
    });
    expect(seen).toHaveLength(13);
  });

  it("is cancelled when the loop is left", async () => {
    const signals: AbortSignal[] = [];
    const url = await serve((triton) => {
      triton.bind({
        modelName: "endless",
        inputs: [{ name: "N", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "I", dtype: "INT32", shape: [1] }],
        inferFunc: async function* (_requests, { signal }) {
          signals.push(signal);
          yield [{ I: [0] }];
          await once(signal, "abort");
        },
        config: { batching: false, decoupled: true },
      });
    });
    for await (const { I } of new InferenceServerClient(url).generateStream("endless", { N: 1 })) {
      expect(I).toBe(0);
      break;
    }
    const [signal] = signals;
    if (!signal!.aborted) await once(signal!, "abort");
  });

  it("is cancelled by a signal", async () => {
    const url = await serve((triton) => bindCounter(triton));
    const controller = new AbortController();
    const client = new InferenceServerClient(url);
    const { signal } = controller;
    const responses = client.generateStream("count", { N: 5 }, { signal });
    await responses.next();
    controller.abort();
    await expect(collect(responses)).rejects.toMatchObject({ name: "AbortError", code: "CANCELLED" });
  });

  it("rejects infer and generate", async () => {
    const { client } = counterOf(await serve((triton) => bindCounter(triton)));
    await expect(client.infer("count", { inputs: { N: Int32Array.of(1) } })).rejects.toMatchObject({
      code: "UNSUPPORTED",
    });
    await expect(client.generate("count", { N: 2 })).rejects.toThrow(
      "generate expects model to produce exactly 1 response",
    );
    expect(await client.generate("count", { N: 1 })).toMatchObject({ I: 0 });
  });

  it("is reported as NOT_FOUND when it is unknown", async () => {
    const { client } = counterOf(await serve((triton) => bindCounter(triton)));
    await expect(client.generateStream("none", {}).next()).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("a response stream", () => {
  it("has the code of the error that it begins with", async () => {
    const { fetch } = fakeFetch(
      () =>
        new Response('data: {"error":"no"}\n\n', {
          status: 503,
          headers: { "content-type": "text/event-stream; charset=utf-8" },
        }),
    );
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.generateStream("m", {}).next()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "no",
    });
  });

  it("is an internal error with another content type", async () => {
    const { fetch } = fakeFetch(
      () => new Response("{}", { headers: { "content-type": "application/json" } }),
    );
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.generateStream("m", {}).next()).rejects.toMatchObject({
      code: "INTERNAL",
      message: "the server's answer: expected text/event-stream, got application/json",
    });
  });

  it.each(["{", "5", "null", "[]"])("is an internal error with the event %s", async (data) => {
    const headers = { "content-type": "text/event-stream" };
    const { fetch } = fakeFetch(() => new Response(`data: ${data}\n\n`, { headers }));
    const client = new InferenceServerClient("host:1", { fetch });
    await expect(client.generateStream("m", {}).next()).rejects.toMatchObject({ code: "INTERNAL" });
  });

  it("is UNAVAILABLE when it breaks off", async () => {
    const { url } = await serveByHand((request, response) => {
      request.resume().on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write('data: {"I":0}\n\n', () => response.destroy());
      });
    });
    const responses = new InferenceServerClient(url).generateStream("m", {});
    const outcome = collect(responses);
    await expect(outcome).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
