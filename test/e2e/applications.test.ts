import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Triton, TritonError } from "@tritonjs/core";
import { v2Plugin } from "@tritonjs/http";
import { textEmbedder, textGenerator } from "@tritonjs/llm";
import { tritonProvider } from "@tritonjs/llm/ai-sdk";
import { TritonChatModel } from "@tritonjs/llm/langchain";
import { openAiFetchHandler } from "@tritonjs/llm/openai";
import { generateText, jsonSchema, Output, tool } from "ai";
import express, { type ErrorRequestHandler } from "express";
import fastify from "fastify";
import { Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import Koa from "koa";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { answersOf, bindRoot, type RootHandle, rootOf, STATUSES } from "./support/root-model.js";

describe("routes of applications", () => {
  // Express writes errors to the terminal, also after a test has ended.
  vi.spyOn(console, "error").mockImplementation(() => {});

  function bound(): { triton: Triton; handle: RootHandle } {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    return { triton, handle: bindRoot(triton) };
  }

  /** Serves an application on a free port. @returns its URL */
  async function listen(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, "localhost");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    return `http://localhost:${(server.address() as AddressInfo).port}`;
  }

  const wrongShape = /unexpected shape|expected/;

  describe("an error of a model in a route of the application", () => {
    it("has its status and its message in fastify", async () => {
      const { handle } = bound();
      const app = fastify();
      onTestFinished(() => app.close());
      app.get<{ Params: { x: string } }>("/root/:x", ({ params }) => rootOf(handle, params.x));
      const answers = await answersOf(await app.listen({ port: 0, host: "localhost" }));
      expect(answers.map(({ status }) => status)).toEqual(STATUSES);
      const [good, shape, missing] = answers.map(({ text }) => JSON.parse(text));
      expect(good).toEqual({ root: 2 });
      expect(shape).toEqual({
        statusCode: 400,
        code: "INVALID_ARG",
        error: "Bad Request",
        message: expect.stringMatching(wrongShape),
      });
      expect(missing).toMatchObject({ code: "NOT_FOUND", message: "there is no root of 0" });
    });

    it("has its status in Express, and its message with an error handler", async () => {
      const { handle } = bound();
      const app = express();
      // Elsewhere the page of the default handler shows the stack.
      app.set("env", "production");
      app.get("/root/:x", async ({ params }, response) => void response.json(await rootOf(handle, params.x)));
      const plain = await answersOf(await listen(app));
      expect(plain.map(({ status }) => status)).toEqual(STATUSES);
      expect(plain[1]!.text).toContain("Bad Request");
      const answer: ErrorRequestHandler = (error, _request, response, next) => {
        if (!TritonError.is(error) || !error.expose) return next(error);
        response.status(error.statusCode).json({ error: error.message });
      };
      app.use(answer);
      const answers = await answersOf(await listen(app));
      expect(answers.map(({ status }) => status)).toEqual(STATUSES);
      expect(JSON.parse(answers[2]!.text)).toEqual({ error: "there is no root of 0" });
      expect(answers[3]!.text).not.toContain("the callback is broken");
    });

    it("has its status and its message in Koa, which hides the messages of faults of the server", async () => {
      const { handle } = bound();
      const app = new Koa();
      app.silent = true;
      app.use(async (context) => {
        context.body = await rootOf(handle, context.path.slice("/root/".length));
      });
      const answers = await answersOf(await listen(app.callback()));
      expect(answers.map(({ status }) => status)).toEqual(STATUSES);
      expect(answers[1]!.text).toMatch(wrongShape);
      expect(answers[2]!.text).toBe("there is no root of 0");
      expect(answers[3]!.text).toBe("Internal Server Error");
    });

    it("has its status and its message in Hono with onError", async () => {
      const { handle } = bound();
      const app = new Hono();
      app.get("/root/:x", async (context) => context.json(await rootOf(handle, context.req.param("x"))));
      app.onError((error, context) => {
        if (!TritonError.is(error)) throw error;
        const status = error.statusCode as ContentfulStatusCode;
        return context.json({ error: error.expose ? error.message : "Internal Server Error" }, status);
      });
      const answers = await answersOf(await listen(getRequestListener(app.fetch)));
      expect(answers.map(({ status }) => status)).toEqual(STATUSES);
      expect(JSON.parse(answers[2]!.text)).toEqual({ error: "there is no root of 0" });
      expect(answers[3]!.text).not.toContain("the callback is broken");
    });

    it("is 503 once the model is not served", async () => {
      const { handle } = bound();
      await handle.ready();
      await handle.unbind();
      const error = await rootOf(handle, "4").catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "UNAVAILABLE", statusCode: 503, expose: false });
    });
  });

  describe("the v2 plugin over a model that cannot be loaded", () => {
    it("answers why it is not ready, for any version, and nothing else is needed to log it", async () => {
      const logged: string[] = [];
      const ignore = () => {};
      let tell = ignore;
      const failed = new Promise<void>((resolve) => {
        tell = resolve;
      });
      const error = (line: string) => {
        logged.push(line);
        tell();
      };
      const triton = new Triton({ logger: { error, warn: ignore, info: ignore, debug: ignore } });
      onTestFinished(() => triton.close());
      const module = new URL(
        "../../packages/core/test/behaviours/fixtures/throws-while-loading.mjs",
        import.meta.url,
      );
      triton.bind({
        modelName: "m",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
        inferFunc: module,
      });
      const app = fastify();
      onTestFinished(() => app.close());
      app.register(v2Plugin, { triton });
      await failed;
      const reasonWith = (file: string) =>
        `model 'm': cannot import the module ${file}: the weights are missing (at ${file}:1:7)`;
      const reason = reasonWith("throws-while-loading.mjs");
      for (const url of ["/v2/models/m/ready", "/v2/models/m/versions/1/ready"]) {
        const { statusCode, body } = await app.inject(url);
        expect([statusCode, JSON.parse(body)]).toEqual([400, { error: "Model version not ready", reason }]);
      }
      const unknown = await app.inject("/v2/models/unknown/ready");
      expect([unknown.statusCode, unknown.body]).toEqual([400, '{"error":"Model version not ready"}']);
      const [line, frame] = logged.join("\n").split("\n");
      expect(line).toBe(`failed to load 'm' version 1: Internal: ${reasonWith(String(module))}`);
      expect([logged.length, frame]).toEqual([1, `    at ${module}:1:7`]);
    });
  });
});

