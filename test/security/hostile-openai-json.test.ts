import { describe, expect, it } from "vitest";
import {
  bindText,
  newTriton,
  say,
  serveOpenAi,
} from "../../packages/llm/test/openai/support/openai-server.js";

/** Strings of digits that older versions of V8 put into one bucket of a hash table. */
const colliding = Array.from({ length: 65_536 }, (_, index) => `"${index * 65_536}":1`).join(",");
const messages = '"messages":[{"role":"user","content":"Hello"}]';

async function serve() {
  const triton = newTriton();
  bindText(triton, "m", () => say("Good ", "day"));
  const url = await serveOpenAi(triton);
  return async (body: string) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers });
    return { status: answer.status, text: await answer.text() };
  };
}

describe("JSON keys with colliding hashes in an OpenAI request", () => {
  it.each([
    ["as fields", `{"model":"m",${messages},${colliding}}`],
    ["in a field that nobody reads", `{"model":"m",${messages},"other":{${colliding}}}`],
    ["in its metadata", `{"model":"m",${messages},"metadata":{${colliding}}}`],
  ])("%s are answered, and the next request too", async (_where, body) => {
    const ask = await serve();
    expect([200, 400]).toContain((await ask(body)).status);
    expect(await ask(`{"model":"m",${messages}}`)).toMatchObject({
      status: 200,
      text: expect.stringContaining("Good day"),
    });
  });
});

describe("names of properties that every object has in an OpenAI request", () => {
  it.each(["__proto__", "constructor", "toString"])(
    "such as %s change no object of the server",
    async (name) => {
      const ask = await serve();
      const before = Object.getOwnPropertyNames(Object.prototype);
      const hostile = `"${name}":{"polluted":true,"stream":true}`;
      const bodies = [
        `{${hostile},"model":"m",${messages}}`,
        `{"model":"m",${messages},"metadata":{${hostile}},"logit_bias":{${hostile}}}`,
        `{"model":"m","messages":[{"role":"user","content":"Hello",${hostile}}]}`,
        `{"model":"${name}",${messages}}`,
      ];
      for (const body of bodies) expect([200, 400, 404]).toContain((await ask(body)).status);
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
      expect((await ask(`{"model":"m",${messages}}`)).status).toBe(200);
    },
  );
});

it("a field of an OpenAI request that is nested 200,000 deep is answered", async () => {
  const ask = await serve();
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  expect([200, 400]).toContain((await ask(`{"model":"m",${messages},"other":${deep}}`)).status);
  expect((await ask(`{"model":"m",${messages}}`)).status).toBe(200);
});

/** Answers of the server's health that come before the one to a body. */
async function healthBeside(url: string, route: string, body: string): Promise<number> {
  let settled = false;
  const answer = fetch(`${url}${route}`, { method: "POST", body }).then(async (response) => {
    await response.arrayBuffer();
    settled = true;
    return response.status;
  });
  let answers = 0;
  for (; !settled; answers++) await (await fetch(`${url}/health/ready`)).arrayBuffer();
  expect([200, 400, 413]).toContain(await answer);
  return answers;
}

it.each([
  [
    "fields",
    '--B\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n'.repeat(200_000),
    "1024 parts",
  ],
  [
    "a long text",
    `--B\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n${"\n".repeat(8_000_000)}\r\n`,
    "'prompt'",
  ],
])("a form of %s is refused", async (_name, parts, text) => {
  const url = await serveOpenAi(newTriton());
  const headers = { "content-type": "multipart/form-data; boundary=B" };
  const body = `${parts}--B--\r\n`;
  const answer = await fetch(`${url}/v1/audio/transcriptions`, { method: "POST", headers, body });
  expect(answer.status).toBe(413);
  expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining(text) } });
});

it("health is answered while a chat of newlines is passed on", async () => {
  const triton = newTriton();
  bindText(triton, "m", () => say("Good day"));
  const url = await serveOpenAi(triton);
  const chat = { model: "m", messages: [{ role: "user", content: "\n".repeat(6_000_000) }] };
  expect(await healthBeside(url, "/v1/chat/completions", JSON.stringify(chat))).toBeGreaterThan(20);
});

it.each([
  ["newlines", JSON.stringify({ model: "m", prompt: "\n".repeat(6_000_000) })],
  ["small strings", JSON.stringify({ model: "m", prompt: Array(400_000).fill("x".repeat(20)) })],
  ["numbers", JSON.stringify({ model: "m", prompt: Array(500_000).fill(12345678) })],
  ["quotes", JSON.stringify({ model: "m", prompt: '"'.repeat(6_000_000) })],
])("health is answered while a body of %s is parsed", async (_name, body) => {
  const triton = newTriton();
  bindText(triton, "m", () => say("Good day"));
  const url = await serveOpenAi(triton);
  expect(await healthBeside(url, "/v1/completions", body)).toBeGreaterThan(10);
});
