import cors from "@fastify/cors";
import { Authentication } from "@tritonjs/core/frontend";
import type { AuthenticationRequest } from "@tritonjs/core/types";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { type V2PluginOptions, v2Plugin } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";

const infer = {
  method: "POST",
  url: "/inference/v2/models/m/infer",
  payload: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
} as const;

const identity = () => new IdentityService(identityConfig("m", "INT32"));

function application(options: Partial<V2PluginOptions> = {}, settings = {}) {
  const app = fastify(settings);
  onTestFinished(() => app.close());
  app.register(v2Plugin, { service: identity(), ...options, prefix: "/inference" } as V2PluginOptions & {
    prefix: string;
  });
  return app;
}

describe("the hooks of a fastify application", () => {
  it("authenticate the routes, with the answers of the application", async () => {
    const app = application();
    app.addHook("onRequest", async (request, reply) => {
      if (request.headers.authorization !== "Bearer secret") return reply.code(401).send({ error: "who?" });
    });
    const refused = await app.inject(infer);
    expect([refused.statusCode, refused.json()]).toEqual([401, { error: "who?" }]);
    const answer = await app.inject({ ...infer, headers: { authorization: "Bearer secret" } });
    expect(answer.json()).toMatchObject({ outputs: [{ data: [1] }] });
  });

  it("add the headers of CORS with @fastify/cors, which answers preflight requests", async () => {
    const app = fastify();
    onTestFinished(() => app.close());
    await app.register(cors, { origin: ["https://app.example.com"] });
    app.register(v2Plugin, { service: identity(), prefix: "/inference" });
    const headers = { origin: "https://app.example.com", "access-control-request-method": "POST" };
    const preflight = await app.inject({ ...infer, method: "OPTIONS", headers });
    expect([preflight.statusCode, preflight.headers["access-control-allow-origin"]]).toEqual([
      204,
      headers.origin,
    ]);
    const answer = await app.inject({ ...infer, headers: { origin: headers.origin } });
    expect([answer.statusCode, answer.headers["access-control-allow-origin"]]).toEqual([200, headers.origin]);
  });
});

describe("the plugin", () => {
  it("serves the metrics page below its prefix when asked to", async () => {
    const page = await application({ metrics: true }).inject("/inference/metrics");
    expect([page.statusCode, page.body]).toEqual([200, "nv_up 1\n"]);
    expect(page.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect((await application().inject("/inference/metrics")).statusCode).toBe(404);
  });

  it("tells the server's authentication hook the address that fastify trusts", async () => {
    const seen: AuthenticationRequest[] = [];
    const authentication = new Authentication((request) => void seen.push(request), {}, { error() {} });
    const app = application({ service: Object.assign(identity(), { authentication }) }, { trustProxy: true });
    await app.inject({ ...infer, headers: { "x-forwarded-for": "203.0.113.7" } });
    expect(seen).toMatchObject([{ path: "/v2/models/m/infer", remoteAddress: "203.0.113.7" }]);
  });
});
