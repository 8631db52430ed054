import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import fastifyCors from "@fastify/cors";
import { type Frontend, sample, Triton } from "@tritonjs/core";
import {
  type FetchHandlerOptions,
  fetchHandler,
  http,
  metrics,
  toNodeListener,
  v2Plugin,
} from "@tritonjs/http";
import { sageMaker, vertexAi } from "@tritonjs/http/cloud";
import { dashboard } from "@tritonjs/http/dashboard";
import { openAiPlugin, openai } from "@tritonjs/llm/openai";
import { serviceOf } from "@tritonjs/server";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ServedOptions, servedOptions } from "../support/served-options.js";

/*
 * Pages of other sites attack servers that the browser of their visitor can reach. The headers are those of browsers:
 * Origin with each request that is not a GET, Sec-Fetch-* to localhost and to encrypted servers, Accept-Language always.
 */

const evil = "http://evil.example";
const language = { "accept-language": "en" };
/** `fetch(url, { method: "POST", mode: "no-cors", body: "{}" })` of a page of another site. */
const forged = {
  ...language,
  origin: evil,
  "sec-fetch-site": "cross-site",
  "sec-fetch-mode": "no-cors",
  "content-type": "text/plain;charset=UTF-8",
};
/** The same, to a server without encryption on another machine. */
const forgedFarAway = { ...language, origin: evil, "content-type": "text/plain;charset=UTF-8" };
const token = { "triton-access-token": "secret" };

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request with exactly these headers over a socket of its own. Resolves with its status and text. */
function send(port: number, { method = "POST", path, headers = {}, body = "" }: Sent) {
  return new Promise<readonly [status: number, text: string]>((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        // A stream of events has no end.
        if (answer.headers["content-type"]?.startsWith("text/event-stream")) answer.destroy();
      });
      answer.on("close", () => resolve([answer.statusCode!, text]));
    });
    sent.on("error", reject).end(method === "GET" ? undefined : body);
  });
}

const statusOf = async (port: number, sent: Sent) => (await send(port, sent))[0];

/** A server whose operations are all open. */
function openTriton(options: ServedOptions = {}): Triton {
  const triton = new Triton(
    servedOptions({
      modelControlMode: "explicit",
      security: { restrictedEndpoints: [] },
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      ...options,
    }),
  );
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  return triton;
}

async function open(frontend: Frontend, triton = openTriton(), frontendThreads = 0): Promise<number> {
  const { addresses } = await triton.serve({ frontends: [frontend], frontendThreads });
  return Object.values(addresses)[0]!.port;
}

const inference = '{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[4]}]}';
const logging: Sent = { path: "/v2/logging", body: '{"log_verbose_level":1}' };

/** A server whose routes are those of the plugin, so it is tried with changes alone. */
const LOGGING = "a port with a logger";

/** The servers and mounts of the v2 routes: each opens them and returns the port. */
const places: Record<string, (address: string, triton: Triton) => Promise<number>> = {
  "a port of its own": (address, triton) => open(http({ port: 0, address }), triton),
  [LOGGING]: (address, triton) => open(http({ port: 0, address, logger: { level: "silent" } }), triton),
  "a frontend thread": (address, triton) => open(http({ port: 0, address }), triton, 1),
  "a fastify plugin": async (host, triton) => {
    const app = fastify();
    onTestFinished(() => app.close());
    app.register(v2Plugin, { triton });
    await app.listen({ port: 0, host });
    return (app.server.address() as AddressInfo).port;
  },
  "a fetch handler": (address, triton) => listen(address, triton),
};

