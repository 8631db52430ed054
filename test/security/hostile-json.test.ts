import { describe, expect, it } from "vitest";
import {
  bindText,
  newTriton,
  say,
  serveOpenAi,
} from "../../packages/llm/test/openai/support/openai-server.js";
import { useServer } from "./support/open-server.js";

const server = useServer();

/** Strings of digits that older versions of V8 put into one bucket of a hash table. */
const colliding = Array.from({ length: 65_536 }, (_, index) => `${index * 65_536}`);

const members = (names: readonly string[]) => names.map((name) => `"${name}":1`).join(",");
const x = '{"name":"x","datatype":"BYTES","shape":[1],"data":["a"]}';

async function ask(body: string, path = "/v2/models/echo/infer") {
  const answer = await fetch(`http://localhost:${server.httpPort}${path}`, { method: "POST", body });
  const text = await answer.text();
  await server.serves();
  return { status: answer.status, text };
}

describe("JSON keys with colliding hashes", () => {
  // Before Node 20.20.2, 22.22.2 and 24.14.1, a table with these keys takes 20 seconds and blocks the event loop.
  it("in several objects are read like any others", async () => {
    const objects = Array.from({ length: 4 }, () => `{${members(colliding)}}`);
    expect((await ask(`{"others":[${objects.join(",")}],"inputs":[${x}]}`)).status).toBe(200);
  });

  it("as parameters of a request are accepted up to 4096", async () => {
    const few = colliding.slice(0, 4096);
    expect((await ask(`{"parameters":{${members(few)}},"inputs":[${x}]}`)).status).toBe(200);
    const refused = await ask(`{"parameters":{${members(colliding)}},"inputs":[${x}]}`);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain(
      "request has 65536 parameters, which exceeds the maximum allowed number of 4096",
    );
  });

  it("in a request to generate are accepted up to 4096", async () => {
    const path = "/v2/models/echo/generate";
    const { status, text } = await ask(`{"x":"a",${members(colliding.slice(0, 4096))}}`, path);
    expect([status, text]).toEqual([200, expect.stringContaining('"y":"a"')]);
    const refused = await ask(`{"x":"a",${members(colliding.slice(0, 5000))}}`, path);
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("request has 5001 parameters"),
    ]);
  });
});

describe("JSON of many small parts", () => {
  const repeat = (part: string, count: number) => Array(count).fill(part).join(",");

  it.each([
    [
      "objects",
      `{"inputs":[${repeat('{"a":1}', 200_000)}]}`,
      400,
      "expected at most 131072 objects, got more",
    ],
    [
      "members",
      `{${Array.from({ length: 70_000 }, (_, i) => `"${i}":1`)}}`,
      400,
      "65536 members of an object",
    ],
    ["arrays", `{"inputs":[{},${repeat("[]", 600_000)}]}`, 400, "expected at most 524288 values, got more"],
    ["inputs", `{"inputs":[${repeat("[]", 600_000)}]}`, 400, "request has 600000 inputs"],
    [
      "dimensions",
      `{"inputs":[{"name":"x","datatype":"BYTES","shape":[${repeat("1", 600_000)}],"data":["a"]}]}`,
      400,
      "request has 600000 dimensions, which exceeds the maximum allowed number of 1024",
    ],
    [
      "strings for numbers",
      `{"inputs":[{"name":"x","datatype":"INT32","shape":[600000],"data":[${repeat('"a"', 600_000)}]}]}`,
      500,
      "attempt to access JSON non-signed-integer as signed-integer",
    ],
    [
      "numbers for strings",
      `{"inputs":[{"name":"x","datatype":"BYTES","shape":[600000],"data":[${repeat("1", 600_000)}]}]}`,
      500,
      "attempt to access JSON non-string as string",
    ],
  ])("is refused by its number of %s", async (_parts, body, status, reason) => {
    const refused = await ask(body);
    expect([refused.status, refused.text]).toEqual([status, expect.stringContaining(reason)]);
  });

  it("is served if it is one long tensor of strings", async () => {
    const count = 200_000;
    const long = `{"inputs":[{"name":"x","datatype":"BYTES","shape":[${count}],"data":[${repeat('"ab"', count)}]}]}`;
    const { status, text } = await ask(long);
    expect([status, JSON.parse(text).outputs?.[0].data.length ?? text]).toEqual([200, count]);
  });
});

describe("JSON that is nested 200,000 deep", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;

  it.each([
    ["in data", `{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":${deep}}]}`, 400],
    ["in a parameter", `{"parameters":{"a":${deep}},"inputs":[${x}]}`, 400],
    ["in a member that nobody reads", `{"other":${deep},"inputs":[${x}]}`, 200],
  ])("%s is answered", async (_where, body, status) => {
    expect((await ask(body)).status).toBe(status);
  });
});

describe("names of properties that every object has", () => {
  it.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "such as %s change no object of the server",
    async (name) => {
      const before = Object.getOwnPropertyNames(Object.prototype);
      const polluting = `"${name}":{"polluted":true},"x":"a"`;
      await ask(`{${polluting}}`, "/v2/models/echo/generate");
      await ask(`{"parameters":{"${name}":"yes"},${polluting},"inputs":[${x}]}`);
      await ask(`{"inputs":[{"name":"${name}","datatype":"BYTES","shape":[1],"data":["a"]}]}`);
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    },
  );

  it("reach a model as parameters", async () => {
    const { status, text } = await ask(`{"x":"a","__proto__":"yes"}`, "/v2/models/echo/generate");
    expect([status, text]).toEqual([200, expect.stringContaining('"y":"a"')]);
  });
});

describe("a hostile OpenAI request", () => {
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
    expect(await healthBeside(url, "/v1/chat/completions", JSON.stringify(chat))).toBeGreaterThan(5);
  });

  it.each([
    ["newlines", JSON.stringify({ model: "m", prompt: "\n".repeat(6_000_000) })],
    ["small strings", JSON.stringify({ model: "m", prompt: Array(400_000).fill("x".repeat(20)) })],
  ])("health is answered while a body of %s is parsed", async (_name, body) => {
    const triton = newTriton();
    bindText(triton, "m", () => say("Good day"));
    const url = await serveOpenAi(triton);
    expect(await healthBeside(url, "/v1/completions", body)).toBeGreaterThan(5);
  });
});
