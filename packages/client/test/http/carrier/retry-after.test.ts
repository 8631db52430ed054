import { TritonError } from "@tritonjs/core";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { IdentityService, identityConfig } from "../../../../http/test/support/identity-service.js";
import { startHttp } from "../../../../http/test/support/start-http.js";
import { retryAfterOf } from "../../../src/http/http-carrier.js";
import { InferenceServerClient } from "../../../src/http/index.js";
import { fakeFetch, json } from "../support/fake-fetch.js";

const inputs = { IN: Int32Array.of(1) };
const answer = json({ outputs: [{ name: "OUT", datatype: "FP32", shape: [1], data: [1] }] });

/** A rejection with this header. */
const refusal = (retryAfter: string, status: number) => () =>
  new Response('{"error":"too late"}', { status, headers: { "retry-after": retryAfter } });

describe("the retry-after header", () => {
  const now = Date.UTC(2026, 0, 1);

  it.each([
    ["3", 3000],
    [" 0 ", 0],
    ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
    ["Thu Jan  1 00:00:10 2026 GMT", 10_000],
    ["Wed, 31 Dec 2025 23:59:00 GMT", 0],
  ])("'%s' is a time", (value, milliseconds) => {
    expect(retryAfterOf(new Headers({ "retry-after": value }), now)).toBe(milliseconds);
  });

  it.each(["", "-1", "1.5", "soon", "2026-01-01", "1e3"])("'%s' is not a time", (value) => {
    expect(retryAfterOf(new Headers({ "retry-after": value }), now)).toBeUndefined();
  });

  it("is optional", () => {
    expect(retryAfterOf(new Headers(), now)).toBeUndefined();
  });
});

describe("an error thrown by the client", () => {
  it("carries the retry time that the server gives", async () => {
    const service = new IdentityService(identityConfig("m", "INT32"));
    service.onRequest = () => {
      throw new TritonError("UNAVAILABLE", "too late", { retryAfterMs: 1200 });
    };
    const client = new InferenceServerClient(`localhost:${await startHttp(service)}`);
    const error = await client.infer("m", { inputs }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "too late", retryAfterMs: 2000 });
  });

  it("carries no retry time when a retry cannot help", async () => {
    const { fetch } = fakeFetch(refusal("1", 400));
    const error = await new InferenceServerClient("host:1", { fetch })
      .infer("m", { inputs })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_ARG", message: "too late" });
    expect(error).not.toHaveProperty("retryAfterMs");
  });
});

describe("a retry", () => {
  it("waits as long as the server asks", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { fetch, sent } = fakeFetch(refusal("2", 503), answer);
    const client = new InferenceServerClient("host:1", { fetch, retryUnavailable: true, retryDelayMs: 1 });
    const result = client.infer("m", { inputs });
    await vi.advanceTimersByTimeAsync(1999);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toHaveLength(2);
    expect((await result).elements("OUT")).toEqual(Float32Array.of(1));
  });

  it.each([{ timeoutMs: 2000 }, { timeoutMs: Number.POSITIVE_INFINITY, retryAfter: "9999999999" }])(
    "is skipped when it would come too late: $timeoutMs ms",
    async ({ timeoutMs, retryAfter = "2" }) => {
      const { fetch, sent } = fakeFetch(refusal(retryAfter, 503), answer);
      const client = new InferenceServerClient("host:1", { fetch, retryUnavailable: true, timeoutMs });
      const refused = client.infer("m", { inputs });
      await expect(refused).rejects.toMatchObject({
        message: "too late",
        retryAfterMs: Number(retryAfter) * 1000,
      });
      expect(sent).toHaveLength(1);
    },
  );
});
