import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { ServeResult } from "@tritonjs/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { HeldModel, heldCall } from "./support/held-model.js";
import { openTriton, serveAndConnect, until } from "./support/open-triton.js";

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
