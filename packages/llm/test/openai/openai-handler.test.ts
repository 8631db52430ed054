import { createHash } from "node:crypto";
import { request } from "node:http";
import { batch, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { fastify } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { type OpenAiOptions, openAiFetchHandler, openAiPlugin, openai } from "../../src/openai/index.js";
import { readJsonBody } from "../../src/openai/json-body.js";
import { openAiHandler } from "../../src/openai/openai-handler.js";
import { requestJson, requestJsonInParts } from "../../src/openai/request-fields.js";
import { allParts } from "../../src/turns.js";
import { bindText, eventsOf, newTriton, post, say, serveOpenAi, signalOf } from "./support/openai-server.js";

describe("the handler of OpenAI's API", () => {
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
        new Request("http://localhost/llm/v1/chat/completions", {
          method: "POST",
          body: JSON.stringify(body),
        });
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
});

async function serve(options: OpenAiOptions, security = {}) {
  const triton = newTriton({ security });
  bindText(triton, "m", () => say("fine"));
  const url = await serveOpenAi(triton, options);
  const status = async (path: string, key?: string, headers: Record<string, string> = {}) => {
    const sent = { ...(key && { authorization: `Bearer ${key}` }), ...headers };
    const body = { model: "m", prompt: "x" };
    const isGet = !path.endsWith("completions") && !path.endsWith("load");
    const answer = isGet
      ? await fetch(url + path, { headers: sent })
      : await post(url + path, body, { headers: sent });
    return answer.status;
  };
  return { url, status };
}

describe("API keys", () => {
  it("open all endpoints, or those of their groups; health needs none", async () => {
    const hash = createHash("sha256").update("hashed").digest("hex");
    const { url, status } = await serve({
      apiKeys: ["plain", { key: `sha256:${hash}` }, { key: "lists", groups: ["model-repository"] }],
    });
    expect(await status("/v1/completions", "plain")).toBe(200);
    expect(await status("/v1/completions", "hashed")).toBe(200);
    expect(await status("/v1/models", "lists")).toBe(200);
    expect(await status("/v1/completions", "lists")).toBe(403);
    expect(await status("/v1/completions", "wrong")).toBe(401);
    expect(await status("/v1/completions", `sha256:${hash}`)).toBe(401);
    expect(await status("/metrics")).toBe(401);
    expect(await status("/health/ready")).toBe(200);
    const refused = await fetch(`${url}/v1/models`);
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    expect(await refused.json()).toEqual({
      error: {
        message: "you did not provide an API key: expected the header 'Authorization: Bearer <key>'",
        type: "invalid_request_error",
        param: null,
        code: "invalid_api_key",
      },
      detail: expect.any(String),
    });
  });

  it("refuses options that would leave an endpoint open", () => {
    const wrong = [
      { apiKeys: [""] },
      { publicGroups: ["all"] },
      { apiKeys: [{ key: "k", groups: ["everything"] }] },
      { restrictions: { chat: { header: "k", value: "v" } } },
      { restrictions: { inference: { header: "k", value: "" } } },
    ] as unknown as OpenAiOptions[];
    const service = serviceOf(newTriton());
    for (const options of wrong) expect(() => openAiHandler(service, options)).toThrow(TritonError);
    expect(() => openai({ apiKey: "k" } as OpenAiOptions)).toThrow("apiKeys");
  });
});

describe("restrictions of groups", () => {
  it("need their header, as in Triton's OpenAI frontend", async () => {
    const { url, status } = await serve({ restrictions: { inference: { header: "Admin-Key", value: "s" } } });
    expect(await status("/v1/completions")).toBe(401);
    expect(await status("/v1/completions", undefined, { "admin-key": "s" })).toBe(200);
    expect(await status("/v1/models")).toBe(200);
    expect(await (await post(`${url}/v1/completions`, {})).json()).toEqual({
      error: {
        message: "This API is restricted, expecting header 'Admin-Key' with valid value",
        type: "authentication_error",
        param: null,
        code: "invalid_auth",
      },
      detail: "This API is restricted, expecting header 'Admin-Key' with valid value",
    });
  });
});

describe("the security of the Triton", () => {
  it("holds here too; the access token may come as the API key", async () => {
    const { status } = await serve(
      {},
      { accessToken: "token", restrictedEndpoints: ["inference", "model-repository"] },
    );
    expect(await status("/v1/completions")).toBe(403);
    expect(await status("/v1/completions", "token")).toBe(200);
    expect(await status("/v1/completions", undefined, { "triton-access-token": "token" })).toBe(200);
    expect(await status("/v1/models")).toBe(200);
    expect(await status("/v1/models/m/load")).toBe(403);
  });

  it("asks security.authenticate", async () => {
    const seen: unknown[] = [];
    const { status } = await serve(
      {},
      {
        authenticate: ({ headers, path, group }: { headers: Headers; path: string; group: string }) => {
          seen.push([path, group]);
          if (headers.get("authorization") === "Bearer good") return;
          throw new TritonError("UNAVAILABLE", "who are you?", { reason: "UNAUTHENTICATED" });
        },
      },
    );
    expect(await status("/v1/completions", "bad")).toBe(401);
    expect(await status("/v1/completions", "good")).toBe(200);
    expect(seen).toEqual([
      ["/v1/completions", "inference"],
      ["/v1/completions", "inference"],
    ]);
  });
});

/** White space that makes a document long, so that it is parsed in steps. */
const PADDING = " ".repeat(70_000);

const client = { gone: false };

const readLong = (text: string | Uint8Array) =>
  readJsonBody(client, Buffer.concat([Buffer.from(PADDING), Buffer.from(text)]));

describe("the JSON of a body", () => {
  it.each([
    '{"a":"\\ud83d","b":"\\ud83d\\ude00","c":"\\u0000\\"\\\\\\/\\b\\f\\n\\r\\t"}',
    '{"a":1,"a":2,"__proto__":{"b":1},"constructor":3,"":4}',
    '{"numbers":[0,-0,1.5,-1e-7,1E+400,123456789012345678901234567890,0.1]}',
    '{"deep":[[[{"a":[true,false,null,{}]}]],[]] }\r\n\t ',
    `{"text":"${"жизнь 😀 ".repeat(20_000)}","escapes":"${"\\n\\\\".repeat(50_000)}"}`,
    `{"list":[${Array.from({ length: 20_000 }, (_, i) => `"${i}"`).join(",")}]}`,
  ])("a long body has the values of JSON.parse: %.60s", async (text) => {
    expect(await readLong(text)).toEqual(JSON.parse(text));
  });

  it.each([
    ["nothing", ""],
    ["an end too early", '{"a":[1'],
    ["an open string", '{"a":"b'],
    ["a value too many", "{} {}"],
    ["a comma too many", '{"a":[1,]}'],
    ["a number that JSON does not have", '{"a":NaN}'],
    ["a zero in front", '{"a":01}'],
    ["a control character", '{"a":"\u0001"}'],
    ["a NUL at the end", "{}\0"],
    ["bytes that are not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ["a list", "[]"],
  ])("a long body with %s is refused as the short one is", async (_name, text) => {
    const refusal = { status: 400, code: "invalid_json" };
    await expect(readLong(text)).rejects.toMatchObject(refusal);
    await expect(readJsonBody(client, Buffer.from(text))).rejects.toMatchObject(
      typeof text === "string" && text.includes("NaN") ? { status: 400, param: "a" } : refusal,
    );
  });

  it("writes messages in parts as JSON.stringify does", () => {
    const long = `${"a".repeat(16_383)}😀\n"\\ \ud83d`.repeat(3);
    const messages = [
      { role: "user", content: long, name: undefined, parts: [{}, [], null, 1.5, true, ""] },
      { "": long },
    ];
    const text = allParts(requestJsonInParts(messages, "messages"));
    expect(JSON.parse(text)).toEqual(JSON.parse(requestJson(messages, "messages")));
    expect(text.replaceAll("\\ud83d\\ude00", "😀")).toBe(requestJson(messages, "messages"));
  });
});

describe("models that are loaded and unloaded", () => {
  /** Sends a POST with the path as it is: `fetch` would resolve its dots. */
  function post(url: string, path: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(url);
      request({ hostname, port, path, method: "POST" }, (response) => {
        response.resume();
        response.once("end", () => resolve(response.statusCode));
      })
        .once("error", reject)
        .end();
    });
  }

  describe("loading and unloading models", () => {
    it("lets one of several clients that load or unload a model at once do it", async () => {
      await using repository = await RepositoryOnDisk.create({
        "a/config.pbtxt": identityConfig(),
        "a/1/": "",
      });
      const triton = newTriton({
        modelRepository: repository.path,
        modelControlMode: "explicit",
        security: { restrictedEndpoints: [] },
      });
      const url = await serveOpenAi(triton);
      for (const change of ["load", "unload", "load"]) {
        const statuses = await Promise.all(
          Array.from({ length: 5 }, () => post(url, `/v1/models/a/${change}`)),
        );
        expect(statuses.sort()).toEqual([200, 400, 400, 400, 400]);
        const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: object[] };
        expect(data).toHaveLength(change === "load" ? 1 : 0);
      }
    });

    it.each([
      ["..", 400],
      ["%20%20", 400],
      ["%0A%09", 400],
      ["%2E%2E%2Fetc", 400],
      ["../../etc", 404],
      ["model/..", 404],
      ["/etc/passwd", 404],
      ["model/subdir", 404],
      ["model/", 404],
      ["", 404],
    ])("answers as Triton's OpenAI frontend does for the name '%s'", async (name, status) => {
      await using repository = await RepositoryOnDisk.create({});
      const triton = newTriton({
        modelRepository: repository.path,
        modelControlMode: "explicit",
        security: { restrictedEndpoints: [] },
      });
      const url = await serveOpenAi(triton);
      expect(await post(url, `/v1/models/${name}/load`)).toBe(status);
      expect(await post(url, `/v1/models/${name}/unload`)).toBe(status);
    });
  });
});

