import { request } from "node:http";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { defaultFrontends, http, metrics, v2Plugin } from "../src/index.js";
import { IdentityService, identityConfig } from "./support/identity-service.js";
import { oneConnection, send } from "./support/send.js";
import { startHttp } from "./support/start-http.js";

const path = "/v2/models/m/infer";
const good = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("a port that is taken", () => {
  it.each([
    [http, "choose another with the option httpPort (or http({ port }))"],
    [metrics, "choose another with the option metricsPort (or metrics({ port }))"],
  ])("is named together with its option", async (frontend, hint) => {
    const port = await startHttp(identity());
    await expect(frontend({ port }).start(identity())).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `port ${port} is already in use: ${hint}`,
    });
  });
});

it("start returns the address of the server", async () => {
  const frontend = http({ port: 0, address: "127.0.0.1" });
  onTestFinished(() => frontend.stop());
  const { host, port, url } = await frontend.start(identity());
  expect(host).toBe("127.0.0.1");
  expect(url).toBe(`http://127.0.0.1:${port}`);
});

describe("stopping the HTTP frontend", () => {
  it("answers running requests, closes idle connections, and accepts no new ones", async () => {
    const service = identity();
    const frontend = http({ port: 0 });
    const { port } = await frontend.start(service);
    const idle = oneConnection();
    await send(port, { path, body: good, agent: idle });
    const busy = oneConnection();
    let stopped: Promise<void> | undefined;
    service.onRequest = (request) => {
      stopped = frontend.stop();
      setImmediate(() => service.answer(request));
    };
    const answer = await send(port, { path, body: good, agent: busy });
    expect(answer.status).toBe(200);
    expect(answer.headers.connection).toBe("close");
    await stopped;
    await expect(send(port, { path, body: good })).rejects.toThrow();
    idle.destroy();
    busy.destroy();
  });

  it("waits for an answer that has begun, and not for its connection", async () => {
    const service = new IdentityService(identityConfig("m", "INT32"));
    const frontend = http({ port: 0 });
    const { port } = await frontend.start(service);
    const agent = oneConnection();
    service.onRequest = (request) => {
      const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: new Map() };
      request.respond(response, false);
      finish = () => request.finish();
    };
    let finish = (): boolean => false;
    const answer = await new Promise<string>((resolve, reject) => {
      const stream = request(
        { host: "localhost", port, agent, method: "POST", path: "/v2/models/m/generate_stream" },
        (incoming) => {
          let text = "";
          incoming.setEncoding("utf8");
          incoming.once("data", () => {
            const stopped = frontend.stop();
            setImmediate(finish);
            stopped.then(() => resolve(text), reject);
          });
          incoming.on("data", (part: string) => {
            text += part;
          });
        },
      );
      stream.on("error", reject);
      stream.end("{}");
    });
    expect(answer).toContain("data: ");
    agent.destroy();
  });

  it("is harmless before the start and when repeated", async () => {
    const frontend = http({ port: 0 });
    await frontend.stop();
    await frontend.start(identity());
    await Promise.all([frontend.stop(), frontend.stop()]);
    await frontend.stop();
  });
});

describe("the metrics port", () => {
  it("serves the metrics page, and an empty page on other paths", async () => {
    const frontend = metrics({ port: 0 });
    onTestFinished(() => frontend.stop());
    const { port } = await frontend.start(identity());
    const get = (where: string) => send(port, { method: "GET", path: where });
    for (const where of ["/metrics", "/metrics/", "/metrics?x"]) {
      expect(await get(where)).toMatchObject({ status: 200, text: "nv_up 1\n" });
    }
    expect((await get("/metrics")).headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(await get("/other")).toMatchObject({ status: 200, text: "" });
    expect(await send(port, { path: "/metrics", body: "{" })).toMatchObject({
      status: 405,
      text: '{"error":"Method Not Allowed"}',
    });
  });
});

it("defaultFrontends opens those that are allowed", () => {
  const options = {
    allowHttp: true,
    httpAddress: "localhost",
    httpPort: 0,
    httpMaxInputSize: 1,
    allowGrpc: true,
    grpcAddress: "localhost",
    grpcPort: 0,
    grpcMaxReceiveMessageSize: 1000,
    allowMetrics: true,
    metricsAddress: "localhost",
    metricsPort: 0,
  };
  expect(defaultFrontends(options).map(({ name }) => name)).toEqual(["http", "metrics"]);
  expect(defaultFrontends({ ...options, allowHttp: false, allowMetrics: false })).toEqual([]);
});

it("v2Plugin mounts in an application under a prefix, next to its own routes", async () => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.get("/own", () => "mine");
  app.post("/json", (request) => request.body);
  app.register(v2Plugin, { service: identity(), prefix: "/ml" });
  const get = (url: string) => app.inject({ method: "GET", url });
  expect((await get("/own")).body).toBe("mine");
  expect((await get("/ml/v2/health/live")).statusCode).toBe(200);
  expect((await get("/ml/v2/nothing")).body).toBe('{"error":"Not Found"}');
  expect((await get("/nothing")).json().message).toContain("Route GET:/nothing not found");
  expect((await app.inject({ method: "POST", url: `/ml${path}`, payload: good })).statusCode).toBe(200);
  expect((await app.inject({ method: "POST", url: "/json", payload: { a: 1 } })).json()).toEqual({ a: 1 });
});
