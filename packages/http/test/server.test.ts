import dns from "node:dns/promises";
import { EventEmitter, once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { type AddressInfo, connect, type Socket } from "node:net";
import { batch, Triton } from "@tritonjs/core";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { defaultFrontends, http, metrics, v2Plugin } from "../src/index.js";
import { answerClientError } from "../src/server/node-connections.js";
import { IdentityService, identityConfig } from "./support/identity-service.js";
import { oneConnection, send } from "./support/send.js";
import { startHttp } from "./support/start-http.js";

const path = "/v2/models/m/infer";

const good = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("server", () => {
  it("start returns the address of the server", async () => {
    const frontend = http({ port: 0, address: "127.0.0.1" });
    onTestFinished(() => frontend.stop());
    const { host, port, url } = await frontend.start({ service: identity() });
    expect(host).toBe("127.0.0.1");
    expect(url).toBe(`http://127.0.0.1:${port}`);
  });

  it("defaultFrontends opens those that are allowed", async () => {
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
    expect((await defaultFrontends(options)).map(({ name }) => name)).toEqual(["http", "metrics"]);
    expect(await defaultFrontends({ ...options, allowHttp: false, allowMetrics: false })).toEqual([]);
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
});

describe("a port that is taken", () => {
  it.each([
    [http, "choose another with the option httpPort (or http({ port }))"],
    [metrics, "choose another with the option metricsPort (or metrics({ port }))"],
  ])("is named together with its option", async (frontend, hint) => {
    const port = await startHttp(identity());
    await expect(frontend({ port }).start({ service: identity() })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `port ${port} is already in use: ${hint}`,
    });
  });
});

describe("stopping the HTTP frontend", () => {
  it("answers running requests, closes idle connections, and accepts no new ones", async () => {
    const service = identity();
    const frontend = http({ port: 0 });
    const { port } = await frontend.start({ service });
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
    const { port } = await frontend.start({ service });
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
    await frontend.start({ service: identity() });
    await Promise.all([frontend.stop(), frontend.stop()]);
    await frontend.stop();
  });
});

describe("the metrics port", () => {
  it("serves the metrics page, and an empty page on other paths", async () => {
    const frontend = metrics({ port: 0 });
    onTestFinished(() => frontend.stop());
    const { port } = await frontend.start({ service: identity() });
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

/** Makes every host have two addresses until the end of the test. */
function resolveToTwoAddresses(): void {
  const { lookup } = dns;
  const replace = (by: unknown) => {
    Object.assign(dns, { lookup: by });
    syncBuiltinESMExports();
  };
  onTestFinished(() => replace(lookup));
  replace(async () => [{ address: "127.0.0.1" }, { address: "127.0.0.2" }]);
}

describe("further addresses", () => {
  // Only Linux has more than the first address of the loopback network.
  it.skipIf(process.platform !== "linux")(
    "the HTTP frontend answers on every address of its host and closes all of them",
    async () => {
      resolveToTwoAddresses();
      const frontend = http({ port: 0 });
      const { port } = await frontend.start({ service: new IdentityService() });
      for (const host of ["127.0.0.1", "127.0.0.2"]) {
        expect((await fetch(`http://${host}:${port}/v2/health/live`)).status).toBe(200);
      }
      const silent = connect(port, "127.0.0.2");
      await once(silent, "connect");
      const gone = once(silent, "close");
      await frontend.stop();
      await gone;
      await expect(fetch(`http://127.0.0.2:${port}/v2/health/live`)).rejects.toThrow();
    },
  );
});

describe("client error", () => {
  it("the server closes the connection of a client that stays after a parse error", async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    server.on("clientError", (error, socket) => answerClientError(error, socket as Socket, false));
    server.listen(0);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host: "localhost", allowHalfOpen: true }, () =>
      client.write("GARBAGE\r\n\r\n"),
    );
    onTestFinished(() => void client.destroy());
    client.resume();
    const [socket] = (await once(server, "connection")) as [Socket];
    await Promise.all([once(client, "end"), once(socket, "close")]);
    expect(client.writable).toBe(true);
  });
});

const body = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],"data":[1]}]}';

const infer = { path: "/v2/models/slow/infer", body };

/** A server of a model that computes when the test allows it. */
async function serve() {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  const events = new EventEmitter();
  const model = { rows: 0, gate: Promise.resolve() };
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "IN", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "OUT", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ IN }) => {
      model.rows += IN.shape[0]!;
      events.emit("begun");
      await model.gate;
      return { OUT: IN };
    }),
    config: { maxBatchSize: 8 },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  return { triton, port: addresses.http!.port, model, events };
}

describe("closing a server under HTTP requests", () => {
  it("turns ready false, rejects new requests with 503, and finishes running ones", async () => {
    const { triton, port, model, events } = await serve();
    let release = () => {};
    model.gate = new Promise((resolve) => {
      release = resolve;
    });
    const inModel = once(events, "begun");
    const begun = send(port, infer);
    await inModel;
    const closed = triton.close();
    const ready = await send(port, { method: "GET", path: "/v2/health/ready" });
    expect([ready.status, ready.headers.connection]).toEqual([400, "close"]);
    const late = await send(port, infer);
    expect([late.status, late.headers.connection]).toEqual([503, "close"]);
    expect((await send(port, { method: "GET", path: "/v2/health/live" })).status).toBe(200);
    release();
    expect((await begun).status).toBe(200);
    await closed;
    await expect(send(port, infer)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("answers every request that has begun, under load", async () => {
    const { triton, port, model } = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 40 });
    onTestFinished(() => agent.destroy());
    const statuses: number[] = [];
    const answers = new EventEmitter();
    const client = async (): Promise<void> => {
      for (;;) {
        // A connection may end with a request that has not been read yet: the client can send it again.
        const answer = await send(port, { ...infer, agent }).catch(() => undefined);
        if (answer === undefined) return;
        statuses.push(answer.status);
        if (statuses.length === 200) answers.emit("enough");
        if (answer.status !== 200) return;
      }
    };
    const enough = once(answers, "enough");
    const clients = Array.from({ length: 40 }, client);
    await enough;
    await triton.close();
    await Promise.all(clients);
    expect(statuses.filter((status) => status === 200).length).toBe(model.rows);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });
});

describe("send answer pipelining", () => {
  const infer = `POST /v2/models/slow/infer HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  describe("a client that leaves with pipelined requests", () => {
    it("has all of them cancelled and does not delay closing", async () => {
      const triton = new Triton();
      onTestFinished(() => triton.close());
      const events = new EventEmitter();
      const signals: AbortSignal[] = [];
      triton.bind({
        modelName: "slow",
        inputs: [{ name: "IN", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "OUT", dtype: "FP32", shape: [1] }],
        inferFunc: batch(async ({ IN }, { signal }) => {
          signals.push(signal);
          if (signals.length === 3) events.emit("begun");
          if (!signal.aborted) await once(signal, "abort");
          return { OUT: IN };
        }),
        config: { maxBatchSize: 1, instanceGroup: { count: 3 } },
      });
      const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
      const begun = once(events, "begun");
      const client = connect(addresses.http!.port, "localhost", () => client.write(infer.repeat(3)));
      await begun;
      client.destroy();
      await triton.close();
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    });
  });
});
