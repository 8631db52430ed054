import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { textGenerator } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

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
