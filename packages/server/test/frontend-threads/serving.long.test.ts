import { once } from "node:events";
import { Agent, get } from "node:http";
import { createServer } from "node:net";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { expect, it, onTestFinished } from "vitest";
import { makeCertificates } from "../../../../test/support/certificates.js";
import { freePorts } from "../../../../test/support/free-ports.js";
import { askDouble, bindDouble, openTriton, serveInThreads } from "./support.js";

it("several threads serve HTTP and gRPC at one port each, which port 0 chooses", async () => {
  const triton = openTriton();
  const { addresses, url, workers } = await serveInThreads(triton, 2, [
    http({ port: 0, address: "127.0.0.1" }),
    grpc({ port: 0, address: "127.0.0.1" }),
  ]);
  expect(workers).toHaveLength(2);
  expect(addresses.http?.port).not.toBe(0);
  for (let i = 0; i < 10; i++)
    expect(await askDouble(url, "double", i)).toEqual([200, expect.stringContaining(`[${2 * i}.0]`)]);
  const client = new InferenceServerClient(addresses.grpc!.url);
  const { version } = await client.getServerMetadata();
  const answer = await client.infer("double", {
    inputs: { x: { datatype: "FP32", shape: [1], data: [4] } },
  });
  client.close();
  expect([version, answer.tensor("y").elements]).toEqual([
    serviceOf(triton).serverMetadata().version,
    Float32Array.of(8),
  ]);
});

it("the addresses come in the order of the frontends, although threads are opened last", async () => {
  const own = { host: "127.0.0.1", port: 1, url: "http://127.0.0.1:1" };
  const { addresses } = await serveInThreads(openTriton(), 1, [
    http({ port: 0, address: "127.0.0.1" }),
    { name: "own", start: async () => own, stop: async () => {} },
  ]);
  expect(Object.keys(addresses)).toEqual(["http", "own"]);
});

it("a taken port is reported as on the main thread", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as { port: number };
  const serving = serveInThreads(openTriton(), 1, [http({ port, address: "127.0.0.1" })]);
  await expect(serving).rejects.toMatchObject({
    message: `port ${port} is already in use: choose another with the option httpPort (or http({ port }))`,
    reason: "LISTEN_FAILED",
    cause: { code: "EADDRINUSE" },
  });
  holder.close();
});

it("a client that gets an answer while the server starts keeps its connection", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  for (let i = 0; i < 5; i++) {
    const [port] = await freePorts(1);
    const live = () =>
      new Promise<number | undefined>((resolve) => {
        const sent = get({ port, agent, path: "/v2/health/live" }, (answer) => {
          answer.resume().on("end", () => resolve(answer.statusCode));
        });
        sent.on("error", () => resolve(undefined));
      });
    const serving = serveInThreads(openTriton(), 1, [http({ port, address: "localhost" })]);
    while ((await live()) === undefined);
    expect(await live()).toBe(200);
    await serving;
  }
});

it("connections can be encrypted", async () => {
  const { ca, server } = await makeCertificates();
  const { addresses } = await serveInThreads(openTriton(), 1, [
    grpc({ port: 0, address: "127.0.0.1", tls: server }),
  ]);
  const client = new InferenceServerClient(addresses.grpc!.url.replace("127.0.0.1", "localhost"), {
    tls: { ca },
  });
  expect(await client.isServerLive().catch(({ message }) => message)).toBe(true);
  client.close();
});

it("a model is served by all threads as soon as it is ready, and by none once it is gone", async () => {
  const triton = openTriton();
  const { url } = await serveInThreads(triton, 2);
  for (let round = 0; round < 10; round++) {
    const handle = bindDouble(triton, "later");
    await triton.ready();
    const [first, second] = await Promise.all([askDouble(url, "later"), askDouble(url, "later")]);
    expect([first[0], second[0]]).toEqual([200, 200]);
    await handle.unbind();
    expect(await askDouble(url, "later")).toEqual([
      404,
      `{"error":"Request for unknown model: 'later' is not found"}`,
    ]);
  }
});

it("settings that one thread changes are read by the others and by the engine", async () => {
  const triton = openTriton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  const { url } = await serveInThreads(triton, 2);
  for (let level = 1; level < 8; level++) {
    await fetch(`${url}/v2/logging`, {
      method: "POST",
      body: JSON.stringify({ log_verbose_level: level }),
      headers: { connection: "close" },
    });
    const read = await fetch(`${url}/v2/logging`, { headers: { connection: "close" } });
    expect(await read.json()).toMatchObject({ log_verbose_level: level });
    expect(triton.server.log.settings.verboseLevel).toBe(level);
  }
});

it("frontends with functions in their options stay on the main thread, and the log says so", async () => {
  const warnings: string[] = [];
  const logger = { error() {}, warn: (text: string) => void warnings.push(text), info() {}, debug() {} };
  const { url, workers } = await serveInThreads(openTriton({ logger }), 1, [
    http({ port: 0, address: "127.0.0.1", labels: () => undefined }),
  ]);
  expect(workers).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("the http frontend stays on the main thread")]);
  expect((await askDouble(url))[0]).toBe(200);
});

it("a number of threads that cannot be is refused", async () => {
  await expect(openTriton().serve({ frontendThreads: -1 })).rejects.toMatchObject({
    code: "INVALID_ARG",
    message: 'serve({ frontendThreads }): expected "auto" or an integer from 0 to 128, got -1',
  });
});
