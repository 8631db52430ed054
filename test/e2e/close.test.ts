import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { type ServeResult, sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Client, type InferCall, Refusal, WAYS } from "../conformance/clients/client.js";
import { irisModel } from "../support/iris.js";
import { HeldModel, heldCall } from "./support/held-model.js";
import { onSent, openTriton, serveAndConnect, until } from "./support/open-triton.js";

describe("close() under requests", () => {
  it("answers accepted requests, executed or not, and rejects later ones, for every client", async () => {
    const triton = openTriton();
    const held = new HeldModel(triton, { batching: false, instanceGroup: { count: 2 } });
    const clients = await serveAndConnect(triton);
    let sent = 0;
    onSent(triton, () => sent++);
    const calls = clients.flatMap((client, way) => [0, 1, 2].map((n) => ({ client, value: 10 * way + n })));
    const answers = calls.map(({ client, value }) => client.infer(heldCall(value, false)));
    // In-process calls are accepted at once; others when their frontends have passed them on.
    const overTransports = calls.filter(({ client }) => client.way !== "in process").length;
    await until(() => sent === overTransports);
    await held.reached(2);

    const closing = triton.close();
    await until(() => !serviceOf(triton).isReady());
    for (const client of clients) await expectRefused(client, heldCall(99, false));
    expect(held.executed).toHaveLength(2);

    held.release();
    const values = (await Promise.all(answers)).map(({ outputs }) => outputs[0]!.elements[0]);
    expect(values).toEqual(calls.map(({ value }) => 2 * value));
    await closing;
    expect([...held.executed].sort((a, b) => a - b)).toEqual(calls.map(({ value }) => value));
  });

  it.each(WAYS)(
    "settles every request once under load, closing at the first answer %s",
    async (closesAfter) => {
      const triton = openTriton();
      const iris = triton.bind({
        modelName: "iris",
        inferFunc: onnxruntime({ model: irisModel }),
        config: { maxBatchSize: 8 },
      });
      const clients = await serveAndConnect(triton);
      const settled = new Array<number>(clients.length * 16).fill(0);
      let closing: Promise<void> | undefined;
      const outcomes = await Promise.allSettled(
        settled.map(async (_count, i) => {
          const client = clients[i % clients.length]!;
          try {
            return await client.infer(irisCall);
          } finally {
            settled[i]!++;
            if (client.way === closesAfter) closing ??= triton.close();
          }
        }),
      );
      await closing;
      expect(new Set(settled)).toEqual(new Set([1]));
      const answered = outcomes.filter((outcome) => outcome.status === "fulfilled");
      expect(answered.length).toBe(iris.statistics().inferenceCount);
      expect(answered.length).toBeGreaterThan(0);
      for (const { value } of answered) {
        expect(value.outputs.find(({ name }) => name === "species")!.elements).toEqual([0n]);
      }
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expectUnavailable(outcome.reason);
      }
    },
  );

  it("ends requests that are not done within exitTimeoutSecs", async () => {
    const triton = openTriton({ exitTimeoutSecs: 0 });
    const held = new HeldModel(triton, { batching: false });
    const clients = await serveAndConnect(triton);
    let sent = 0;
    onSent(triton, () => sent++);
    const answers = clients.map((client, i) => client.infer(heldCall(i, false)));
    const settled = Promise.allSettled(answers);
    await until(() => sent === clients.length - 1);
    await held.reached(1);
    const closing = triton.close();
    for (const outcome of await settled) {
      expect(outcome.status).toBe("rejected");
      if (outcome.status === "rejected") expectUnavailable(outcome.reason);
    }
    await closing;
  });
});

const irisCall: InferCall = {
  model: "iris",
  inputs: [{ name: "measurements", datatype: "FP32", shape: [1, 4], elements: [5.1, 3.5, 1.4, 0.2] }],
};

async function expectRefused(client: Client, call: InferCall): Promise<void> {
  const outcome = await client.infer(call).catch((error: unknown) => error);
  expectUnavailable(outcome);
}

/** Expects UNAVAILABLE in the form of any client, or a refused connection. */
function expectUnavailable(error: unknown): void {
  if (error instanceof Refusal) expect(["UNAVAILABLE", 503]).toContain(error.status);
  // The second words are Bun's.
  else expect(String(error)).toMatch(/^TypeError: (fetch failed$|ECONNRESET: )/);
}

/** Longer than any test may take: a test that ends earlier did not wait for this timeout. */
const LONG = { exitTimeoutSecs: 3600 };

