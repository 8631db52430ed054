import { batch, type InferContext, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
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
  /nv_inference_pending_request_count\{.*\} (\d+)/.exec(await serviceOf(triton).metrics())?.[1];

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

describe("closing a server", () => {
  it("finishes all accepted requests under load, including batches that still form", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const model = new EchoModel();
    const handle = await model.bind(triton, { batcher: { maxQueueDelayMicroseconds: 60_000_000 } }, 2);
    model.held = true;
    const sent = Array.from({ length: 50 }, (_, value) => echo(handle, value));
    await clock.settle();
    const closed = triton.close();
    await clock.settle();
    expect(serviceOf(triton).isReady()).toBe(false);
    const late = outcomeOf(echo(handle, 99));
    model.releaseAll();
    await closed;
    expect(await Promise.all(sent)).toEqual(Array.from({ length: 50 }, (_, value) => value));
    expect(await late).toMatch(/^UNAVAILABLE .*Server is stopping/);
    expect(clock.now()).toBe(0);
  });

  it("skips a queue delay that no request can end", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const handle = await new EchoModel().bind(triton, { batcher: { maxQueueDelayMicroseconds: 5_000_000 } });
    const answer = echo(handle, 1);
    await clock.settle();
    await triton.close();
    expect([await answer, clock.now()]).toEqual([1, 0]);
  });

  it("ends requests that do not finish within the exit timeout", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, exitTimeoutSecs: 2 });
    const model = new EchoModel();
    const handle = await model.bind(triton);
    model.held = true;
    const running = outcomeOf(echo(handle, 1));
    await clock.settle();
    const waiting = outcomeOf(echo(handle, 2));
    const closed = triton.close();
    await clock.advance(1999);
    const early = await Promise.race([closed.then(() => "closed"), clock.settle().then(() => "open")]);
    expect(early).toBe("open");
    await clock.advance(1);
    await closed;
    expect([await running, await waiting]).toEqual(
      Array(2).fill("UNAVAILABLE model 'echo' was stopped before the request finished"),
    );
  });

  it("aborts the signal of the callback when no caller waits any more", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, exitTimeoutSecs: 1 });
    const signals: AbortSignal[] = [];
    const handle = triton.bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch(async (_, { signal }) => {
        signals.push(signal);
        return new Promise<never>(() => {});
      }),
    });
    await handle.ready();
    const sent = outcomeOf(echo(handle, 1));
    await clock.settle();
    const closed = triton.close();
    await clock.advance(1000);
    await closed;
    expect(await sent).toMatch(/^UNAVAILABLE/);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it("works the same when it is called twice or by `await using`", async () => {
    const triton = new Triton();
    await new EchoModel().bind(triton);
    expect(triton.close()).toBe(triton.close());
    await triton[Symbol.asyncDispose]();
  });

  it("waits for models that load, and not for models that failed to load", async () => {
    const triton = new Triton();
    const handle = triton.bind({
      modelName: "broken",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: new URL("./fixtures/throws-while-loading.mjs", import.meta.url),
    });
    void new EchoModel().bind(triton);
    const loading = outcomeOf(handle.ready());
    await triton.close();
    expect(await loading).toMatch(/^INTERNAL/);
  });
});

describe("requests of many callers", () => {
  it("end with an answer or an error when the model closes meanwhile", async () => {
    const triton = new Triton();
    const handle = await new EchoModel().bind(triton, { maxBatchSize: 8 });
    const outcomes: Promise<string[]>[] = [];
    for (let turn = 0; turn < 20; turn++) {
      outcomes.push(outcomesOf(Array.from({ length: 10 }, (_, value) => echo(handle, value))));
      if (turn === 10) void triton.close();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const all = (await Promise.all(outcomes)).flat();
    expect(all).toHaveLength(200);
    expect(all.slice(0, 100)).toEqual(Array(100).fill("done"));
    for (const outcome of all.slice(110)) expect(outcome).toMatch(/^(done|UNAVAILABLE .*)$/);
  });
});
