import { describe, expect, it } from "vitest";
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
