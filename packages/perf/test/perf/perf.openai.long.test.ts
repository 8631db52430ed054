import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { batch, sample, Triton } from "@tritonjs/core";
import { openai } from "@tritonjs/llm/openai";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-command.js";

const TEXT = { dtype: "BYTES", shape: [1] } as const;
const WORDS = ["one ", "two ", "three ", "four"];

let folder: string;
let triton: Triton;
let url: string;
/** The messages of each request for a chat. */
const chats: unknown[] = [];

const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-openai-"));
  triton = new Triton({ exitTimeoutSecs: 0.1 });
  triton.bind({
    modelName: "words",
    inputs: [
      { name: "text_input", ...TEXT, optional: true },
      { name: "messages", ...TEXT, optional: true },
    ],
    outputs: [
      { name: "text_output", ...TEXT },
      { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
      { name: "num_output_tokens", dtype: "UINT32", shape: [1] },
    ],
    config: { batching: false, decoupled: true, instanceGroup: [{ count: 4 }] },
    inferFunc: sample(async function* ({ messages }) {
      if (messages !== undefined) chats.push(JSON.parse(messages.text(0)));
      for (const word of WORDS) {
        await setTimeout(2);
        yield { text_output: [word], num_input_tokens: [5], num_output_tokens: [1] };
      }
    }),
  });
  triton.bind({
    modelName: "texts",
    inputs: [{ name: "query", ...TEXT }],
    outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
    config: { maxBatchSize: 4 },
    inferFunc: batch(({ query }) => ({ embedding: query.strings().map((text) => [text.length, 1]) })),
  });
  const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
  url = `127.0.0.1:${addresses.openai!.port}`;
});