async function listen(address: string, triton: Triton, options: FetchHandlerOptions = {}): Promise<number> {
  const server = createServer(toNodeListener(fetchHandler(triton, options)));
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

const changes: readonly Sent[] = [
  logging,
  { path: "/v2/trace/setting", body: '{"trace_rate":"2"}' },
  { path: "/v2/models/double/trace/setting", body: '{"trace_rate":"2"}' },
  { path: "/v2/repository/models/double/load", body: '{"parameters":{"file:1/model.py":"cHJpbnQoMSk="}}' },
  { path: "/v2/repository/models/double/unload" },
  { path: "/v2/repository/index" },
  { path: "/v2/systemsharedmemory/region/a/register", body: '{"key":"/a","byte_size":4}' },
  { path: "/v2/systemsharedmemory/unregister" },
  { path: "/v2/cudasharedmemory/region/a/unregister" },
];

describe.each(Object.entries(places))("on loopback, %s", (_name, openPlace) => {
  it("refuses every change that a page of another site posts without asking", async () => {
    const triton = openTriton();
    const port = await openPlace("127.0.0.1", triton);
    for (const change of changes) {
      for (const headers of [forged, forgedFarAway, { ...forged, origin: "null" }]) {
        const [status, text] = await send(port, { ...change, headers });
        expect([change.path, status]).toEqual([change.path, 403]);
        expect(JSON.parse(text).error).toContain("--allowed-host");
      }
    }
    for (const type of [
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json",
    ])
      expect(await statusOf(port, { ...logging, headers: { ...forged, "content-type": type } })).toBe(403);
    const { origin: _, ...withoutOrigin } = forged;
    expect(await statusOf(port, { ...logging, headers: withoutOrigin })).toBe(403);
    expect(triton.server.log.settings.verboseLevel).toBe(0);
    expect(serviceOf(triton).isModelReady("double", "")).toBe(true);
  });

  it("accepts changes of Triton's clients, of curl, of Node's fetch and of its own pages", async () => {
    const port = await openPlace("127.0.0.1", openTriton());
    const callers: Record<string, Record<string, string>> = {
      // tritonclient sends no content type.
      tritonclient: { host: `localhost:${port}` },
      curl: {
        "content-type": "application/x-www-form-urlencoded",
        "user-agent": "curl/8.5.0",
        accept: "*/*",
      },
      fetch: { "content-type": "text/plain;charset=UTF-8", "accept-language": "*", "sec-fetch-mode": "cors" },
      page: {
        ...language,
        host: `localhost:${port}`,
        origin: `http://localhost:${port}`,
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
      },
    };
    for (const [caller, headers] of Object.entries(callers)) {
      expect([caller, await statusOf(port, { ...logging, headers })]).toEqual([caller, 200]);
      expect([caller, await statusOf(port, { method: "GET", path: "/v2/logging", headers })]).toEqual([
        caller,
        200,
      ]);
    }
    // A proxy changed the host, and the browser says that the page is of the same origin.
    const behindProxy = { ...callers.page, origin: "https://app.example.com" };
    expect(await statusOf(port, { ...logging, headers: behindProxy })).toBe(200);
    const text = { ...callers.page, "content-type": "text/plain;charset=UTF-8" };
    expect(await send(port, { ...logging, headers: text })).toEqual([
      403,
      expect.stringContaining("expected the content type application/json, got 'text/plain;charset=UTF-8'"),
    ]);
  });
});

describe.each(Object.entries(places).filter(([name]) => !["a fetch handler", LOGGING].includes(name)))(
  "on loopback, %s",
  (_name, openPlace) => {
    it("refuses requests to names that an attacker may control, of all routes (DNS rebinding)", async () => {
      const port = await openPlace("127.0.0.1", openTriton());
      for (const host of [
        `evil.example:${port}`,
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example.",
      ]) {
        for (const path of [
          "/v2",
          "/v2/health/ready",
          "/v2/models/double",
          "/v2/models/stats",
          "/v2/logging",
          "/v2/x",
        ]) {
          const [status, text] = await send(port, { method: "GET", path, headers: { host } });
          expect([host, path, status]).toEqual([host, path, 403]);
          expect(JSON.parse(text).error).toContain(`requests to the host '${host}' are refused`);
        }
        expect(
          await statusOf(port, { path: "/v2/models/double/infer", headers: { host }, body: inference }),
        ).toBe(403);
      }
    });

    it("answers to addresses, to names of this machine, and to allowed names", async () => {
      const security = {
        restrictedEndpoints: [],
        allowedHosts: ["triton.example.com", ".corp.example"],
      } as const;
      const port = await openPlace("127.0.0.1", openTriton({ security }));
      for (const host of [
        ...[
          "localhost",
          "LOCALHOST",
          "app.localhost",
          "127.0.0.1",
          "127.1.2.3",
          "[::1]",
          "10.4.0.17",
          "gpu-box",
        ],
        ...[
          "host.docker.internal",
          "triton.example.com",
          "Triton.Example.COM.",
          "corp.example",
          "a.b.corp.example",
        ],
      ]) {
        for (const name of [host, `${host}:${port}`]) {
          const headers = { host: name };
          expect([name, await statusOf(port, { method: "GET", path: "/v2", headers })]).toEqual([name, 200]);
        }
      }
      expect(await statusOf(port, { method: "GET", path: "/v2", headers: { host: "example.com" } })).toBe(
        403,
      );
    });
  },
);

describe.each(Object.entries(places).filter(([name]) => name !== LOGGING))(
  "on all addresses, %s",
  (_name, openPlace) => {
    it("refuses changes of other sites, and browsers with unknown names where operations are open", async () => {
      const triton = openTriton();
      const port = await openPlace("0.0.0.0", triton);
      const rebound = { ...language, host: "evil.example" };
      for (const change of changes) {
        for (const headers of [
          { ...forgedFarAway, host: `10.0.0.7:${port}` },
          { ...rebound, origin: evil, "content-type": "application/json" },
        ])
          expect([change.path, await statusOf(port, { ...change, headers })]).toEqual([change.path, 403]);
      }
      for (const path of ["/v2/logging", "/v2/trace/setting", "/v2/systemsharedmemory/status"])
        expect(await statusOf(port, { method: "GET", path, headers: rebound })).toBe(403);
      expect(triton.server.log.settings.verboseLevel).toBe(0);
    });

    it("answers probes, proxies and Triton's clients under any name", async () => {
      const port = await openPlace("0.0.0.0", openTriton());
      for (const host of [`10.4.0.17:${port}`, "triton.models.svc.cluster.local", "triton.example.com"]) {
        const headers = { host };
        expect(await statusOf(port, { method: "GET", path: "/v2/health/ready", headers })).toBe(200);
        expect(await statusOf(port, { path: "/v2/models/double/infer", headers, body: inference })).toBe(200);
        expect(await statusOf(port, { ...logging, headers })).toBe(200);
        expect(await statusOf(port, { method: "GET", path: "/v2/logging", headers })).toBe(200);
        // An ingress passes on what a browser sends.
        const browser = { ...language, ...headers };
        expect(await statusOf(port, { method: "GET", path: "/v2/models/double", headers: browser })).toBe(
          200,
        );
      }
    });
  },
);

describe("the token", () => {
  it("opens operations to a caller with any origin, host and content type, and to nobody else", async () => {
    const triton = openTriton({ security: { accessToken: "secret" } });
    const port = await open(http({ port: 0, address: "0.0.0.0" }), triton);
    const from = { ...forged, host: "evil.example" };
    expect(await statusOf(port, { ...logging, headers: { ...from, ...token } })).toBe(200);
    expect(await send(port, { ...logging, headers: from })).toEqual([
      403,
      expect.stringContaining("This API is restricted, expecting header 'triton-access-token'"),
    ]);
  });
});

describe("origins that the program names", () => {
  const app = "https://app.example.com";
  const headers = { ...forged, origin: app };

  it("are those that CORS lists, and the hosts of security.allowedHosts", async () => {
    const listed = await open(http({ port: 0, cors: { origins: [app] } }));
    expect(await statusOf(listed, { ...logging, headers })).toBe(200);
    expect(await statusOf(listed, { ...logging, headers: forged })).toBe(403);
    const handler = await listen("127.0.0.1", openTriton(), {
      cors: { origins: [/https:\/\/\w+\.example\.com/] },
    });
    expect(await statusOf(handler, { ...logging, headers })).toBe(200);
    const security = { restrictedEndpoints: [], allowedHosts: ["app.example.com"] } as const;
    const named = await open(http({ port: 0 }), openTriton({ security }));
    expect(await statusOf(named, { ...logging, headers })).toBe(200);
    expect(await statusOf(named, { ...logging, headers: forged })).toBe(403);
  });

  it("are not all origins, unless security.allowedHosts is true", async () => {
    const port = await open(http({ port: 0, cors: { origins: true } }));
    expect(await statusOf(port, { ...logging, headers })).toBe(403);
    expect(await statusOf(port, { path: "/v2/models/double/infer", headers, body: inference })).toBe(200);
    const any = openTriton({ security: { restrictedEndpoints: [], allowedHosts: true } });
    const open_ = await open(http({ port: 0 }), any);
    expect(await statusOf(open_, { ...logging, headers: { ...forged, host: "evil.example" } })).toBe(200);
  });

  it("are those that @fastify/cors, and a middleware around a fetch handler, let in", async () => {
    const triton = openTriton();
    const server = fastify();
    onTestFinished(() => server.close());
    await server.register(fastifyCors, { origin: [app] });
    server.register(v2Plugin, { triton });
    await server.listen({ port: 0 });
    const { port } = server.server.address() as AddressInfo;
    expect(await statusOf(port, { ...logging, headers })).toBe(200);
    expect(await statusOf(port, { ...logging, headers: forged })).toBe(403);

    const answer = toNodeListener(fetchHandler(triton));
    const around = createServer((incoming, outgoing) => {
      outgoing.setHeader("access-control-allow-origin", app);
      void answer(incoming, outgoing);
    }).listen(0);
    onTestFinished(() => void around.close());
    const mounted = (around.address() as AddressInfo).port;
    expect(await statusOf(mounted, { ...logging, headers })).toBe(200);
    expect(await statusOf(mounted, { ...logging, headers: forged })).toBe(403);
  });

  it("are names: others are refused", () => {
    for (const name of ["http://a.example", "a.example:8000", "a/b", "*", "", 1])
      expect(() => serviceOf(new Triton({ security: { allowedHosts: [name as string] } }))).toThrow(
        `security.allowedHosts: expected true or names such as "triton.example.com", got '${name}'`,
      );
  });
});

describe("the dashboard", () => {
  const reads = ["/dashboard/api/info", "/dashboard/api/events", "/dashboard/v2/models/double"];

  it.each([
    ["loopback", "127.0.0.1"],
    ["all addresses", "0.0.0.0"],
  ])(
    "on %s shows nothing to a page that rebinds its name, and takes no change from it",
    async (_where, address) => {
      const port = await open(metrics({ port: 0, address, pages: dashboard() }));
      const host = `evil.example:${port}`;
      const own = { host: `localhost:${port}` };
      for (const path of reads) {
        for (const headers of [{ host }, { host, ...language }])
          expect(await statusOf(port, { method: "GET", path, headers })).toBe(403);
        expect([path, await statusOf(port, { method: "GET", path, headers: own })]).toEqual([path, 200]);
      }
      const change = { path: "/dashboard/api/instances/double/1", body: '{"count":2}' };
      for (const headers of [
        { host, origin: `http://${host}`, "content-type": "application/json" },
        { ...own, ...forged },
        { ...own, ...forgedFarAway },
        { ...own, origin: `http://localhost:${port}`, "content-type": "text/plain" },
      ])
        expect(await statusOf(port, { ...change, headers })).toBe(403);
      const page = { ...own, origin: `http://localhost:${port}`, "content-type": "application/json" };
      expect(await statusOf(port, { ...change, headers: page })).toBe(200);
    },
  );

  it("of an application shows nothing to such a page either", async () => {
    const server = createServer(toNodeListener(dashboard().open(openTriton()))).listen(0);
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    for (const path of reads)
      expect(await statusOf(port, { method: "GET", path, headers: { host: "evil.example" } })).toBe(403);
    expect(await statusOf(port, { method: "GET", path: reads[0]! })).toBe(200);
  });

  it("answers under an allowed name, and under any name to a caller with the token", async () => {
    const allowed = openTriton({ security: { restrictedEndpoints: [], allowedHosts: ["ops.example.com"] } });
    const named = await open(metrics({ port: 0, address: "0.0.0.0", pages: dashboard() }), allowed);
    const get = { method: "GET", path: reads[0]! };
    expect(await statusOf(named, { ...get, headers: { host: "ops.example.com" } })).toBe(200);
    const closed = openTriton({ security: { accessToken: "secret" } });
    const port = await open(metrics({ port: 0, address: "0.0.0.0", pages: dashboard() }), closed);
    const host = "ops.example.com";
    expect(await statusOf(port, { ...get, headers: { host, ...token } })).toBe(200);
    expect(await statusOf(port, { ...get, headers: { host } })).toBe(403);
  });
});

describe("other frontends on loopback", () => {
  const routes = { predictRoute: "/predict", healthRoute: "/health" };
  it.each<[string, () => Frontend, path: string]>([
    ["metrics", () => metrics({ port: 0 }), "/metrics"],
    ["OpenAI's endpoints", () => openai({ port: 0 }), "/v1/models"],
    ["SageMaker", () => sageMaker({ port: 0, address: "127.0.0.1" }), "/ping"],
    ["Vertex AI", () => vertexAi({ port: 0, address: "127.0.0.1", ...routes }), "/health"],
  ])("refuse requests to unknown names: %s", async (_name, frontend, path) => {
    const port = await open(frontend());
    expect(await statusOf(port, { method: "GET", path, headers: { host: `evil.example:${port}` } })).toBe(
      403,
    );
    expect(await statusOf(port, { method: "GET", path })).toBe(200);
  });
});

describe("loads over other frontends", () => {
  it("of OpenAI's endpoints are refused to pages of other sites, in OpenAI's form", async () => {
    const app = fastify();
    onTestFinished(() => app.close());
    app.register(openAiPlugin, { triton: openTriton() });
    await app.listen({ port: 0 });
    const mounted = (app.server.address() as AddressInfo).port;
    const own = await open(openai({ port: 0, address: "0.0.0.0" }));
    for (const port of [mounted, own]) {
      const path = "/v1/models/double/unload";
      const [status, text] = await send(port, { path, headers: forged });
      expect([status, JSON.parse(text).error.code]).toEqual([403, "access_restricted"]);
      expect(await statusOf(port, { path, headers: { "content-type": "application/json" } })).not.toBe(403);
    }
    const [, text] = await send(mounted, {
      method: "GET",
      path: "/v1/models",
      headers: { host: "evil.example" },
    });
    expect(JSON.parse(text).error).toMatchObject({ type: "invalid_request_error", param: null });
    const keyed = await open(openai({ port: 0, apiKeys: ["key"] }));
    const authorization = "Bearer key";
    const load = { path: "/v1/models/none/load", headers: { ...forged, authorization } };
    expect(await statusOf(keyed, load)).toBe(400);
  });

  it("of SageMaker are refused to pages of other sites", async () => {
    const port = await open(sageMaker({ port: 0, multiModel: true }));
    const load = { path: "/models", body: '{"model_name":"a","url":"/opt/ml/models/a/model"}' };
    expect(await statusOf(port, { ...load, headers: forged })).toBe(403);
    expect(await statusOf(port, { ...load, headers: { host: "evil.example", origin: evil } })).toBe(403);
    expect(await statusOf(port, { method: "DELETE", path: "/models/a", headers: forged })).toBe(403);
    // The platform reaches the routes: there is no such directory.
    expect(await statusOf(port, { ...load, headers: { host: "model.aws.local:8080" } })).toBe(400);
    expect(await statusOf(port, { method: "DELETE", path: "/models/a" })).toBe(404);
  });
});
