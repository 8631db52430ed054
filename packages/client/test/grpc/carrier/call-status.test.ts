import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FakeService, responseTo } from "../../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../../grpc/test/support/over-each-transport.js";
import { callError, callStatus } from "../../../src/grpc/call-error.js";
import type { ClientOptions } from "../../../src/grpc/index.js";
import { openClient } from "../support/open-client.js";

const nothing = { inputs: {} };

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
