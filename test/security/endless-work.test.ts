import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { textGeneration, textGenerator } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORIES } from "../../packages/llm/test/support/stories.js";
import { useServer } from "./support/open-server.js";

describe("formats of answers", () => {
  const schema = {
    oneOf: Array.from({ length: 200 }, (_, i) => ({ properties: { [`p${i}`]: { type: "integer" } } })),
  };

  const REASON =
    "cannot read the format of the answer: it is too complex: expected at most 600000 steps, got more";

  const honest = { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"] };

  let triton: Triton;

  let completions: string;

  let generate: string;

  beforeAll(async () => {
    triton = new Triton();
    const inferFunc = textGeneration({ directory: STORIES, intraOpNumThreads: 1 });
    await triton.bind({ modelName: "stories", inferFunc }).ready();
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), openai({ port: 0 })] });
    completions = `${addresses.openai!.url}/v1/completions`;
    generate = `${addresses.http!.url}/v2/models/stories/generate`;
  });

  afterAll(() => triton.close());

  async function post(url: string, body: object, signal?: AbortSignal): Promise<Response> {
    return fetch(url, {
      method: "POST",
      body: JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    });
  }

  const complete = (fields: object, signal?: AbortSignal) =>
    post(
      completions,
      { model: "stories", prompt: "Once there was a fox", max_tokens: 20, ...fields },
      signal,
    );

  const format = (schema: object) => ({
    response_format: { type: "json_schema", json_schema: { name: "n", schema } },
  });

  /** Texts that follow each other, of which each token is an event. Stops when told. */
  function tokens(events: string[]): { stop(): Promise<void> } {
    let isStopped = false;
    const run = async () => {
      while (!isStopped) {
        const { body } = await complete({ stream: true, ignore_eos: true, max_tokens: 100 });
        for await (const chunk of body!) events.push(...(chunk.length > 0 ? ["token"] : []));
      }
    };
    const running = run();
    return {
      stop: () => {
        isStopped = true;
        return running;
      },
    };
  }

  describe("a format that asks for endless work", () => {
    it.each([
      ["of OpenAI's endpoint", () => complete(format(schema))],
      [
        "in the parameters of v2",
        () =>
          post(generate, {
            text_input: "Once",
            sampling_parameters: JSON.stringify({ guided_json: schema, max_tokens: 5 }),
          }),
      ],
    ])("is a bad request while other texts go on: %s", async (_, send) => {
      const events: string[] = [];
      const others = tokens(events);
      await expect.poll(() => events.length).toBeGreaterThan(0);
      events.push("sent");
      const answer = await send();
      events.push("refused");
      await others.stop();
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain(REASON);
      expect(events.slice(events.indexOf("sent"), events.indexOf("refused"))).toContain("token");
    });

    it("keeps neither texts nor small formats waiting while many clients send it, and ends with them", async () => {
      const events: string[] = [];
      const gone = new AbortController();
      const hostile = Array.from({ length: 16 }, async (_, i) => {
        const sent = complete(format({ ...schema, title: String(i) }), gone.signal);
        const status = await sent.then((answer) => answer.status).catch(() => "left");
        events.push("ended");
        return status;
      });
      const others = tokens(events);
      for (let i = 0; i < 2; i++) {
        const answer = await complete({ ...format({ ...honest, title: String(i) }), max_tokens: 50 });
        expect(answer.status).toBe(200);
      }
      expect(events).toContain("token");
      expect(events.filter((event) => event === "ended").length).toBeLessThan(16);
      gone.abort();
      const ends = await Promise.all(hostile);
      expect(ends.filter((end) => end !== "left" && end !== 400)).toEqual([]);
      expect((await complete(format(schema))).status).toBe(400);
      await others.stop();
    });
  });
});

