import { batch } from "@tritonjs/core";
import { fastify } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { openAiFetchHandler, openAiPlugin } from "../../src/openai/index.js";
import { bindText, eventsOf, newTriton, post, say, serveOpenAi, signalOf } from "./support/openai-server.js";

const chat = { model: "m", messages: [{ role: "user", content: "Hello" }] };
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

describe("the fetch handler", () => {
  it("answers below its prefix, streams included", async () => {
    const triton = newTriton();
    bindText(triton, "m", () => say("Good ", "day"));
    await triton.ready();
    const handler = openAiFetchHandler(triton, { prefix: "/llm" });
    const request = (body: object) =>
      new Request("http://localhost/llm/v1/chat/completions", { method: "POST", body: JSON.stringify(body) });
    expect(await (await handler(request(chat))).json()).toMatchObject({
      choices: [{ message: { content: "Good day" } }],
    });
    const events = await eventsOf(await handler(request({ ...chat, stream: true })));
    expect(events).toHaveLength(5);
    expect((await handler(new Request("http://localhost/llm/v1/none"))).status).toBe(404);
  });

  it("cancels the generation when the body of its answer is cancelled", async () => {
    const triton = newTriton();
    const ended = signalOf();
    bindText(triton, "m", async function* ({ signal }) {
      try {
        yield { text: "first" };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      } finally {
        ended.reach();
      }
    });
    await triton.ready();
    const body = JSON.stringify({ ...chat, stream: true });
    const handler = openAiFetchHandler(triton);
    const answer = await handler(
      new Request("http://localhost/v1/chat/completions", { method: "POST", body }),
    );
    await answer.body!.cancel();
    await ended.reached;
  });
});

describe("the fastify plugin", () => {
  it("answers in an application, below its prefix and beside its own routes", async () => {
    const triton = newTriton();
    bindText(triton, "m", () => say("Good ", "day"));
    const app = fastify();
    closing.push(() => app.close());
    app.get("/own", async () => "mine");
    await triton.ready();
    await app.register(openAiPlugin, { triton, prefix: "/llm" });
    const url = await app.listen({ port: 0 });
    expect(await (await fetch(`${url}/own`)).text()).toBe("mine");
    expect(await (await fetch(`${url}/llm/v1/models`)).json()).toMatchObject({ data: [{ id: "m" }] });
    expect(await (await post(`${url}/llm/v1/chat/completions`, chat)).json()).toMatchObject({
      choices: [{ message: { content: "Good day" } }],
    });
    expect(
      await eventsOf(await post(`${url}/llm/v1/chat/completions`, { ...chat, stream: true })),
    ).toHaveLength(5);
  });
});

describe("every answer", () => {
  it("has the request id that the client or a proxy gave", async () => {
    const triton = newTriton();
    const url = await serveOpenAi(triton);
    const idOf = async (given: string) =>
      (await fetch(`${url}/v1/models`, { headers: { "x-request-id": given } })).headers.get("x-request-id");
    expect(await idOf("abc-1")).toBe("abc-1");
    expect(await idOf("with space")).toMatch(/^req_/);
  });

  it("lets pages of other origins read what they need", async () => {
    const triton = newTriton();
    const url = await serveOpenAi(triton, { cors: { origins: ["https://app.example.com"] } });
    const headers = { origin: "https://app.example.com" };
    const answer = await fetch(`${url}/v1/models`, { headers });
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
    expect(answer.headers.get("access-control-expose-headers")).toContain("x-request-id");
    const preflight = { ...headers, "access-control-request-method": "POST" };
    expect(
      (await fetch(`${url}/v1/chat/completions`, { method: "OPTIONS", headers: preflight })).status,
    ).toBe(200);
  });
});

describe("an overloaded model", () => {
  it("answers 429 with the time after which to try again", async () => {
    const triton = newTriton();
    const busy = signalOf();
    const done = signalOf();
    triton.bind({
      modelName: "slow",
      inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      config: { maxBatchSize: 1, batcher: { defaultQueuePolicy: { maxQueueSize: 1 } } },
      inferFunc: batch(async () => {
        busy.reach();
        await done.reached;
        return { text_output: [["done"]] };
      }),
    });
    const url = await serveOpenAi(triton);
    const send = (extra = {}) => post(`${url}/v1/completions`, { model: "slow", prompt: "x", ...extra });
    const first = send();
    await busy.reached;
    const others = Array.from({ length: 4 }, () => send());
    const statuses = async () => (await Promise.all(others)).map(({ status }) => status);
    const refused = await Promise.race(
      others.map(async (one) => ((await one).status === 429 ? await one : new Promise<never>(() => {}))),
    );
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({
      error: { type: "rate_limit_error", code: "rate_limit_exceeded" },
    });
    expect((await send({ stream: true })).status).toBe(429);
    done.reach();
    expect((await first).status).toBe(200);
    expect(await statuses()).toContain(200);
  });
});
