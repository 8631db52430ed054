import { once } from "node:events";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import type { InferenceRequest } from "@tritonjs/testing";
import { describe, expect, test } from "vitest";
import { defaultFrontends, grpc } from "../src/index.js";
import { FakeService, responseTo } from "./support/fake-service.js";
import { GrpcClient } from "./support/grpc-client.js";
import { framed, rawCall, rawSession } from "./support/raw-call.js";
import { FRAME, frameOf, openFrame, rawConnection } from "./support/raw-frames.js";
import { serve } from "./support/serve.js";
import { answer, manualService } from "./support/stream-reader.js";

describe("starting the frontend over http2", () => {
  test("names the port and the option when the port is taken on any address of the host", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { port: number };
    await expect(grpc({ port }).start({ service: new FakeService() })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `port ${port} is already in use: choose another with the option grpcPort (or grpc({ port }))`,
    });
    await new Promise((resolve) => taken.close(resolve));
  });

  test("fails for an unknown host", async () => {
    await expect(
      grpc({ address: "host.invalid", port: 0 }).start({ service: new FakeService() }),
    ).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
  });

  test("returns the address", async () => {
    const { address } = await serve(new FakeService());
    expect(address).toEqual({ host: "localhost", port: address.port, url: `localhost:${address.port}` });
    expect(address.port).toBeGreaterThan(0);
  });

  test.each(["0.0.0.0", "::"])(
    "listens at %s on IPv4, and on IPv6 if the machine has it",
    async (address) => {
      const { address: at } = await serve(new FakeService(), { address });
      const hosts = ["127.0.0.1"];
      if (Object.values(networkInterfaces()).some((all) => all!.some((one) => one.address === "::1")))
        hosts.push("::1");
      for (const host of hosts) {
        const socket = connect(at.port, host);
        await once(socket, "connect");
        socket.destroy();
      }
    },
  );

  test("adds gRPC to the default frontends unless it is off", async () => {
    const options = {
      allowHttp: true,
      httpAddress: "localhost",
      httpPort: 8000,
      httpMaxInputSize: 1,
      allowGrpc: true,
      grpcAddress: "localhost",
      grpcPort: 8001,
      grpcMaxReceiveMessageSize: 1000,
      allowMetrics: true,
      metricsAddress: "localhost",
      metricsPort: 8002,
    };
    expect((await defaultFrontends(options)).map(({ name }) => name)).toEqual(["grpc"]);
    expect(await defaultFrontends({ ...options, allowGrpc: false })).toEqual([]);
  });
});

const END_STREAM = 1;

function refusesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "localhost");
    socket.once("error", () => resolve(true));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
  });
}

describe("stopping the frontend over http2", () => {
  test.each([30_000, Number.POSITIVE_INFINITY])(
    "lets running calls finish within %d ms and rejects new ones",
    async (stopGraceMs) => {
      let waiting: InferenceRequest | undefined;
      let arrived = (): void => {};
      const arrival = new Promise<void>((resolve) => (arrived = resolve));
      const service = new FakeService({}, (request) => {
        waiting = request;
        arrived();
      });
      const { client, frontend, address } = await serve(service, { stopGraceMs });
      const answer = client.infer({ modelName: "m", id: "kept" });
      await arrival;
      const stopped = frontend.stop();
      const late = new GrpcClient(address.url);
      await expect(late.infer({ modelName: "m" })).rejects.toMatchObject({ code: status.UNAVAILABLE });
      late.close();
      waiting!.respond(responseTo(waiting!, new Map()));
      await expect(answer).resolves.toMatchObject({ id: "kept" });
      await stopped;
      await expect(frontend.stop()).resolves.toBeUndefined();
    },
  );

  test("cuts off calls that exceed the grace time", async () => {
    let arrived = (): void => {};
    const arrival = new Promise<void>((resolve) => (arrived = resolve));
    const service = new FakeService({}, () => arrived());
    const { client, frontend } = await serve(service, { stopGraceMs: 10 });
    const cut = expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "GRPC server is shutting down and has stopped accepting new requests.",
    });
    await arrival;
    await frontend.stop();
    await cut;
    expect(service.requests[0]!.settled).toBe(true);
  });

  test("sends GOAWAY to every connection and closes it after its calls", async () => {
    const { service, arrived } = manualService();
    const { frontend, address } = await serve(service, { stopGraceMs: 30_000 });
    const session = rawSession(address.url);
    const told = once(session, "goaway");
    const body = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));
    const call = rawCall(session, body);
    const [kept] = await arrived(1);
    const stopped = frontend.stop();
    expect((await told)[0]).toBe(0);
    answer(kept!);
    expect((await call).grpcStatus).toBe(status.OK);
    await stopped;
    await expect.poll(() => session.destroyed).toBe(true);
  });

  test("before the stop, lets an idle connection make one more call", async () => {
    const { service, arrived } = manualService();
    const { frontend, address } = await serve(service, { stopGraceMs: 30_000 });
    const { socket, frames, closed } = await rawConnection(address.port);
    await expect
      .poll(() => frames.some(({ type, flags }) => type === FRAME.SETTINGS && flags === 1))
      .toBe(true);
    frontend.leave!();
    const body = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));
    const path = "/inference.GRPCInferenceService/ModelInfer";
    const call = Buffer.concat([openFrame(1, path), frameOf(FRAME.DATA, 1, body, body.length, END_STREAM)]);
    expect(frames.some(({ type }) => type === FRAME.GOAWAY)).toBe(false);
    socket.write(call);
    const [kept] = await arrived(1);
    const goaways = () => frames.filter(({ type }) => type === FRAME.GOAWAY);
    await expect.poll(() => goaways().length).toBe(1);
    // The last call that the server has begun.
    expect(goaways()[0]!.payload.readUInt32BE(0)).toBe(1);
    answer(kept!);
    await closed;
    expect(frames.some(({ type, flags }) => type === FRAME.HEADERS && (flags & END_STREAM) !== 0)).toBe(true);
  });

  test("before the stop, waits for the call of a connection that was just opened", async () => {
    const { service, arrived } = manualService();
    const { frontend, address } = await serve(service, { stopGraceMs: 30_000 });
    const { socket, frames, closed } = await rawConnection(address.port);
    const body = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));
    const settled = frontend.settle!();
    socket.write(openFrame(1, "/inference.GRPCInferenceService/ModelInfer"));
    // The message comes later than the headers.
    await expect.poll(() => refusesConnections(address.port)).toBe(true);
    socket.write(frameOf(FRAME.DATA, 1, body, body.length, END_STREAM));
    const [kept] = await arrived(1);
    await settled;
    const stopped = frontend.stop();
    answer(kept!);
    await closed;
    await stopped;
    expect(frames.some(({ type, flags }) => type === FRAME.HEADERS && (flags & END_STREAM) !== 0)).toBe(true);
  });

  test("does nothing before the start", async () => {
    await expect(grpc().stop()).resolves.toBeUndefined();
  });
});
