import { createServer, type Server } from "node:net";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import type { InferenceRequest } from "@tritonjs/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { makeCertificates } from "../../../../test/support/certificates.js";
import { FakeService, responseTo } from "../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../grpc/test/support/over-each-transport.js";
import { callError, callStatus, failureOf } from "../../src/grpc/call-error.js";
import { type ClientOptions, InferenceServerClient } from "../../src/grpc/index.js";
import { openClient } from "./support/open-client.js";

const silent = () => new FakeService({}, () => {});

const nothing = { inputs: {} };

async function freePort(): Promise<{ port: number; taken: Server }> {
  const taken = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => taken.listen(0, "localhost", resolve));
  return { port: (taken.address() as { port: number }).port, taken };
}

overEachTransport("a client call", () => {
  test("rejects with the error that the server answers", async () => {
    const service = new FakeService({}, (request) => {
      request.respondError(new TritonError("ALREADY_EXISTS", "text of the model"));
    });
    const { client } = await openClient(service);
    await expect(client.infer("m", nothing)).rejects.toMatchObject({
      name: "TritonError",
      code: "ALREADY_EXISTS",
      message: "text of the model",
      cause: { name: "GrpcStatusError", code: 6, details: "text of the model" },
    });
  });

  test("is cancelled by its signal before, during, and after it runs", async () => {
    const service = silent();
    const { client } = await openClient(service);
    const before = client.infer("m", { ...nothing, signal: AbortSignal.abort("early") });
    await expect(before).rejects.toMatchObject({ name: "AbortError", code: "CANCELLED", cause: "early" });
    expect(service.requests).toEqual([]);
    const abort = new AbortController();
    const during = expect(client.infer("m", { ...nothing, signal: abort.signal })).rejects.toMatchObject({
      name: "AbortError",
      code: "CANCELLED",
      message: "the request was cancelled",
      stack: expect.stringContaining("the request was cancelled"),
    });
    await expect.poll(() => service.requests.length).toBe(1);
    abort.abort();
    await during;
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
    const after = new AbortController();
    await expect(client.isServerLive({ signal: after.signal })).resolves.toBe(true);
    after.abort();
  });

  test("ends when its timeout passes, and its request ends too", async () => {
    const service = silent();
    const { client } = await openClient(service, { timeoutMs: 60 });
    // On a busy machine the timeout of a call may pass before the server has its request.
    while (service.requests.length === 0) {
      await expect(client.infer("m", nothing)).rejects.toMatchObject({
        code: "UNAVAILABLE",
        message: "the server did not answer within 60 ms",
      });
    }
    await expect.poll(() => service.requests.every(({ settled }) => settled)).toBe(true);
    await expect(client.infer("m", { ...nothing, timeoutMs: 0 })).rejects.toMatchObject({
      message: "the server did not answer within 0 ms",
    });
  });

  test("ends when the client is closed", async () => {
    const service = silent();
    const { client } = await openClient(service);
    const call = expect(client.infer("m", nothing)).rejects.toMatchObject({ code: "CANCELLED" });
    await expect.poll(() => service.requests.length).toBe(1);
    client.close();
    await call;
    await expect(client.isServerLive()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the client is closed",
    });
  });

  test("sends headers and the access token", async () => {
    const key = "triton-access-token";
    const restrictedProtocols = [{ protocols: ["inference"], key, value: "secret" }] as const;
    const service = new FakeService();
    const server = { restrictedProtocols, headerForwardPattern: /^x-/ };
    const options = { headers: { "x-of": "client", "x-both": "client" }, accessToken: "secret" };
    const { client, url } = await openClient(service, options, server);
    await client.infer("m", { ...nothing, headers: { "x-both": "call" } });
    expect(service.requests[0]!.parameters).toEqual({ "x-of": "client", "x-both": "call" });
    const stranger = new InferenceServerClient(url);
    await expect(stranger.infer("m", nothing)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    stranger.close();
    const wrong = client.infer("m", { ...nothing, headers: { "not a name": "x" } });
    await expect(wrong).rejects.toMatchObject({ code: "INVALID_ARG" });
  });

  test("can use TLS with certificates on both sides", async () => {
    const { ca, server, client: mine } = await makeCertificates();
    const { client, url } = await openClient(
      new FakeService(),
      { tls: { ca, ...mine } },
      { tls: { ...server, ca } },
    );
    expect(await client.isServerLive()).toBe(true);
    const nobody = new InferenceServerClient(url, { tls: { ca }, retries: 0 });
    await expect(nobody.isServerLive()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      reason: "CONNECTION_FAILED",
    });
    nobody.close();
  });

  test("waits for a server that starts later", async () => {
    const { port, taken } = await freePort();
    const channelOptions = { "grpc.initial_reconnect_backoff_ms": 20, "grpc.max_reconnect_backoff_ms": 20 };
    const client = new InferenceServerClient(`localhost:${port}`, {
      retries: 20,
      retryDelayMs: 5,
      channelOptions,
    });
    const called = client.infer("m", { ...nothing, id: "late" });
    await new Promise((resolve) => taken.close(resolve));
    const frontend = grpc({ port });
    await frontend.start({ service: new FakeService() });
    onTestFinished(() => frontend.stop(0));
    onTestFinished(() => client.close());
    await expect(called).resolves.toMatchObject({ id: "late" });
  });

  test("is not retried when the server may have seen it", async () => {
    const requests: InferenceRequest[] = [];
    const service = new FakeService({}, (request) => {
      requests.push(request);
      if (requests.length === 1) request.respondError(new TritonError("UNAVAILABLE", "busy"));
      else request.respond(responseTo(request, new Map()));
    });
    const { client, url } = await openClient(service);
    await expect(client.infer("m", nothing)).rejects.toMatchObject({ message: "busy" });
    requests.length = 0;
    const patient = new InferenceServerClient(url, { retryUnavailable: true, retryDelayMs: 1 });
    await expect(patient.infer("m", nothing)).resolves.toBeDefined();
    patient.close();
  });
});

