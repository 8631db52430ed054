import * as overGrpc from "@tritonjs/client/grpc";
import * as overHttp from "@tritonjs/client/http";
import { sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { type Attempt, Caller, type Carrier, type OutgoingCall, retryDelay } from "../../src/caller.js";
import { isTimeout, TritonError } from "../../src/index.js";
import type { CommonClientOptions } from "../../src/options.js";

const refused: Attempt<string> = { error: new TritonError("UNAVAILABLE", "refused"), failure: "not-sent" };

const lost: Attempt<string> = { error: new TritonError("UNAVAILABLE", "lost"), failure: "lost" };

const busy: Attempt<string> = { error: new TritonError("UNAVAILABLE", "busy"), failure: "unavailable" };

const answer: Attempt<string> = { answer: "answer" };

/** A caller with a carrier whose attempts end like this, the last one again and again. */
function callerOf(outcomes: readonly Attempt<string>[], options: CommonClientOptions = {}) {
  let attempts = 0;
  const carrier: Carrier<OutgoingCall, string> = {
    attempt: async () => outcomes[Math.min(attempts++, outcomes.length - 1)]!,
    close: () => {},
  };
  const caller = new Caller(carrier, { retryDelayMs: 0, ...options });
  return { caller, attempts: () => attempts };
}

/** A carrier that answers nothing until the call ends. */
const silent: Carrier<OutgoingCall, string> = {
  attempt: (_request, { signal }) =>
    new Promise((resolve) => {
      const error = new TritonError("UNKNOWN", "the carrier's own error");
      signal.addEventListener("abort", () => resolve({ error }), { once: true });
    }),
  close: () => {},
};

describe("a call", () => {
  test("that was never sent is made again", async () => {
    const { caller, attempts } = callerOf([refused, refused, answer]);
    expect(await caller.call({ idempotent: false }, {})).toBe("answer");
    expect(attempts()).toBe(3);
  });

  test("that was lost is made again only when it is idempotent", async () => {
    const reading = callerOf([lost, answer]);
    expect(await reading.caller.call({ idempotent: true }, {})).toBe("answer");
    const changing = callerOf([lost, answer]);
    await expect(changing.caller.call({ idempotent: false }, {})).rejects.toThrow("lost");
    expect(changing.attempts()).toBe(1);
  });

  test("rejects with the last error when all attempts are used", async () => {
    const { caller, attempts } = callerOf([refused, lost], { retries: 1 });
    await expect(caller.call({ idempotent: true }, {})).rejects.toThrow("lost");
    expect(attempts()).toBe(2);
  });

  test("that the server refuses is made again only when the client wants it", async () => {
    await expect(callerOf([busy, answer]).caller.call({ idempotent: true }, {})).rejects.toThrow("busy");
    const { caller } = callerOf([busy, answer], { retryUnavailable: true });
    expect(await caller.call({ idempotent: false }, {})).toBe("answer");
  });

  test("with too little time for the next attempt times out at once", async () => {
    const { caller, attempts } = callerOf([refused], { retryDelayMs: 5000, timeoutMs: 4000 });
    const error = await caller.call({ idempotent: true }, {}).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "the server did not answer within 4000 ms" });
    expect(isTimeout(error)).toBe(true);
    expect(attempts()).toBe(1);
  });

  test("ends with the error of its time limit, whatever the carrier makes of the abort", async () => {
    const caller = new Caller(silent, {});
    const error = await caller.call({ idempotent: true }, { timeoutMs: 5 }).catch((thrown) => thrown);
    expect(isTimeout(error)).toBe(true);
  });

  test("ends with CANCELLED when its signal aborts or the client is closed", async () => {
    const caller = new Caller(silent, {});
    const abort = new AbortController();
    const aborted = caller.call({ idempotent: true }, { signal: abort.signal });
    abort.abort(new Error("why"));
    await expect(aborted).rejects.toMatchObject({ code: "CANCELLED", cause: { message: "why" } });
    const open = caller.call({ idempotent: true }, {});
    caller.close();
    await expect(open).rejects.toMatchObject({
      reason: "CLIENT_CLOSED_MEANWHILE",
      message: "the client was closed",
    });
    await expect(caller.call({ idempotent: true }, {})).rejects.toMatchObject({ reason: "CLIENT_CLOSED" });
  });
});

