import { once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { Tensor, TritonError } from "@tritonjs/core";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import { FakeService, responseTo } from "../support/fake-service.js";
import { currentTransport, overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";
import { answer, manualService, ok, reader } from "../support/stream-reader.js";

const final = { parameters: { triton_final_response: { boolParam: true } } };

const notFinal = { parameters: { triton_final_response: { boolParam: false } } };

overEachTransport("ModelStreamInfer with one response for each request", () => {
  test("marks every response as final and ends after the client has closed its side", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({
      modelName: "m",
      id: "a",
      inputs: [{ name: "X", datatype: "UINT8", shape: [2] }],
      rawInputContents: [Uint8Array.of(1, 2)],
    });
    const { inferResponse, errorMessage } = await next();
    expect(errorMessage).toBe("");
    expect(inferResponse).toMatchObject({ modelName: "m", modelVersion: "1", id: "a", ...final });
    expect([...inferResponse!.rawOutputContents![0]!]).toEqual([1, 2]);
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test("answers in the order of the requests", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["a", "b", "c"]) stream.write({ modelName: "m", id });
    stream.end();
    const [a, b, c] = await arrived(3);
    answer(c!);
    answer(b!);
    answer(a!);
    expect((await next()).inferResponse!.id).toBe("a");
    expect((await next()).inferResponse!.id).toBe("b");
    expect((await next()).inferResponse!.id).toBe("c");
    expect(await ended).toEqual(ok);
  });

  test("reports a rejected request with its id, in order, and continues", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "slow" });
    stream.write({ modelName: "nosuch", id: "u" });
    stream.write({ modelName: "m", id: "p", parameters: { sequence_id: { boolParam: true } } });
    stream.write({ modelName: "m", id: "last" });
    stream.end();
    const [slow, last] = await arrived(2);
    answer(last!);
    answer(slow!);
    expect((await next()).inferResponse!.id).toBe("slow");
    const unknown = await next();
    expect(unknown.errorMessage).toBe("Request for unknown model: 'nosuch' is not found");
    expect(unknown.inferResponse).toMatchObject({ id: "u", modelName: "", parameters: {} });
    expect(await next()).toMatchObject({
      errorMessage: "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
      inferResponse: { id: "p" },
    });
    expect((await next()).inferResponse!.id).toBe("last");
    expect(await ended).toEqual(ok);
  });

  test("reports an error of the model with names and id of the request", async () => {
    const service = new FakeService({}, (request) => {
      request.respondError(new TritonError("NOT_FOUND", request.id === "quiet" ? "" : "gone"));
    });
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "m1" });
    expect(await next()).toMatchObject({
      errorMessage: "gone",
      inferResponse: { id: "m1", modelName: "m", modelVersion: "", ...final },
    });
    stream.write({ modelName: "m", modelVersion: "1", id: "quiet" });
    expect(await next()).toMatchObject({
      errorMessage: "",
      inferResponse: { id: "quiet", modelName: "m", modelVersion: "1", ...final },
    });
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test("reports a response that cannot be built", async () => {
    const service = new FakeService({}, (request) => {
      const scores = Tensor.fromElements("BYTES", [1], [Buffer.from("a")]);
      request.respond(responseTo(request, new Map([["Y", scores]])));
    });
    const { client } = await serve(service);
    const stream = client.stream();
    const { next } = reader(stream);
    stream.write({
      modelName: "m",
      id: "c",
      outputs: [{ name: "Y", parameters: { classification: { int64Param: 1 } } }],
    });
    expect(await next()).toMatchObject({
      errorMessage: "class result not available for output due to unsupported type 'BYTES'",
      inferResponse: { id: "c", ...final },
    });
    stream.end();
  });

  test("ends at once without a request", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.end();
    expect(await ended).toEqual(ok);
  });
});

overEachTransport("ModelStreamInfer with a decoupled model", () => {
  test("sends responses of several requests as they are produced", async () => {
    const { service, arrived } = manualService(true);
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "a" });
    stream.write({ modelName: "m", id: "b" });
    stream.end();
    const [a, b] = await arrived(2);
    answer(b!, false);
    answer(a!, false);
    answer(b!, true);
    a!.finish();
    expect((await next()).inferResponse).toMatchObject({ id: "b", ...notFinal });
    expect((await next()).inferResponse).toMatchObject({ id: "a", ...notFinal });
    expect((await next()).inferResponse).toMatchObject({ id: "b", ...final });
    expect(await ended).toEqual(ok);
  });

  test("sends the empty final response when requested", async () => {
    const { service, arrived } = manualService(true);
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, messages, ended } = reader(stream);
    stream.write({
      modelName: "m",
      id: "told",
      parameters: { triton_enable_empty_final_response: { boolParam: true } },
    });
    stream.write({ modelName: "m", id: "silent" });
    stream.end();
    const [told, silent] = await arrived(2);
    silent!.finish();
    told!.finish();
    expect((await next()).inferResponse).toMatchObject({ id: "told", modelName: "m", outputs: [], ...final });
    expect(await ended).toEqual(ok);
    expect(messages).toEqual([]);
  });
});

