import { once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { currentTransport, overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";
import { manualService, ok, reader } from "../support/stream-reader.js";

const STREAM = { ":path": "/inference.GRPCInferenceService/ModelStreamInfer" };
const LIMIT = 10_000;

/** A request with `size` bytes of content. */
const requestOf = (size: number): Buffer =>
  encodeMessage(inference.ModelInferRequest, {
    modelName: "m",
    inputs: [{ name: "X", datatype: "UINT8", shape: [size] }],
    rawInputContents: [new Uint8Array(size)],
  });

function openRaw(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers);
  stream.on("error", () => {});
  return stream;
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

overEachTransport("a bad stream ends with a status, and the next call works", () => {
  test("after a message above the limit, compressed or not", async () => {
    const service = new FakeService();
    const { client, address } = await serve(service, { maxReceiveMessageSize: LIMIT });
    const session = rawSession(address.url);
    const large = await rawCall(session, framed(requestOf(2 * LIMIT)), STREAM);
    expect(large.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    const bomb = framed(gzipSync(Buffer.alloc(20_000_000)), 1);
    const unpacked = await rawCall(session, bomb, { ...STREAM, "grpc-encoding": "gzip" });
    expect(unpacked.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    expect(service.requests).toEqual([]);
    await expect(client.infer({ modelName: "m" })).resolves.toBeDefined();
  });

  test("after frames that the client cuts short", async () => {
    const service = new FakeService();
    const { client, address } = await serve(service);
    const whole = framed(requestOf(100));
    const { grpcStatus } = await rawCall(rawSession(address.url), whole.subarray(0, 50), STREAM);
    expect(grpcStatus).toBeDefined();
    expect(service.requests).toEqual([]);
    await expect(client.infer({ modelName: "m" })).resolves.toBeDefined();
  });

  test("when its deadline passes, and its requests are cancelled", async () => {
    const { service, arrived } = manualService();
    const { address } = await serve(service);
    const session = rawSession(address.url);
    // The client has no clock of its own: it gets only what the server sends.
    const stream = session.request({
      ":method": "POST",
      "content-type": "application/grpc",
      te: "trailers",
      "grpc-timeout": "300m",
      ...STREAM,
    });
    stream.on("error", () => {});
    const trailers: Record<string, unknown> = {};
    stream.on("response", (headers) => void Object.assign(trailers, headers));
    stream.on("trailers", (headers) => void Object.assign(trailers, headers));
    stream.resume();
    stream.write(framed(requestOf(1)));
    stream.write(framed(requestOf(1)));
    const ended = once(stream, "end");
    await Promise.all((await arrived(2)).map(({ signal }) => aborted(signal)));
    await ended;
    stream.close();
    expect(Number(trailers["grpc-status"])).toBe(status.DEADLINE_EXCEEDED);
    if (currentTransport() === "http2") expect(trailers["grpc-message"]).toBe("Deadline%20Exceeded");
  });

  test("when its deadline has passed before it begins", async () => {
    const { service } = manualService();
    const { address } = await serve(service);
    const headers = { ...STREAM, "grpc-timeout": "0m" };
    const { grpcStatus } = await rawCall(rawSession(address.url), framed(requestOf(1)), headers);
    expect(grpcStatus).toBe(status.DEADLINE_EXCEEDED);
    await expect.poll(() => service.requests.every((request) => request.settled)).toBe(true);
  });
});

overEachTransport("a cancelled call", () => {
  test("requests nothing when it was cancelled in the middle of its message", async () => {
    const service = new FakeService();
    const { client, address } = await serve(service);
    const session = rawSession(address.url);
    for (const method of ["ModelInfer", "ModelStreamInfer"]) {
      const stream = openRaw(session, `/inference.GRPCInferenceService/${method}`);
      stream.write(framed(requestOf(1000)).subarray(0, 500));
      const closed = once(stream, "close");
      stream.close(8);
      await closed;
    }
    await expect(client.infer({ modelName: "m", id: "next" })).resolves.toMatchObject({ id: "next" });
    expect(service.requests.map(({ id }) => id)).toEqual(["next"]);
  });

  test("changes nothing when it was cancelled after its answer", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    let cancel = (): void => {};
    await client.infer({ modelName: "m" }, { started: (call) => (cancel = () => call.cancel()) });
    cancel();
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "s" });
    expect((await next()).inferResponse!.id).toBe("s");
    stream.end();
    expect(await ended).toEqual(ok);
    stream.cancel();
    await expect(client.infer({ modelName: "m", id: "next" })).resolves.toMatchObject({ id: "next" });
    expect(service.requests.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
  });
});
