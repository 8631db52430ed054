import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Triton, TritonError } from "@tritonjs/core";
import { v2Plugin } from "@tritonjs/http";
import express, { type ErrorRequestHandler } from "express";
import fastify from "fastify";
import { Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import Koa from "koa";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { answersOf, bindRoot, type RootHandle, rootOf, STATUSES } from "./support/root-model.js";

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