overEachTransport("ModelStreamInfer with a client that does not read", () => {
  test("holds the model back until the client reads", async () => {
    const count = 600;
    let made = 0;
    let blocked = (): void => {};
    const blockedOnce = new Promise<void>((resolve) => (blocked = resolve));
    const service = new FakeService({ modelTransactionPolicy: { decoupled: true } }, async (request) => {
      const outputs = new Map([["Y", Tensor.fromBytes("UINT8", [10_000], new Uint8Array(10_000))]]);
      for (; made < count; made++) {
        request.respond(responseTo(request, outputs), made === count - 1);
        if (request.writable === undefined) continue;
        blocked();
        await request.writable;
      }
    });
    const { client } = await serve(service);
    const stream = client.stream();
    stream.write({ modelName: "m" });
    stream.end();
    await blockedOnce;
    expect(made).toBeLessThan(count / 3);
    let received = 0;
    for await (const { inferResponse } of stream) received += inferResponse === null ? 0 : 1;
    expect(received).toBe(count);
  });
});

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

overEachTransport("a stream in triton_grpc_error mode", () => {
  const errorMode = [["triton_grpc_error", "true"]] as const;

  test("ends with the status of the model's first error and cancels its other requests", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "good" });
    answer((await arrived(1))[0]!);
    expect((await next()).inferResponse!.id).toBe("good");
    stream.write({ modelName: "m", id: "other" });
    stream.write({ modelName: "m", id: "bad" });
    const [, other, bad] = await arrived(3);
    bad!.respondError(new TritonError("NOT_FOUND", "gone"));
    expect(await ended).toEqual({ code: status.NOT_FOUND, details: "gone" });
    expect(other!.settled).toBe(true);
  });

  test("delivers earlier answers before it ends for a request that timed out", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    for (const id of ["earlier", "late", "later"]) stream.write({ modelName: "m", id });
    const [earlier, late, later] = await arrived(3);
    late!.respondError(new TritonError("UNAVAILABLE", "Request timeout expired", { reason: "TIMEOUT" }));
    expect(later!.settled).toBe(false);
    answer(earlier!);
    expect((await next()).inferResponse!.id).toBe("earlier");
    expect(await ended).toEqual({ code: status.UNAVAILABLE, details: "Request timeout expired" });
    expect(later!.settled).toBe(true);
  });

  test("continues after a rejected request", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "nosuch", id: "u" });
    expect((await next()).errorMessage).toBe("Request for unknown model: 'nosuch' is not found");
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test.each(["false", "1", "TRUE", "", "false, true"])("is not turned on by %j", async (value) => {
    const service = new FakeService(
      {},
      (request) => void request.respondError(new TritonError("INTERNAL", "text")),
    );
    const { client } = await serve(service);
    const stream = client.stream([["triton_grpc_error", value]]);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m" });
    expect((await next()).errorMessage).toBe("text");
    stream.end();
    expect(await ended).toEqual(ok);
  });
});

overEachTransport("a stream whose client has left", () => {
  test("cancels all its requests", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m", id: "a" });
    stream.write({ modelName: "m", id: "b" });
    const requests = await arrived(2);
    const aborted = requests.map(
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    stream.cancel();
    await Promise.all(aborted);
    expect(await ended).toMatchObject({ code: status.CANCELLED });
  });
});

describe("a stream of a stopping server over http2", () => {
  test("finishes running requests and rejects new ones", async () => {
    const { service, arrived } = manualService();
    const { client, frontend } = await serve(service, { stopGraceMs: 30_000 });
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "kept" });
    const [kept] = await arrived(1);
    const stopped = frontend.stop();
    stream.write({ modelName: "m", id: "late" });
    stream.end();
    answer(kept!);
    expect((await next()).inferResponse!.id).toBe("kept");
    expect(await next()).toMatchObject({
      errorMessage: "GRPC server is shutting down and has stopped accepting new requests.",
      inferResponse: { id: "late" },
    });
    expect(await ended).toEqual(ok);
    await stopped;
  });

  test("is cut off with a status when the grace time is over", async () => {
    const { service, arrived } = manualService();
    const { client, frontend } = await serve(service, { stopGraceMs: 0 });
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m" });
    await arrived(1);
    await frontend.stop();
    expect(await ended).toEqual({
      code: status.UNAVAILABLE,
      details: "GRPC server is shutting down and has stopped accepting new requests.",
    });
  });
});