const HALF_A_REQUEST =
  "POST /v2/models/held/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";

describe("close() with silent clients", () => {
  it("does not wait for connections without a request, on any port and address", async () => {
    const triton = openTriton(LONG);
    const sockets = await connectToAll(await triton.serve());
    const ended = Promise.all(sockets.map((socket) => once(socket, "close")));
    await triton.close();
    await ended;
  });

  it("does not wait for connections that were used before", async () => {
    const triton = openTriton(LONG);
    const { addresses } = await triton.serve();
    const socket = await connectTo("localhost", addresses.http!.port);
    socket.write("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    await triton.close();
  });

  it("does not wait for the connection of a client that cancelled a request and sent another", async () => {
    const triton = openTriton(LONG);
    const held = new HeldModel(triton, { batching: false });
    const clients = await serveAndConnect(triton);
    const overHttp = clients.find(({ way }) => way === "HTTP JSON")!;
    const controller = new AbortController();
    const refused = expect(overHttp.infer(heldCall(1, false, controller.signal))).rejects.toThrow();
    await held.reached(1);
    controller.abort();
    await refused;
    held.release();
    await overHttp.infer(heldCall(2, false));
    await triton.close();
  });

  it("waits for half a request no longer than exitTimeoutSecs", async () => {
    const triton = openTriton({ exitTimeoutSecs: 0 });
    new HeldModel(triton, { batching: false });
    const { addresses } = await triton.serve();
    const socket = await connectTo("localhost", addresses.http!.port);
    socket.write(HALF_A_REQUEST);
    // An answer on another connection shows that the server has read the bytes written before.
    await (await fetch(`${addresses.http!.url}/v2/health/live`)).arrayBuffer();
    await triton.close();
  });

  it("cuts off gRPC calls that are not done within exitTimeoutSecs", async () => {
    const triton = openTriton({ exitTimeoutSecs: 0 });
    const held = new HeldModel(triton, { batching: false });
    const clients = await serveAndConnect(triton);
    const overGrpc = clients.find(({ way }) => way === "gRPC raw")!;
    const refused = expect(overGrpc.infer(heldCall(1, false))).rejects.toMatchObject({
      status: "UNAVAILABLE",
    });
    await held.reached(1);
    await triton.close();
    await refused;
    await until(() => held.signals[0]!.aborted);
  });
});

/** A silent connection to every port, over every address of localhost. */
async function connectToAll({ addresses }: ServeResult): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (const { port } of Object.values(addresses)) {
    for (const { address } of await lookup("localhost", { all: true })) {
      const socket = await connectTo(address, port).catch(() => undefined);
      if (socket !== undefined) sockets.push(socket);
    }
  }
  expect(sockets.length).toBeGreaterThanOrEqual(3);
  return sockets;
}

async function connectTo(host: string, port: number): Promise<Socket> {
  const socket = connect(port, host);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.on("error", () => {});
  return socket.resume();
}

/** Sends an inference over a kept connection, and returns the status and how the connection goes on. */
function infer(url: string, agent: Agent): Promise<[status: number, connection: string | undefined]> {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v2/models/double/infer`, { method: "POST", agent }, (response) => {
      response.resume();
      response.once("end", () => resolve([response.statusCode!, response.headers.connection]));
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

describe("exit delay", () => {
  it("before the drain, a server is not ready but answers, and tells clients to leave their connections", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, exitDelaySecs: 10 });
    triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    });
    const frontends = [http({ port: 0 }), grpc({ port: 0 })];
    const { addresses } = await triton.serve({ frontends });
    const { url } = addresses.http!;
    const agent = new Agent({ keepAlive: true });
    const client = new InferenceServerClient(addresses.grpc!.url);
    try {
      const ready = async () => [
        (await fetch(`${url}/v2/health/ready`)).status,
        await client.isServerReady(),
      ];
      expect(await infer(url, agent)).toEqual([200, "keep-alive"]);
      expect(await ready()).toEqual([200, true]);

      const closed = triton.close();
      await expect.poll(ready).toEqual([400, false]);
      expect(await infer(url, agent)).toEqual([200, "close"]);
      expect(
        (await client.infer("double", { inputs: { x: Float32Array.of(4) } })).tensor("y").elements,
      ).toEqual(Float32Array.of(8));
      expect((await fetch(`${url}/v2/health/live`)).status).toBe(200);

      await clock.advance(10_000);
      await closed;
      await expect(infer(url, agent)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
    } finally {
      client.close();
      agent.destroy();
      await triton.close();
    }
  });
});
