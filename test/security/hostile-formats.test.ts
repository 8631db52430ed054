import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { textGeneration } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORIES } from "../../packages/llm/test/support/stories.js";

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
  return fetch(url, { method: "POST", body: JSON.stringify(body), ...(signal !== undefined && { signal }) });
}

const complete = (fields: object, signal?: AbortSignal) =>
  post(completions, { model: "stories", prompt: "Once there was a fox", max_tokens: 20, ...fields }, signal);
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
    const hostile = Array.from({ length: 6 }, async (_, i) => {
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
    expect(events.filter((event) => event === "ended").length).toBeLessThan(6);
    gone.abort();
    const ends = await Promise.all(hostile);
    expect(ends.filter((end) => end !== "left" && end !== 400)).toEqual([]);
    expect((await complete(format(schema))).status).toBe(400);
    await others.stop();
  });
});
