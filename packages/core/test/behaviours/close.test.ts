import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

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
    expect(triton.service.isReady()).toBe(false);
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