describe("GET /v1/models", () => {
  it("lists the models that are ready, and describes one", async () => {
    const triton = newTriton({ security: { restrictedEndpoints: [] } });
    bindText(triton, "m", () => say("fine"));
    bindText(triton, "n-2", () => say("fine"));
    const url = await serveOpenAi(triton);
    const model = (id: string) => ({
      id,
      object: "model",
      created: expect.any(Number),
      owned_by: "Triton Inference Server",
    });
    expect(await (await fetch(`${url}/v1/models`)).json()).toEqual({
      object: "list",
      data: [model("m"), model("n-2")],
    });
    for (const id of ["m", "n-2", "n%2D2"]) {
      expect(await (await fetch(`${url}/v1/models/${id}`)).json()).toEqual(model(decodeURIComponent(id)));
    }
    const unknown = await fetch(`${url}/v1/models/none`);
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toEqual({
      error: {
        message: "Unknown model: none",
        type: "invalid_request_error",
        param: "model",
        code: "model_not_found",
      },
      detail: "Unknown model: none",
    });
    const load = await post(`${url}/v1/models/m/unload`, {});
    expect(load.status).toBe(400);
    expect(await load.json()).toMatchObject({
      error: { message: "Model load/unload requires --model-control-mode=explicit" },
    });
  });
});