describe("option checks", () => {
  const triton = new Triton();

  const urls = { http: "", grpc: "" };

  beforeAll(async () => {
    triton.bind({
      modelName: "same",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: sample(({ x }) => ({ y: x })),
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    urls.http = addresses.http!.url;
    urls.grpc = addresses.grpc!.url;
  });

  afterAll(() => triton.close());

  /** Options as a program without TypeScript may give them. */
  const untyped = (options: object) => options as never;

  const reason = async (call: () => unknown) =>
    outcomeOf((async () => call())()).then((outcome) => String(outcome));

  describe.each([["http", overHttp, () => urls.http] as const, ["grpc", overGrpc, () => urls.grpc] as const])(
    "the clients over %s check options without TypeScript",
    (_protocol, { InferenceServerClient, ModelClient }, url) => {
      const opened = () => {
        const client = new InferenceServerClient(url());
        onTestFinished(() => client.close());
        return client;
      };
      const model = () => {
        const client = new ModelClient(url(), "same");
        onTestFinished(() => client.close());
        return client;
      };
      const inputs = { x: { datatype: "FP32", data: [1] } } as const;

      it.each([
        [
          { timeout: 100 },
          "new InferenceServerClient() has an unknown option 'timeout': did you mean 'timeoutMs'?",
        ],
        [
          { retries: "2" },
          "new InferenceServerClient(), option 'retries': expected a number, got the string '2'",
        ],
      ])("of a client: %j", async (options, text) => {
        expect(await reason(() => new InferenceServerClient(url(), untyped(options)))).toContain(text);
      });

      it.each([
        [
          { maxConcurency: 2 },
          "new ModelClient() has an unknown option 'maxConcurency': did you mean 'maxConcurrency'?",
        ],
        [
          { priority: 2 },
          "new ModelClient() has an unknown option 'priority': it is an option of inferSample()",
        ],
        [{ lazyInit: "no" }, "new ModelClient(), option 'lazyInit': expected a boolean, got the string 'no'"],
      ])("of a client of a model: %j", async (options, text) => {
        expect(await reason(() => new ModelClient(url(), "same", untyped(options)))).toContain(text);
      });

      it.each([
        [{ timeOutMs: 5 }, "infer() has an unknown option 'timeOutMs': did you mean 'timeoutMs'?"],
        [{ priority: "high" }, "infer(), option 'priority': expected a number, got the string 'high'"],
        [{ outputs: "y" }, "infer(), option 'outputs': expected an array, got the string 'y'"],
      ])("of infer(): %j", async (options, text) => {
        expect(await reason(() => opened().infer("same", untyped({ inputs, ...options })))).toContain(text);
      });

      it.each([
        [{ idd: "1" }, "inference with 'same' has an unknown option 'idd': did you mean 'id'?"],
        [{ id: 5 }, "inference with 'same', option 'id': expected a string, got 5"],
        [{ signal: 5 }, "inference with 'same', option 'signal': expected an object, got 5"],
        [
          { modelVersion: 1 },
          "inference with 'same' has an unknown option 'modelVersion': it is an option of new ModelClient()",
        ],
      ])("of inferSample(): %j", async (options, text) => {
        expect(await reason(() => model().inferSample({ x: [1] }, untyped(options)))).toContain(text);
      });

      it("of calls about models, waits and memory", async () => {
        const client = opened();
        const load = () => client.loadModel("same", untyped({ conifg: {} }));
        expect(await reason(load)).toContain("call has an unknown option 'conifg': did you mean 'config'?");
        const config = () => client.getModelConfig("same", untyped({ modelVersoin: 1 }));
        expect(await reason(config)).toContain(
          "call has an unknown option 'modelVersoin': did you mean 'modelVersion'?",
        );
        const live = () => client.isServerLive(untyped({ timeoutMs: "5" }));
        expect(await reason(live)).toContain(
          "call, option 'timeoutMs': expected a number, got the string '5'",
        );
        const wait = () => model().waitForModel(untyped({ timeout: 5 }));
        expect(await reason(wait)).toContain(
          "wait for model 'same' has an unknown option 'timeout': did you mean 'timeoutMs'?",
        );
        const region = () => client.registerSystemSharedMemory("r", untyped({ key: "/r", bytesize: 4 }));
        expect(await reason(region)).toContain(
          "region has an unknown option 'bytesize': did you mean 'byteSize'?",
        );
      });

      it("and accept those that are right", async () => {
        const result = await opened().infer("same", { inputs, id: "1", timeoutMs: 10_000, outputs: ["y"] });
        expect(result.id).toBe("1");
        const options = { maxConcurrency: 2, headers: { a: "b" }, inferenceTimeoutMs: 10_000 };
        const client = new ModelClient(url(), "same", options);
        onTestFinished(() => client.close());
        expect((await client.inferSample({ x: [1] }, { id: "2", headers: { a: "c" } })).y!.data).toEqual(
          Float32Array.of(1),
        );
      });
    },
  );

  it("streamInfer() checks its options and the parts of each request", async () => {
    const client = new overGrpc.InferenceServerClient(urls.grpc);
    onTestFinished(() => client.close());
    const request = { modelName: "same", inputs: { x: { datatype: "FP32", data: [1] } } } as const;
    const ask = (requests: object[], options = {}) =>
      reason(async () => {
        for await (const _ of client.streamInfer(untyped(requests), untyped(options)));
      });
    expect(await ask([request], { endOnErorr: true })).toContain(
      "streamInfer() has an unknown option 'endOnErorr': did you mean 'endOnError'?",
    );
    expect(await ask([{ ...request, enableEmptyFinal: true }])).toContain(
      "request of streamInfer() has an unknown option 'enableEmptyFinal': did you mean 'enableEmptyFinalResponse'?",
    );
  });
});

describe("retryDelay", () => {
  const policy = { retries: 2, delayMs: 100, unavailable: false };

  test("grows up to a limit, and ends after the last retry", () => {
    const patient = { ...policy, retries: 20 };
    const delays = [0, 1, 2, 19, 20].map((attempt) => retryDelay("not-sent", attempt, false, patient));
    expect(delays).toEqual([100, 200, 400, 5_000, undefined]);
  });

  test("retries a lost call only when repeating it is safe", () => {
    expect(retryDelay("lost", 0, true, policy)).toBe(100);
    expect(retryDelay("lost", 0, false, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, true, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, false, { ...policy, unavailable: true })).toBe(100);
    expect(retryDelay(undefined, 0, true, policy)).toBeUndefined();
  });

  test("waits as long as the server asks, if the time left allows it", () => {
    const patient = { ...policy, unavailable: true };
    const delay = (retryAfterMs: number | undefined, leftMs: number) =>
      retryDelay("unavailable", 0, false, patient, { retryAfterMs, leftMs });
    expect(delay(undefined, 10)).toBe(100);
    expect(delay(20, 1_000)).toBe(100);
    expect(delay(7_000, 8_000)).toBe(7_000);
    expect(delay(7_000, 7_000)).toBeUndefined();
    expect(delay(2 ** 31, Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(delay(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(retryDelay("unavailable", 0, false, policy, { retryAfterMs: 1, leftMs: 10 })).toBeUndefined();
  });
});
