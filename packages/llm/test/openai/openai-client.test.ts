import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import OpenAI, {
  APIError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import type { RunnableToolFunctionWithParse } from "openai/lib/RunnableFunction";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Asked, bindText, newTriton, type Said, say, serveOpenAi } from "./support/openai-server.js";

const messages = [{ role: "user", content: "Hello" }] as const satisfies OpenAI.ChatCompletionMessageParam[];

/** A client of a server with one model `m`, and what the model was asked for. */
async function connect(
  answer: (asked: Asked, turn: number) => AsyncGenerator<Said> | Generator<Said>,
  { inputs, ...options }: { inputs?: readonly string[] } & Parameters<typeof serveOpenAi>[1] = {},
  client: ConstructorParameters<typeof OpenAI>[0] = {},
) {
  const triton = newTriton();
  const asked: Asked[] = [];
  bindText(triton, "m", (one) => answer(one, asked.push(one) - 1), inputs);
  const url = await serveOpenAi(triton, options);
  return {
    openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: "key", maxRetries: 0, ...client }),
    asked,
    triton,
  };
}

describe("the openai client", () => {
  it("lists and finds models", async () => {
    const { openai } = await connect(() => say("x"));
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(["m"]);
    expect(await openai.models.retrieve("m")).toMatchObject({ id: "m", object: "model" });
    await expect(openai.models.retrieve("none")).rejects.toThrow(NotFoundError);
  });

  it("gets an answer to a chat, whole and streamed, with the tokens that were used", async () => {
    const { openai, asked } = await connect(() => say("Good ", "day", "!"));
    const whole = await openai.chat.completions.create({
      model: "m",
      messages,
      temperature: 0,
      max_completion_tokens: 5,
    });
    expect(whole.choices[0]).toMatchObject({
      message: { role: "assistant", content: "Good day!" },
      finish_reason: "stop",
    });
    expect(whole.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 });
    expect(whole._request_id).toMatch(/^req_/);
    const runner = openai.chat.completions.stream({
      model: "m",
      messages,
      stream_options: { include_usage: true },
    });
    const deltas: string[] = [];
    runner.on("content", (delta) => deltas.push(delta));
    expect(await runner.finalContent()).toBe("Good day!");
    expect(deltas).toEqual(["Good ", "day", "!"]);
    expect(await runner.totalUsage()).toEqual(whole.usage);
    expect(asked.map(({ stream }) => stream)).toEqual([false, true]);
  });

  it("gets a response of the newer endpoint, whole and streamed", async () => {
    const { openai } = await connect(() => say("Good ", "day"));
    const whole = await openai.responses.create({ model: "m", input: "Hello", instructions: "Be kind." });
    expect(whole.output_text).toBe("Good day");
    expect(whole.status).toBe("completed");
    const stream = openai.responses.stream({ model: "m", input: "Hello" });
    const deltas: string[] = [];
    stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
    expect((await stream.finalResponse()).output_text).toBe("Good day");
    expect(deltas).toEqual(["Good ", "day"]);
  });

  it("parses an answer by a schema, which the model is told", async () => {
    const { openai, asked } = await connect(() => say('{"name":', '"Ann"}'));
    const format = zodResponseFormat(z.object({ name: z.string() }), "person");
    const answer = await openai.chat.completions.parse({ model: "m", messages, response_format: format });
    expect(answer.choices[0]?.message.parsed).toEqual({ name: "Ann" });
    expect(asked[0]?.sampling.response_format).toMatchObject({
      type: "json_schema",
      json_schema: { name: "person" },
    });
  });

  describe("with tools", () => {
    let directory: string;
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), "openai-client-"));
      const chat_template =
        "{{ tools | tojson }}<tool_call>{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
      await writeFile(join(directory, "tokenizer_config.json"), JSON.stringify({ chat_template }));
    });
    afterAll(() => rm(directory, { recursive: true }));

    /** Calls a tool twice at once, and then answers with what the tools said. */
    function* useTools({ prompt = "" }: Asked): Generator<Said> {
      if (prompt.includes("[tool]")) yield* say(`It is ${prompt.split("[tool]").slice(1).join(" and ")}.`);
      else {
        yield { text: "Wait. <tool" };
        yield { text: '_call>{"name": "weather", "arguments": {"ci' };
        yield { text: 'ty": "Rome"}}</tool_call>' };
        yield {
          text: '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>',
          reason: "stop",
        };
      }
    }
    const connectWithTools = () =>
      connect(useTools, {
        inputs: ["text_input", "sampling_parameters", "stream"],
        chatTemplates: { m: directory },
      });
    const weather = {
      type: "function" as const,
      function: {
        name: "weather",
        description: "Tells the weather of a city.",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    } satisfies OpenAI.ChatCompletionTool;

    it("gets calls whose arguments arrive in pieces", async () => {
      const { openai } = await connectWithTools();
      const stream = await openai.chat.completions.create({
        model: "m",
        messages,
        tools: [weather],
        stream: true,
      });
      const deltas: OpenAI.ChatCompletionChunk.Choice["delta"][] = [];
      let reason: string | null | undefined;
      for await (const { choices } of stream) {
        if (choices[0]) deltas.push(choices[0].delta);
        reason = choices[0]?.finish_reason ?? reason;
      }
      expect(reason).toBe("tool_calls");
      // Clients read the first call of a chunk alone.
      expect(deltas.every(({ tool_calls = [] }) => tool_calls.length <= 1)).toBe(true);
      expect(deltas.map(({ content }) => content ?? "").join("")).toBe("Wait. ");
      const calls = deltas.flatMap(({ tool_calls }) => tool_calls ?? []);
      const joined = (index: number) =>
        calls
          .filter((call) => call.index === index)
          .map((call) => call.function?.arguments ?? "")
          .join("");
      expect([joined(0), joined(1)]).toEqual(['{"city": "Rome"}', '{"city": "Oslo"}']);
      expect(calls.filter((call) => call.index === 0).length).toBeGreaterThan(1);
    });

    it.each([false, true])("runs tools and sends their results back, streamed: %s", async (streamed) => {
      const { openai, asked } = await connectWithTools();
      const cities: string[] = [];
      const runnable: RunnableToolFunctionWithParse<{ city: string }> = {
        type: "function",
        function: {
          ...weather.function,
          parse: JSON.parse,
          function: ({ city }) => {
            cities.push(city);
            return `sunny in ${city}`;
          },
        },
      };
      const request = { model: "m", messages: [...messages], tools: [runnable] };
      const runner = streamed
        ? openai.chat.completions.runTools({ ...request, stream: true })
        : openai.chat.completions.runTools(request);
      expect(await runner.finalContent()).toBe("It is sunny in Rome and sunny in Oslo.");
      expect(cities).toEqual(["Rome", "Oslo"]);
      expect(asked).toHaveLength(2);
    });
  });

  describe("maps errors to its classes", () => {
    it("for a field that cannot have its value", async () => {
      const { openai, asked } = await connect(() => say("x"));
      const error: unknown = await openai.chat.completions
        .create({ model: "m", messages, temperature: 3 })
        .catch((thrown) => thrown);
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ param: "temperature", type: "invalid_request_error" });
      expect(asked).toHaveLength(0);
    });

    it("for a model that fails in the middle of a stream", async () => {
      const { openai } = await connect(function* () {
        yield { text: "one " };
        throw new TritonError("INTERNAL", "out of paper");
      });
      let text = "";
      const read = async () => {
        for await (const chunk of await openai.chat.completions.create({
          model: "m",
          messages,
          stream: true,
        })) {
          text += chunk.choices[0]?.delta.content ?? "";
        }
      };
      const error: unknown = await read().catch((thrown) => thrown);
      expect(error).toBeInstanceOf(APIError);
      expect((error as APIError).message).toContain("out of paper");
      expect(text).toBe("one ");
    });

    it.each([
      ["429 when the queue is full", "QUEUE_FULL", RateLimitError],
      ["503 when the model is not ready", "MODEL_NOT_READY", InternalServerError],
    ] as const)("and retries %s, after the time that the server names", async (_, reason, kind) => {
      const refuseTwice = function* (_: Asked, turn: number) {
        if (turn < 2) throw new TritonError("UNAVAILABLE", "try again", { reason, retryAfterMs: 1 });
        yield* say("done");
      };
      const patient = await connect(refuseTwice, {}, { maxRetries: 2 });
      const answer = await patient.openai.chat.completions.create({ model: "m", messages });
      expect(answer.choices[0]?.message.content).toBe("done");
      expect(patient.asked).toHaveLength(3);
      const hasty = await connect(refuseTwice, {}, { maxRetries: 0 });
      await expect(hasty.openai.chat.completions.create({ model: "m", messages })).rejects.toThrow(kind);
      expect(hasty.asked).toHaveLength(1);
    });
  });
});
