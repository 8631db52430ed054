import { Writable } from "node:stream";
import cors from "@fastify/cors";
import type { Authenticate, AuthenticationRequest } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { Authentication } from "@tritonjs/server";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { fetchHandler } from "../../src/fetch.js";
import {
  type CorsOptions,
  type HttpOptions,
  http,
  metrics,
  type V2PluginOptions,
  v2Plugin,
} from "../../src/index.js";
import { routes } from "../../src/routes/v2-handler.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { oneConnection, send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const infer = {
  path: "/v2/models/m/infer?trace=1",
  body: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
};

const authorized = { authorization: "Bearer secret" };

const bearer: Authenticate = ({ headers }) => {
  const sent = headers.get("authorization");
  if (sent === null) {
    throw new TritonError("UNAVAILABLE", "a token is required", { reason: "UNAUTHENTICATED" });
  }
  if (sent !== "Bearer secret") {
    throw new TritonError("UNAVAILABLE", "this token may not infer", { reason: "PERMISSION_DENIED" });
  }
};

/** A server with a hook; `said` receives what it logs. */
async function serve(
  authenticate: Authenticate,
  options: ConstructorParameters<typeof Authentication>[1] = {},
  http_: HttpOptions = {},
  open: typeof http | typeof metrics = http,
) {
  const said: string[] = [];
  const service = new IdentityService(identityConfig("m", "INT32"));
  const authentication = new Authentication(authenticate, options, { error: (line) => said.push(line) });
  const frontend = open({ port: 0, ...http_ });
  const { port } = await frontend.start({ service: Object.assign(service, { authentication }) });
  onTestFinished(() => frontend.stop());
  return { port, said, service };
}

describe("the authentication hook over HTTP", () => {
  it("refuses with 401 and a challenge, with 403, or lets the request through, on one connection", async () => {
    const { port, service } = await serve(bearer);
    const agent = oneConnection();
    onTestFinished(() => agent.destroy());
    const missing = await send(port, { ...infer, agent });
    expect([missing.status, missing.text]).toEqual([401, '{"error":"a token is required"}']);
    expect(missing.headers["www-authenticate"]).toBe("Bearer");
    const wrong = await send(port, { ...infer, headers: { authorization: "Bearer other" }, agent });
    expect([wrong.status, wrong.text]).toEqual([403, '{"error":"this token may not infer"}']);
    expect(wrong.headers["www-authenticate"]).toBeUndefined();
    expect(service.requests).toEqual([]);
    expect((await send(port, { ...infer, headers: authorized, agent })).status).toBe(200);
    expect((await send(port, { ...infer, agent })).status).toBe(401);
  });

  it("gets the method, the path, the group, the headers and the address", async () => {
    const seen: AuthenticationRequest[] = [];
    const { port } = await serve((request) => void seen.push(request));
    await send(port, { ...infer, headers: { "X-Key": "a" } });
    expect(seen).toHaveLength(1);
    const { headers, remoteAddress, ...rest } = seen[0]!;
    expect(rest).toEqual({
      transport: "http",
      method: "POST",
      path: "/v2/models/m/infer",
      group: "inference",
    });
    expect(headers.get("x-key")).toBe("a");
    expect(remoteAddress).toMatch(/^(127\.0\.0\.1|::1|::ffff:127\.0\.0\.1)$/);
  });

  it("is asked for every route but the public ones", async () => {
    const groups = new Set(routes.map(({ group }) => group));
    const asked = new Set<string>();
    const { port } = await serve(({ group }) => {
      asked.add(group);
      throw new TritonError("UNAVAILABLE", "no", { reason: "UNAUTHENTICATED" });
    });
    const statusOf = async (path: string) => (await send(port, { method: "GET", path })).status;
    expect(await statusOf("/v2/health/live")).toBe(200);
    for (const path of ["", "/models/m/infer", "/models/m/config", "/models/stats", "/repository/index"])
      expect(await statusOf(`/v2${path}`)).toBe(401);
    for (const path of ["/systemsharedmemory/status", "/trace/setting", "/logging"])
      expect(await statusOf(`/v2${path}`)).toBe(401);
    groups.delete("health");
    expect(asked).toEqual(groups);
  });

  it("is asked for health too if no group is public", async () => {
    const { port } = await serve(bearer, { publicEndpoints: [], challenge: 'Basic realm="models"' });
    const { status, headers } = await send(port, { method: "GET", path: "/v2/health/live" });
    expect([status, headers["www-authenticate"]]).toEqual([401, 'Basic realm="models"']);
  });

  it.each([http, metrics])("guards the metrics page, on either port", async (open) => {
    const { port } = await serve(bearer, {}, open === http ? { metrics: true } : {}, open);
    const page = { method: "GET", path: "/metrics" };
    expect((await send(port, page)).status).toBe(401);
    expect(await send(port, { ...page, headers: authorized })).toMatchObject({
      status: 200,
      text: "nv_up 1\n",
    });
    const options = open === http ? { metrics: true } : {};
    const opened = await serve(bearer, { publicEndpoints: ["metrics"] }, options, open);
    expect((await send(opened.port, page)).status).toBe(200);
  });

  it("answers the status of another TritonError", async () => {
    const { port } = await serve(async () => {
      throw new TritonError("UNAVAILABLE", "the directory is down", { retryAfterMs: 1500 });
    });
    const { status, text, headers } = await send(port, infer);
    expect([status, text, headers["retry-after"]]).toEqual([503, '{"error":"the directory is down"}', "2"]);
  });

  it("answers 500 without the text of any other error, and logs it", async () => {
    const { port, said } = await serve(async () => {
      throw new Error("password of the directory: hunter2");
    });
    const { status, text } = await send(port, infer);
    expect([status, text]).toEqual([500, '{"error":"internal error"}']);
    expect(said.join()).toContain(
      "security.authenticate failed for POST /v2/models/m/infer: Error: password",
    );
  });

  it("refuses with false", async () => {
    const { port } = await serve((() => false) as unknown as Authenticate);
    expect(await send(port, infer)).toMatchObject({ status: 403, text: '{"error":"access denied"}' });
  });

  it("refuses before the body arrives, and goes on with the connection's next request", async () => {
    const { port, service } = await serve(bearer);
    const agent = oneConnection();
    onTestFinished(() => agent.destroy());
    const body = Buffer.alloc(1 << 20, " ");
    expect((await send(port, { ...infer, body, agent })).status).toBe(401);
    expect(service.requestMemory.usedBytes).toBe(0);
    expect((await send(port, { ...infer, headers: authorized, agent })).status).toBe(200);
  });

  it("rejects unknown public groups", () => {
    const options = { publicEndpoints: ["helth"] as never };
    expect(() => new Authentication(bearer, options, { error() {} })).toThrow(
      /Invalid endpoint names: helth/,
    );
  });
});