describe("GET /health/ready and /metrics", () => {
  it("answer as Triton's OpenAI frontend does", async () => {
    const triton = newTriton();
    const url = await serveOpenAi(triton);
    const ready = await fetch(`${url}/health/ready`);
    expect([ready.status, await ready.text()]).toEqual([200, ""]);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("nv_cpu_utilization");
  });
});

describe("a model of a repository", () => {
  it("is loaded and unloaded by clients in explicit mode, and has the chat template of its directory", async () => {
    const template = "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}";
    await using repository = await RepositoryOnDisk.create({
      "echo/config.pbtxt": identityConfig("", "TYPE_STRING"),
      "echo/1/tokenizer_config.json": JSON.stringify({ chat_template: template }),
    });
    const triton = newTriton({
      modelRepository: repository.path,
      modelControlMode: "explicit",
      security: { restrictedEndpoints: [] },
    });
    const url = await serveOpenAi(triton);
    const change = async (action: string, model = "echo") => {
      const answer = await post(`${url}/v1/models/${model}/${action}`, {});
      return [answer.status, await answer.json()];
    };
    const chat = () =>
      post(`${url}/v1/chat/completions`, { model: "echo", messages: [{ role: "user", content: "Hello" }] });
    expect((await chat()).status).toBe(404);
    expect(await change("load")).toMatchObject([200, { id: "echo", object: "model" }]);
    expect(await change("load")).toMatchObject([400, { error: { code: "already_loaded" } }]);
    expect(await change("load", "none")).toMatchObject([400, { error: { type: "invalid_request_error" } }]);
    expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: "user: Hello" } }] });
    expect(await change("unload")).toEqual([200, { status: "success", model: "echo" }]);
    expect(await change("unload")).toMatchObject([400, { error: { code: "not_loaded" } }]);
    expect([404, 503]).toContain((await chat()).status);
  });
});