describe("templates of chats", () => {
  const TEMPLATES = {
    loops: "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
    macros: "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    lists: "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    texts: "{{ '\\n' * 500000000 }}",
    brackets: "{{".repeat(50_000),
  };

  let triton: Triton;

  let chats: string;

  let health: string;

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "hostile-templates-"));
    const chatTemplates = Object.fromEntries(
      Object.entries(TEMPLATES).map(([model, chat_template]) => {
        const directory = join(folder, model);
        mkdirSync(directory);
        writeFileSync(join(directory, "tokenizer_config.json"), JSON.stringify({ chat_template }));
        return [model, directory];
      }),
    );
    triton = new Triton();
    for (const modelName of Object.keys(TEMPLATES)) {
      triton.bind({ modelName, inferFunc: textGenerator(({ prompt }) => [prompt ?? ""]) });
    }
    const { addresses } = await triton.serve({
      frontends: [http({ port: 0 }), openai({ port: 0, chatTemplates })],
    });
    chats = `${addresses.openai!.url}/v1/chat/completions`;
    health = `${addresses.http!.url}/v2/health/live`;
    return () => rmSync(folder, { recursive: true });
  });

  afterAll(() => triton.close());

  async function ask(model: string): Promise<{ readonly status: number; readonly text: string }> {
    const messages = [{ role: "user", content: "Hi" }];
    const answer = await fetch(chats, { method: "POST", body: JSON.stringify({ model, messages }) });
    return { status: answer.status, text: await answer.text() };
  }

  describe("a chat template that asks for endless work", () => {
    it.each(Object.keys(TEMPLATES))("is a bad request that names it: %s", async (model) => {
      const { status, text } = await ask(model);
      expect(status).toBe(400);
      expect(text).toMatch(/cannot (render|parse) the chat template of \S+tokenizer_config\.json of model '/);
      expect(text).toContain(`of model '${model}'`);
    });

    it("leaves turns for health probes while many clients ask for it", async () => {
      const events: string[] = [];
      const asked = Array.from({ length: 16 }, async () => {
        const { status } = await ask("loops");
        events.push("chat");
        return status;
      });
      for (let probe = 0; probe < 3; probe++) {
        expect((await fetch(health)).status).toBe(200);
        events.push("health");
      }
      expect(new Set(await Promise.all(asked))).toEqual(new Set([400]));
      expect(events.lastIndexOf("health")).toBeLessThan(events.lastIndexOf("chat"));
    });
  });
});

const quiet = { error() {}, warn() {}, info() {}, debug() {} };

const server = useServer(() => ({
  triton: { modelRepository: ".", modelControlMode: "explicit", logger: quiet },
}));

/** Long enough that a pattern of quadratic time would take minutes. */
const LONG = 1_000_000;

describe("a text that makes regular expressions slow", () => {
  it.each([
    ["a file of spaces", { config: "{}", "file:1/a": `${" ".repeat(LONG)}!` }, "expected base64"],
    [
      "a configuration of digits",
      { config: `{"max_batch_size":${"1".repeat(LONG)}x}` },
      "failed to poll from model repository",
    ],
    ["a configuration of spaces", { config: `{${" ".repeat(LONG)}` }, "failed to poll from model repository"],
  ])("is refused in linear time: %s", async (_what, parameters, text) => {
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/repository/models/docs/load`, {
      method: "POST",
      body: JSON.stringify({ parameters }),
    });
    expect(await answer.text()).toContain(text);
    await server.serves();
  });

  it("in a header is answered in linear time", async () => {
    const spaces = " ".repeat(8000);
    const hostile: Record<string, string>[] = [
      { authorization: `Bearer ${spaces}x y` },
      { "accept-encoding": `gzip${";q=".repeat(2000)}` },
      { "inference-header-content-length": `${"1".repeat(8000)}x` },
    ];
    const url = `http://localhost:${server.httpPort}/v2/models/echo/infer`;
    for (const headers of hostile) {
      const answer = await fetch(url, { method: "POST", headers, body: "{}" });
      await answer.text();
      expect(answer.ok).toBe(false);
    }
    await server.serves();
  });
});