afterAll(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

beforeEach(() => {
  chats.length = 0;
});

/** Measures an endpoint, and returns the figures of its JSON file. */
async function measure(
  endpoint: string,
  {
    model,
    data,
    options,
  }: { readonly model: string; readonly data: readonly unknown[]; readonly options: string },
) {
  await writeFile(file("data.json"), JSON.stringify({ data }));
  const target = `-m ${model} --service-kind openai -u ${url} --endpoint ${endpoint}`;
  const before = successes(model);
  const { code, output, errors } = await runCommand(
    `${target} --input-data ${file("data.json")} --json ${file("figures.json")} ${options}`,
  );
  expect({ code, errors: code === 0 ? "" : errors + output }).toEqual({ code: 0, errors: "" });
  const figures = JSON.parse(await readFile(file("figures.json"), "utf8"));
  expect(successes(model) - before).toBe(figures.request_count.avg);
  return { figures, output };
}

function successes(model: string): number {
  return serviceOf(triton).statistics(model, "")[0]!.inferenceStats.success.count;
}

const user = (content: string) => ({ role: "user", content });
const CHAT = { model: "words", data: [{ payload: [{ messages: [user("count")] }] }] };
const COMPLETION = { model: "words", data: [{ payload: [{ prompt: "count" }] }] };

describe("tritonjs perf on OpenAI endpoints of this library", () => {
  it.each([
    ["v1/chat/completions", CHAT],
    ["v1/completions", COMPLETION],
  ])("measures the tokens of streams of %s", async (endpoint, given) => {
    const options =
      "--streaming --request-count 12 --concurrency-range 3 --goodput inter_token_latency:60000";
    const { figures, output } = await measure(endpoint, { ...given, options });
    expect(figures.request_count.avg).toBe(12);
    expect(figures.output_sequence_length).toMatchObject({ avg: WORDS.length, min: WORDS.length });
    expect(figures.input_sequence_length.avg).toBe(5);
    const first = figures.time_to_first_token;
    const between = figures.inter_token_latency;
    const whole = figures.request_latency;
    expect([first.unit, between.unit, whole.unit]).toEqual(["ms", "ms", "ms"]);
    // All requests have equally many tokens, so the means have to add up.
    expect(first.avg + between.avg * (WORDS.length - 1)).toBeCloseTo(whole.avg, 3);
    expect(first.min).toBeGreaterThan(0);
    expect(first.max).toBeLessThanOrEqual(whole.max);
    expect(figures.time_to_second_token.avg).toBeGreaterThan(0);
    expect(figures.inter_chunk_latency.avg).toBeGreaterThan(0);
    const { avg: throughput } = figures.output_token_throughput;
    expect(throughput).toBeCloseTo((12 * WORDS.length) / figures.benchmark_duration.avg, 3);
    expect(figures.goodput.avg).toBeCloseTo(12 / figures.benchmark_duration.avg, 3);
    expect(output).toContain("Time To First Token (ms): avg ");
    expect(output).toContain("Inter Token Latency (ms): avg ");
  });

  it.each([
    ["v1/chat/completions", CHAT],
    ["v1/completions", COMPLETION],
  ])("counts the tokens of whole answers of %s, which have no first token", async (endpoint, given) => {
    const { figures } = await measure(endpoint, { ...given, options: "--request-count 6" });
    expect(figures.output_sequence_length.avg).toBe(WORDS.length);
    expect(figures.time_to_first_token).toBeUndefined();
    expect(figures.inter_token_latency).toBeUndefined();
  });

  it("measures embeddings, which have no tokens of output", async () => {
    const data = [{ payload: [{ input: "a text" }] }, { payload: [{ input: ["two", "texts"] }] }];
    const { figures } = await measure("v1/embeddings", {
      model: "texts",
      data,
      options: "--request-count 8",
    });
    expect(figures.request_latency.avg).toBeGreaterThan(0);
    for (const key of ["time_to_first_token", "inter_token_latency", "output_sequence_length"])
      expect(figures[key]).toBeUndefined();
  });

  it.each(["", "--streaming"])(
    "plays sessions as chats: a turn carries the turns before it (%s)",
    async (kind) => {
      const turn = (id: string, content: string, delay = 0) => ({
        session_id: [id],
        delay: [delay],
        payload: [{ messages: [user(content)] }],
      });
      const data = [turn("a", "first", 3), turn("b", "other"), turn("a", "second"), turn("c", "last")];
      const options = `--session-concurrency 2 --profile-export-file ${file("profile.json")} ${kind}`.trim();
      const { figures, output } = await measure("v1/chat/completions", { model: "words", data, options });
      expect([figures.mode, figures.value, figures.request_count.avg]).toEqual(["session_concurrency", 2, 4]);
      expect(output).toContain("Session concurrency: 2");
      const answer = { role: "assistant", content: WORDS.join("") };
      const second = chats.find((messages) => (messages as unknown[]).length > 1);
      expect(second).toEqual([user("first"), expect.objectContaining(answer), user("second")]);
      expect(chats.filter((messages) => (messages as unknown[]).length === 1)).toHaveLength(3);
      const { experiments } = JSON.parse(await readFile(file("profile.json"), "utf8"));
      const ids = experiments[0].requests.map((request: { sequence_id: number }) => request.sequence_id);
      expect(ids.toSorted()).toEqual([1, 1, 2, 3]);
    },
  );

  it("refuses more sessions at a time than the data has", async () => {
    const data = [{ session_id: ["a"], payload: [{ messages: [user("hello")] }] }];
    await writeFile(file("data.json"), JSON.stringify({ data }));
    const target = `-m words --service-kind openai -u ${url} --input-data ${file("data.json")}`;
    expect(await runCommand(`${target} --session-concurrency 2`)).toMatchObject({
      code: 99,
      errors: expect.stringContaining("expected data with at least 2 sessions, got 1"),
    });
  });

  it("sends periodic requests as streams of events", async () => {
    const options = "--streaming --periodic-concurrency-range 1:3 --request-period 2";
    const profile = `--profile-export-file ${file("profile.json")}`;
    const { figures } = await measure("v1/chat/completions", { ...CHAT, options: `${options} ${profile}` });
    expect([figures.mode, figures.value, figures.request_count.avg]).toEqual(["periodic_concurrency", 3, 3]);
  });
});