describe("cors", () => {
  const page = "https://app.example.com";

  const infer = {
    path: "/v2/models/m/infer",
    body: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
  };

  const preflight = {
    method: "OPTIONS",
    path: infer.path,
    headers: {
      origin: page,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-key",
    },
  };

  const identity = () => new IdentityService(identityConfig("m", "INT32"));

  /** The headers of CORS in an answer. */
  function granted(headers: Record<string, unknown>): Record<string, unknown> {
    const names = Object.keys(headers).filter(
      (name) => name === "vary" || name.startsWith("access-control-"),
    );
    return Object.fromEntries(names.map((name) => [name.replace("access-control-", ""), headers[name]]));
  }

  describe("CORS of a server", () => {
    it("is off by default: no headers, and 405 for a preflight request", async () => {
      const port = await startHttp(identity());
      const answer = await send(port, { ...infer, headers: { origin: page } });
      expect([answer.status, granted(answer.headers)]).toEqual([200, {}]);
      expect((await send(port, preflight)).status).toBe(405);
    });

    it("answers a preflight request", async () => {
      const port = await startHttp(identity(), { cors: { origins: [page], maxAgeSeconds: 600 } });
      const { status, text, headers } = await send(port, preflight);
      expect([status, text]).toEqual([200, ""]);
      expect(granted(headers)).toEqual({
        vary: "Origin",
        "allow-origin": page,
        "allow-methods": "GET, POST",
        "allow-headers": "content-type,x-key",
        "max-age": "600",
      });
    });

    it.each<[string, CorsOptions, origin: string | undefined, Record<string, string>]>([
      ["a listed origin", { origins: [page] }, page, { vary: "Origin", "allow-origin": page }],
      ["another origin", { origins: [page] }, "https://evil.example", { vary: "Origin" }],
      ["no origin", { origins: [page] }, undefined, { vary: "Origin" }],
      ["any origin", { origins: true }, "https://evil.example", { "allow-origin": "*" }],
      ["a matching origin", { origins: [/https:\/\/\w+\.example\.com/g] }, page, { "allow-origin": page }],
      ["half a match", { origins: [/example\.com/] }, page, {}],
      [
        "credentials",
        { origins: [page], credentials: true },
        page,
        { "allow-origin": page, "allow-credentials": "true" },
      ],
    ])("grants %s what it may have", async (_name, cors, origin, expected) => {
      const port = await startHttp(identity(), { cors });
      for (let turn = 0; turn < 2; turn++) {
        const { status, headers } = await send(port, { ...infer, headers: origin ? { origin } : {} });
        expect(status).toBe(200);
        const { "expose-headers": exposed, vary, ...rest } = granted(headers);
        const { vary: _vary, ...wanted } = expected;
        expect(rest).toEqual(wanted);
        expect(vary).toBe(cors.origins === true ? undefined : "Origin");
        const shown = "inference-header-content-length, content-encoding, retry-after";
        expect(exposed).toBe("allow-origin" in expected ? shown : undefined);
      }
    });

    it("uses the given methods and headers", async () => {
      const cors = { origins: [page], methods: ["POST"], headers: ["x-key"], exposedHeaders: ["x-trace"] };
      const port = await startHttp(identity(), { cors });
      const asked = granted((await send(port, preflight)).headers);
      expect(asked).toMatchObject({ "allow-methods": "POST", "allow-headers": "x-key" });
      const { headers } = await send(port, { ...infer, headers: { origin: page } });
      expect(granted(headers)).toMatchObject({ "expose-headers": "x-trace" });
    });

    it("shows errors to pages, answers preflight requests before authentication, and keeps the log", async () => {
      const refuse = () => {
        throw new TritonError("UNAVAILABLE", "who are you", { reason: "UNAUTHENTICATED" });
      };
      const authentication = new Authentication(refuse, {}, { error() {} });
      const service = Object.assign(identity(), { authentication });
      const lines: string[] = [];
      const stream = { write: (line: string) => void lines.push(line) };
      const port = await startHttp(service, { cors: { origins: [page] }, logger: { stream } });
      expect((await send(port, preflight)).status).toBe(200);
      const { status, headers } = await send(port, { ...infer, headers: { origin: page } });
      expect([status, headers["access-control-allow-origin"]]).toEqual([401, page]);
      expect(lines.length).toBeGreaterThan(0);
    });

    it("works in the fetch handler", async () => {
      const handler = fetchHandler({ service: identity() }, { cors: { origins: [page] } });
      const url = `http://host${infer.path}`;
      const asked = await handler(new Request(url, { method: "OPTIONS", headers: preflight.headers }));
      expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([200, page]);
      const headers = { origin: page };
      const answer = await handler(new Request(url, { method: "POST", body: infer.body, headers }));
      expect(answer.headers.get("access-control-allow-origin")).toBe(page);
      expect(await answer.json()).toMatchObject({ outputs: [{ data: [1] }] });
    });

    it.each<[CorsOptions, text: string]>([
      [
        { origins: true, credentials: true },
        "cors.credentials: expected a list of origins, got origins: true, which lets every site act for its visitors",
      ],
      [
        { origins: ["https://app.example.com/"] },
        "cors.origins: expected an origin such as 'https://app.example.com', without a path, got 'https://app.example.com/'",
      ],
      [
        { origins: ["*"] },
        "cors.origins: expected an origin such as 'https://app.example.com', without a path, got '*'",
      ],
      [{ origins: page } as never, `cors.origins: expected true or a list, got ${page}`],
    ])("rejects %j", async (cors, text) => {
      await expect(http({ port: 0, cors }).start({ service: identity() })).rejects.toMatchObject({
        code: "INVALID_ARG",
        message: text,
      });
    });
  });
});