describe("failureOf", () => {
  test.each([
    [14, "No connection established. Last error: connect ECONNREFUSED", "not-sent"],
    [14, "Name resolution failed for target dns:nowhere", "not-sent"],
    [14, "Connection dropped", "lost"],
    [14, "Received HTTP status code 502", "lost"],
    [14, "the server is busy", "unavailable"],
    [13, "Received RST_STREAM with code 2", "lost"],
    [13, "text", undefined],
    [3, "No connection established", undefined],
  ])("classifies %d %s", (code, details, failure) => {
    expect(failureOf({ code, details })).toBe(failure);
  });
});

/** A client of a server that rejects the first request with this retry time. */
async function refusing(retryAfterMs: number, options: ClientOptions = {}) {
  const service: FakeService = new FakeService({}, (request) => {
    if (service.requests.length === 1) {
      return request.respondError(new TritonError("UNAVAILABLE", "too late", { retryAfterMs }));
    }
    request.respond(responseTo(request, new Map()));
  });
  const { client } = await openClient(service, options);
  return { client, requests: service.requests };
}

overEachTransport("a rejected client call", () => {
  test("reports when the server asks for a retry", async () => {
    const { client } = await refusing(120);
    const call = client.infer("m", nothing);
    await expect(call).rejects.toMatchObject({ code: "UNAVAILABLE", message: "too late", retryAfterMs: 120 });
  });

  test("reports the retry time of a stream that it ends", async () => {
    const { client } = await refusing(120);
    const responses = client.streamInfer([{ modelName: "m", inputs: {} }], { endOnError: true });
    await expect(responses.next()).rejects.toMatchObject({ message: "too late", retryAfterMs: 120 });
  });

  test("is retried no sooner than the server asks", async () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    onTestFinished(() => timers.mockRestore());
    const { client, requests } = await refusing(37, { retryUnavailable: true, retryDelayMs: 1 });
    await client.infer("m", nothing);
    expect(requests).toHaveLength(2);
    expect(timers).toHaveBeenCalledWith(expect.any(Function), 37);
  });

  test("is not retried when the timeout would pass first", async () => {
    const { client, requests } = await refusing(60_000, { retryUnavailable: true, timeoutMs: 50_000 });
    const call = client.infer("m", nothing);
    await expect(call).rejects.toMatchObject({ message: "too late", retryAfterMs: 60_000 });
    expect(requests).toHaveLength(1);
  });
});

describe("the grpc-retry-pushback-ms trailer", () => {
  const ended = (...values: string[]) => {
    const metadata = new Metadata();
    for (const value of values) metadata.set("grpc-retry-pushback-ms", value);
    return callStatus({ code: 14, details: "no", metadata } as ServiceError);
  };

  test("is optional", () => {
    expect(ended()).toEqual({ code: 14, details: "no" });
  });

  test.each(["-1", "soon", ""])("'%s' means that no retry is welcome", (value) => {
    const status = ended(value);
    expect(status.retryAfterMs).toBe(Number.POSITIVE_INFINITY);
    expect(callError(status)).not.toHaveProperty("retryAfterMs");
  });

  test("is read as milliseconds", () => {
    expect(ended("7").retryAfterMs).toBe(7);
    expect(callError(ended("7")).retryAfterMs).toBe(7);
  });
});
