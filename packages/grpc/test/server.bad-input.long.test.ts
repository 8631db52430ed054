import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService } from "./support/fake-service.js";
import type { GrpcClient } from "./support/grpc-client.js";
import { currentTransport, overEachTransport } from "./support/over-each-transport.js";
import { framed, rawCall, rawSession } from "./support/raw-call.js";
import { serve } from "./support/serve.js";

const good = encodeMessage(inference.ModelInferRequest, {
  modelName: "m",
  id: "good",
  inputs: [{ name: "X", datatype: "UINT8", shape: [3], parameters: { k: { stringParam: "v" } } }],
  rawInputContents: [Uint8Array.of(1, 2, 3)],
});

/** Pseudo-random numbers, the same in every run. */
function* pseudoRandom(seed: number): Generator<number> {
  for (let state = seed; ; state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) yield state >>> 24;
}

const works = (client: GrpcClient) =>
  expect(client.infer({ modelName: "m", id: "next" })).resolves.toMatchObject({ id: "next" });

overEachTransport("the server", () => {
  test("rejects bytes that are not a message, and serves the next call", async () => {
    const { client, address } = await serve(new FakeService());
    const session = rawSession(address.url);
    const random = pseudoRandom(7);
    const refusals = [status.INTERNAL, status.INVALID_ARGUMENT, status.NOT_FOUND, status.OK];
    for (let length = 1; length < good.length; length += 3) {
      const { grpcStatus } = await rawCall(session, framed(good.subarray(0, length)));
      expect(refusals).toContain(grpcStatus);
    }
    for (let round = 0; round < 100; round++) {
      const broken = Buffer.from(good);
      for (let change = 0; change < 3; change++) {
        broken[random.next().value! % broken.length] = random.next().value!;
      }
      expect(refusals).toContain((await rawCall(session, framed(broken))).grpcStatus);
    }
    await works(client);
  });

  test("rejects bytes that are not framed or end inside a message", async () => {
    const { client, address } = await serve(new FakeService(), { maxReceiveMessageSize: 1000 });
    const session = rawSession(address.url);
    const tooLarge = await rawCall(session, Buffer.concat([Buffer.of(0), Buffer.alloc(99, 0xff)]));
    expect(tooLarge.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    const cut = await rawCall(session, framed(good).subarray(0, 20));
    expect(cut.grpcStatus).toBe(status.UNIMPLEMENTED);
    const none = await rawCall(session, new Uint8Array(0));
    expect(none.grpcStatus).toBe(status.UNIMPLEMENTED);
    const two = await rawCall(session, Buffer.concat([framed(good), framed(good)]));
    expect(two.grpcStatus).toBe(status.UNIMPLEMENTED);
    await works(client);
  });

  test("rejects a message that unpacks to more than the largest request", async () => {
    const { client, address } = await serve(new FakeService(), { maxReceiveMessageSize: 100_000 });
    const session = rawSession(address.url);
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const answer = await rawCall(session, framed(bomb, 1), { "grpc-encoding": "gzip" });
    expect(answer.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    const wrong = await rawCall(session, framed(good, 1), { "grpc-encoding": "gzip" });
    expect(wrong.grpcStatus).toBe(status.INTERNAL);
    const unknown = await rawCall(session, framed(good, 1), { "grpc-encoding": "snappy" });
    expect(unknown.grpcStatus).toBe(status.UNIMPLEMENTED);
    const packed = await rawCall(session, framed(gzipSync(good), 1), { "grpc-encoding": "gzip" });
    expect(packed.grpcStatus).toBe(status.OK);
    await works(client);
  });

  test("rejects an unknown method and a wrong content type", async () => {
    const { client, address } = await serve(new FakeService());
    const session = rawSession(address.url);
    const path = "/inference.GRPCInferenceService/Nothing";
    expect((await rawCall(session, framed(good), { ":path": path })).grpcStatus).toBe(status.UNIMPLEMENTED);
    const html = await rawCall(session, framed(good), { "content-type": "text/html" });
    expect(html.httpStatus).toBe(415);
    await works(client);
  });

  test("rejects an expired or invalid deadline", async () => {
    const { client, address } = await serve(new FakeService({}, () => {}));
    const session = rawSession(address.url);
    for (const timeout of ["1n", "0S", "0n"]) {
      const passed = await rawCall(session, framed(good), { "grpc-timeout": timeout });
      expect(passed.grpcStatus).toBe(status.DEADLINE_EXCEEDED);
    }
    const none = await rawCall(session, framed(good), { "grpc-timeout": "soon" });
    expect(none.grpcStatus).toBe(status.INTERNAL);
    await expect(client.ask("ServerLive", {})).resolves.toMatchObject({ live: true });
  });

  test("rejects a path, encoding, timeout or name too long to quote", async () => {
    const { client, address } = await serve(new FakeService());
    const session = rawSession(address.url);
    const long = ["x".repeat(20_000), "\u00e4".repeat(20_000)];
    for (const text of long) {
      const path = await rawCall(session, framed(good), { ":path": `/${text}` });
      expect(path.reset).toBe(0);
      expect(path.grpcStatus).toBe(status.UNIMPLEMENTED);
      if (currentTransport() === "http2") expect(path.message!.length).toBeLessThan(8192);
      const named = encodeMessage(inference.ModelInferRequest, { modelName: text });
      expect((await rawCall(session, framed(named))).message!.length).toBeLessThan(8192);
    }
    const timeout = await rawCall(session, framed(good), { "grpc-timeout": long[0]! });
    expect(timeout.grpcStatus).toBe(status.INTERNAL);
    const encoding = await rawCall(session, framed(good, 1), { "grpc-encoding": long[0]! });
    expect(encoding.grpcStatus).toBe(status.UNIMPLEMENTED);
    if (currentTransport() === "http2") {
      expect(timeout.message!.length).toBeLessThan(8192);
      expect(encoding.message!.length).toBeLessThan(8192);
    }
    await works(client);
  });

  test("rejects contradictory tensors", async () => {
    const { client } = await serve(new FakeService());
    const input = { name: "X", datatype: "UINT8", shape: [1] };
    const typed = { ...input, contents: { uintContents: [1] } };
    const wrong = { ...input, contents: { fp32Contents: [1] } };
    const raw = [Uint8Array.of(1)];
    const refused = (inputs: object[], rawInputContents: Uint8Array[], details: RegExp) =>
      expect(client.infer({ modelName: "m", inputs, rawInputContents })).rejects.toMatchObject({
        code: status.INVALID_ARGUMENT,
        details: expect.stringMatching(details),
      });
    await refused([input, { ...input, name: "Y" }], raw, /unable to find data for input tensor 'Y'/);
    await refused([typed], raw, /contents field must not be specified/);
    await refused([wrong], [], /unexpected explicit tensor data/);
    await works(client);
  });

  test("survives endless pings", async () => {
    const { client, address } = await serve(new FakeService());
    const session = rawSession(address.url);
    await once(session, "connect");
    for (let ping = 0; ping < 10_000 && !session.destroyed; ping++) {
      session.ping(() => {});
      if (ping % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
    }
    await works(client);
  });

  test("ends a stream with a status after bad input in the middle", async () => {
    const service = new FakeService();
    const { client, address } = await serve(service);
    const path = "/inference.GRPCInferenceService/ModelStreamInfer";
    const body = Buffer.concat([framed(good), framed(Buffer.from([0xff, 0xff, 0xff]))]);
    const { grpcStatus } = await rawCall(rawSession(address.url), body, { ":path": path });
    expect(grpcStatus).toBe(status.INTERNAL);
    await works(client);
  });

  test("survives bytes that are not HTTP/2", async () => {
    const { client, address } = await serve(new FakeService());
    const socket = connect(address.port, "localhost");
    socket.on("error", () => {});
    socket.end("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    socket.resume();
    await once(socket, "close");
    await works(client);
  });

  test("rejects a megabyte of headers", async () => {
    const { client, address } = await serve(new FakeService());
    const session = rawSession(address.url);
    const { grpcStatus } = await rawCall(session, framed(good), { "x-large": "x".repeat(1024 * 1024) });
    expect(grpcStatus).not.toBe(status.OK);
    await works(client);
  });

  test("survives calls that are reset at once", async () => {
    const service = new FakeService({}, () => {});
    const { client, address } = await serve(service);
    const session = rawSession(address.url);
    const closed = Array.from({ length: 5000 }, () => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/inference.GRPCInferenceService/ModelInfer",
        "content-type": "application/grpc",
        te: "trailers",
      });
      stream.on("error", () => {});
      stream.write(framed(good));
      stream.close(8);
      return new Promise((resolve) => stream.once("close", resolve));
    });
    await Promise.all(closed);
    await expect(client.ask("ServerLive", {})).resolves.toMatchObject({ live: true });
    await expect.poll(() => service.requests.filter((request) => !request.settled)).toEqual([]);
  });
});
