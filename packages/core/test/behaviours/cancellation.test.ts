import { batch, type InferContext, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

async function served(config: Parameters<EchoModel["bind"]>[1] = {}) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  const model = new EchoModel();
  return { clock, triton, model, handle: await model.bind(triton, config) };
}

const pending = async (triton: Triton) =>
  /nv_inference_pending_request_count\{.*\} (\d+)/.exec(await triton.service.metrics())?.[1];

describe("a cancelled request", () => {
  it("ends at once while it waits, and its batch runs without it", async () => {
    const { clock, triton, model, handle } = await served();
    model.held = true;
    void echo(handle, 1);
    await clock.settle();
    const giveUp = new AbortController();
    const second = outcomeOf(echo(handle, 2, { signal: giveUp.signal }));
    void echo(handle, 3);
    await clock.settle();
    expect(await pending(triton)).toBe("2");
    giveUp.abort();
    expect(await second).toBe("CANCELLED the request was cancelled");
    expect(await pending(triton)).toBe("1");
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[1], [3]]);
  });

  it("rejects with an AbortError that keeps the reason of its signal", async () => {
    const { clock, triton, model, handle } = await served();
    model.held = true;
    const loading = triton.bind({
      modelName: "loading",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: model.callback(),
    });
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const inputs = { x: [[1]] };
    const calls = [
      handle.infer(inputs, { signal }),
      triton.infer("echo", inputs, { signal }),
      handle.stream(inputs, { signal }).next(),
      loading.infer(inputs, { signal }),
    ];
    await clock.settle();
    const reason = new Error("the page was left");
    giveUp.abort(reason);
    const late = handle.infer(inputs, { signal });
    for (const result of await Promise.allSettled([...calls, late])) {
      const error = (result as PromiseRejectedResult).reason;
      expect(error).toMatchObject({
        name: "AbortError",
        code: "CANCELLED",
        reason: "CANCELLED",
        cause: reason,
      });
      expect(TritonError.is(error)).toBe(true);
    }
    await clock.settle();
    model.releaseAll();
  });

  it("is never queued when it is cancelled before it is sent", async () => {
    const { clock, model, handle } = await served();
    const sent = outcomeOf(echo(handle, 1, { signal: AbortSignal.abort() }));
    await clock.settle();
    expect([await sent, model.batches]).toEqual(["CANCELLED the request was cancelled", []]);
  });

  it("ends at once while it runs, and the rest of its batch continues", async () => {
    const { clock, model, handle } = await served();
    model.held = true;
    const giveUp = new AbortController();
    const first = outcomeOf(echo(handle, 1, { signal: giveUp.signal }));
    const second = echo(handle, 2);
    await clock.settle();
    giveUp.abort();
    expect(await first).toBe("CANCELLED the request was cancelled");
    model.release();
    expect(await second).toBe(2);
    expect(model.batches).toEqual([[1, 2]]);
  });

  it("keeps an answer that has come before", async () => {
    const { handle, clock } = await served();
    const giveUp = new AbortController();
    const answer = echo(handle, 1, { signal: giveUp.signal });
    await clock.settle();
    expect(await answer).toBe(1);
    giveUp.abort();
    await clock.settle();
    expect(handle.statistics().inferenceStats.fail.count).toBe(0);
  });

  it("frees its place in the next batch", async () => {
    const { clock, model, handle } = await served({ maxBatchSize: 2 });
    model.held = true;
    void echo(handle, 1);
    await clock.settle();
    const giveUp = new AbortController();
    void outcomeOf(echo(handle, 2, { signal: giveUp.signal }));
    await clock.settle();
    giveUp.abort();
    for (const value of [3, 4]) void echo(handle, value);
    await clock.settle();
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[1], [3, 4]]);
  });
});

describe("the signal of a batch", () => {
  it("aborts only when every request of the batch is cancelled", async () => {
    const clock = new VirtualClock();
    const contexts: InferContext[] = [];
    let finish = () => {};
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch(async ({ x }, context) => {
        contexts.push(context);
        expect(context.signal.aborted).toBe(false);
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return { y: x };
      }),
    });
    await handle.ready();
    const controllers = [new AbortController(), new AbortController()];
    const sent = outcomesOf(controllers.map(({ signal }, value) => echo(handle, value, { signal })));
    await clock.settle();
    const signal = contexts[0]!.signal;
    controllers[0]!.abort();
    expect(signal.aborted).toBe(false);
    controllers[1]!.abort();
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "CANCELLED" });
    expect(new Set(await sent)).toEqual(new Set(["CANCELLED the request was cancelled"]));
    finish();
  });

  it("aborts for a single request when that is cancelled", async () => {
    const clock = new VirtualClock();
    const signals: AbortSignal[] = [];
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: async (requests) => {
        signals.push(...requests.map((request) => request.signal));
        await new Promise<void>((resolve) => signals[0]!.addEventListener("abort", () => resolve()));
        return requests.map(({ inputs }) => ({ y: inputs.x }));
      },
    });
    await handle.ready();
    const giveUp = new AbortController();
    const first = outcomeOf(echo(handle, 1, { signal: giveUp.signal }));
    const second = echo(handle, 2);
    await clock.settle();
    giveUp.abort();
    expect([await first, await second]).toEqual(["CANCELLED the request was cancelled", 2]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });
});

describe("a request with a timeout", () => {
  it("ends with UNAVAILABLE when it waits longer, and leaves the queue", async () => {
    const { clock, triton, model, handle } = await served();
    model.held = true;
    void echo(handle, 1);
    await clock.settle();
    const second = outcomeOf(echo(handle, 2, { timeoutMs: 3 }));
    await clock.advance(2.9);
    expect(await pending(triton)).toBe("1");
    await clock.advance(0.1);
    expect([await second, await pending(triton)]).toEqual(["UNAVAILABLE Request timeout expired", "0"]);
    model.releaseAll();
    await clock.settle();
    expect(model.batches).toEqual([[1]]);
  });

  it("ends when it runs longer, while its batch continues", async () => {
    const { clock, model, handle } = await served();
    model.held = true;
    const first = outcomeOf(echo(handle, 1, { timeoutMs: 3 }));
    const second = echo(handle, 2);
    await clock.advance(3);
    expect(await first).toBe("UNAVAILABLE Request timeout expired");
    model.release();
    expect(await second).toBe(2);
  });

  it("is answered when it is in time", async () => {
    const { clock, handle } = await served();
    const answer = echo(handle, 1, { timeoutMs: 3 });
    await clock.advance(10);
    expect(await answer).toBe(1);
    expect(handle.statistics().inferenceStats.fail.count).toBe(0);
  });
});

describe("ten thousand waiting requests that are cancelled at once", () => {
  it("all end and leave nothing behind, and the model continues", async () => {
    const { clock, triton, model, handle } = await served();
    model.held = true;
    void echo(handle, -1);
    await clock.settle();
    const giveUp = new AbortController();
    const sent = Array.from({ length: 10_000 }, (_, value) => echo(handle, value, { signal: giveUp.signal }));
    await clock.settle();
    expect(await pending(triton)).toBe("10000");
    giveUp.abort();
    expect(new Set(await outcomesOf(sent))).toEqual(new Set(["CANCELLED the request was cancelled"]));
    expect(await pending(triton)).toBe("0");
    model.releaseAll();
    const next = echo(handle, 7);
    await clock.settle();
    expect([await next, model.batches]).toEqual([7, [[-1], [7]]]);
  });
});