describe("callbacks of the OpenAI frontend", () => {
  const triton = new Triton();

  triton.bind({
    modelName: "writer",
    inferFunc: textGenerator(async function* ({ messages, prompt, tools }) {
      if (prompt === "fail") throw new TritonError("INVALID_ARG", "too long");
      if (tools !== undefined) {
        yield { toolCall: { name: "clock", id: "c1" } };
        yield { toolCall: { arguments: '{"zone":"UTC"}' } };
      } else {
        yield* ["Hello ", `${messages?.length ?? prompt}`, ". Bye"];
      }
      yield { usage: { promptTokens: 7, completionTokens: 4 } };
    }),
  });

  triton.bind({
    modelName: "lengths",
    inferFunc: textEmbedder((texts) => texts.map(({ length }) => [length])),
  });

  /** Answers with what it is told to obey. */
  const obedient = textGenerator(
    ({ tools, toolChoice, parallelToolCalls, responseFormat }) => {
      const told = { toolChoice, parallelToolCalls, responseFormat };
      if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none")
        return JSON.stringify(told);
      return { toolCall: { name: tools!.at(-1)!.function.name, arguments: JSON.stringify(told) } };
    },
    { obeys: ["toolChoice", "responseFormat"] },
  );

  triton.bind({ modelName: "obedient", inferFunc: obedient });

  const handler = openAiFetchHandler(triton);

  afterAll(() => triton.close());

  async function post(path: string, body: object) {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    };
    const answer = await handler(new Request(`http://localhost/v1/${path}`, init));
    return { status: answer.status, text: await answer.text() };
  }

  const chat = { model: "writer", messages: [{ role: "user", content: "hi" }] };

  it("a text generator answers chat completions, whole and as a stream, with usage and stop strings", async () => {
    const stopped = JSON.parse((await post("chat/completions", { ...chat, stop: "." })).text);
    expect(stopped.choices[0]).toMatchObject({ message: { content: "Hello 1" }, finish_reason: "stop" });
    const whole = JSON.parse((await post("chat/completions", chat)).text);
    expect(whole.usage).toMatchObject({ prompt_tokens: 7 });
    const { text } = await post("chat/completions", { ...chat, stream: true });
    const chunks = text
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice("data: ".length)));
    const deltas = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
    expect(deltas.join("")).toBe("Hello 1. Bye");
  });

  it("a text generator's calls of tools become tool_calls", async () => {
    const tools = [{ type: "function", function: { name: "clock", parameters: { type: "object" } } }];
    const { choices } = JSON.parse((await post("chat/completions", { ...chat, tools })).text);
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ id: "c1", function: { name: "clock", arguments: '{"zone":"UTC"}' } }] },
    });
  });

  it("an error of a text generator has its status and its message", async () => {
    const { status, text } = await post("completions", { model: "writer", prompt: "fail" });
    expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringContaining("too long")]);
  });

  it("a text embedder answers embeddings", async () => {
    const body = { model: "lengths", input: ["a", "abc"], encoding_format: "float" };
    const { data } = JSON.parse((await post("embeddings", body)).text);
    expect(data.map(({ embedding }: { embedding: number[] }) => embedding)).toEqual([[1], [3]]);
  });

  describe("a demand on the answer", () => {
    const parameters = { type: "object", properties: { zone: { type: "string" } } };
    const named = (name: string) => ({ type: "function", function: { name, parameters } });
    const flat = (name: string) => ({ type: "function", name, parameters });
    const tools = [named("clock"), named("add")];
    const flatTools = [flat("clock"), flat("add")];
    const allowed = { mode: "required", tools: [named("clock")] };
    const format = { type: "json_schema", schema: parameters };
    const json_schema = { name: "zone", schema: parameters };
    const [chats, completions, responses] = ["chat/completions", "completions", "responses"];

    it.each([
      [chats, { tools, tool_choice: "required" }, "tool_choice", { call: "add", toolChoice: "required" }],
      [
        chats,
        { tools, tool_choice: named("clock") },
        "tool_choice",
        { call: "clock", toolChoice: { name: "clock" } },
      ],
      [
        chats,
        { tools, tool_choice: { type: "allowed_tools", allowed_tools: allowed }, parallel_tool_calls: false },
        "tool_choice",
        { call: "clock", toolChoice: "required", parallelToolCalls: false },
      ],
      [chats, { tools, tool_choice: "none" }, undefined, { toolChoice: "none" }],
      [
        chats,
        { response_format: { type: "json_object", schema: parameters } },
        "response_format",
        { responseFormat: format },
      ],
      [
        chats,
        { response_format: { type: "json_schema", json_schema } },
        "response_format",
        { responseFormat: format },
      ],
      [chats, { response_format: { type: "text" } }, undefined, {}],
      [
        chats,
        { guided_choice: ["a"] },
        "response_format",
        { responseFormat: { type: "choice", texts: ["a"] } },
      ],
      [
        completions,
        { response_format: { type: "json_object", schema: parameters } },
        "response_format",
        { responseFormat: format },
      ],
      [completions, { guided_json: parameters }, "response_format", { responseFormat: format }],
      [
        responses,
        { tools: flatTools, tool_choice: flat("clock") },
        "tool_choice",
        { call: "clock", toolChoice: { name: "clock" } },
      ],
      [
        responses,
        {
          tools: flatTools,
          tool_choice: { type: "allowed_tools", mode: "required", tools: [flat("clock")] },
        },
        "tool_choice",
        { call: "clock", toolChoice: "required" },
      ],
      [
        responses,
        { text: { format: { type: "json_object", schema: parameters } } },
        "response_format",
        { responseFormat: format },
      ],
    ])(
      "of %s %j reaches a generator that obeys it, and is refused for any other",
      async (path, fields, param, told) => {
        const input =
          path === chats
            ? { messages: chat.messages }
            : path === completions
              ? { prompt: "hi" }
              : { input: "hi" };
        for (const stream of [false, true]) {
          const { status, text } = await post(path, { model: "obedient", ...input, ...fields, stream });
          expect(status).toBe(200);
          if (stream) continue;
          const { choices: [choice] = [], output: [item] = [] } = JSON.parse(text);
          const called =
            choice?.message?.tool_calls?.[0].function ?? (item?.type === "function_call" ? item : undefined);
          const answer =
            called?.arguments ?? choice?.message?.content ?? choice?.text ?? item?.content[0].text;
          expect({ ...JSON.parse(answer), call: called?.name }).toMatchObject(told);
        }
        const refused = await post(path, { model: "writer", ...input, ...fields });
        expect(refused.status).toBe(param === undefined ? 200 : 400);
        if (param === undefined) return;
        expect(JSON.parse(refused.text).error).toMatchObject({
          type: "invalid_request_error",
          param,
          message: expect.stringMatching(/ model 'writer' .* obeys: \["(toolChoice|responseFormat)"\]/),
        });
      },
    );

    it("comes from the AI SDK and from LangChain too", async () => {
      const ask = (model: string, toolChoice: "required" | "auto") =>
        generateText({
          model: tritonProvider(triton)(model),
          prompt: "hi",
          tools: { add: tool({ inputSchema: jsonSchema(parameters as object) }) },
          toolChoice,
          maxRetries: 0,
        });
      const { toolCalls } = await ask("obedient", "required");
      expect(toolCalls).toMatchObject([{ toolName: "add", input: { toolChoice: "required" } }]);
      expect((await ask("writer", "auto")).toolCalls).toMatchObject([{ toolName: "clock" }]);
      await expect(ask("writer", "required")).rejects.toThrow(/obeys: \["toolChoice"\]/);
      const output = Output.object({ schema: jsonSchema(parameters as object) });
      const object = await generateText({ model: tritonProvider(triton)("obedient"), prompt: "hi", output });
      expect(object.output).toMatchObject({ responseFormat: format });

      const langchain = (model: string) =>
        new TritonChatModel({ triton, model })
          .bindTools(tools, { tool_choice: "any", parallel_tool_calls: false })
          .invoke("hi");
      expect((await langchain("obedient")).tool_calls).toMatchObject([
        { name: "add", args: { toolChoice: "required", parallelToolCalls: false } },
      ]);
      await expect(langchain("writer")).rejects.toThrow(/obeys: \["toolChoice"\]/);
    });
  });
});