const path = "/v2/models/m/infer";

const body = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

/** A server with a logger, and its log lines. */
async function startLogged() {
  const lines: string[] = [];
  const stream = new Writable({
    write(line, _encoding, written) {
      lines.push(String(line));
      written();
    },
  });
  const port = await startHttp(new IdentityService(identityConfig("m", "INT32")), { logger: { stream } });
  return { port, lines };
}

describe("a server with a logger", () => {
  it("answers like one without a logger", async () => {
    const plain = await startHttp(new IdentityService(identityConfig("m", "INT32")));
    const { port } = await startLogged();
    for (const request of [
      { path, body },
      { path, body: "{" },
      { path: "/v2/models/m", method: "GET" },
      { path: "/other", method: "GET" },
      { path: "/v2/%", method: "GET" },
      { path, method: "PROPFIND" },
    ]) {
      const [logged, direct] = [await send(port, request), await send(plain, request)];
      const said = ({ status, text, headers }: typeof logged) => [status, text, headers["content-type"]];
      expect(said(logged)).toEqual(said(direct));
    }
  });

  it("logs each request", async () => {
    const { port, lines } = await startLogged();
    await send(port, { path, body });
    const [first] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({ msg: "incoming request", req: { method: "POST", url: path } });
  });
});

describe("v2 plugin hooks", () => {
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
      expect([answer.statusCode, answer.headers["access-control-allow-origin"]]).toEqual([
        200,
        headers.origin,
      ]);
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
      const app = application(
        { service: Object.assign(identity(), { authentication }) },
        { trustProxy: true },
      );
      await app.inject({ ...infer, headers: { "x-forwarded-for": "203.0.113.7" } });
      expect(seen).toMatchObject([{ path: "/v2/models/m/infer", remoteAddress: "203.0.113.7" }]);
    });
  });
});
