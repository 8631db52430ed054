import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";

const clock = new VirtualClock();
let triton: Triton;

afterEach(async () => {
  const closed = triton.close();
  await clock.advance(10_000);
  await closed;
});

/** A model that takes 10 ms for each batch of one row, and the values in the order in which it ran them. */
async function bind(config: ModelOptions) {
  triton = new Triton({ clock, allowCpuMetrics: false });
  const ran: number[] = [];
  const handle = triton.bind({
    modelName: "echo",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
      ran.push(...x.data);
      await new Promise<void>((done) => clock.setTimer(10, done));
      return { y: x };
    }),
    config: { maxBatchSize: 1, ...config },
  });
  await handle.ready();
  const send = (value: number, caller: string) => echo(handle, value, { parameters: { caller } });
  return { handle, ran, send };
}

describe("shares", () => {
  it("let a caller with one request go before the many of another", async () => {
    const { ran, send } = await bind({ batcher: { shares: { by: "caller" } } });
    const sent = [...[1, 2, 3, 4, 5].map((value) => send(value, "a")), send(6, "b")];
    await clock.advance(100);
    expect(await outcomesOf(sent)).toEqual(Array(6).fill("done"));
    expect(ran.indexOf(6)).toBeLessThanOrEqual(2);
  });

  it("take the name of the caller from a function", async () => {
    const { ran, handle } = await bind({
      batcher: { shares: { by: ({ priority }) => String(priority), weights: { "2": 100 } } },
    });
    const sent = [1, 2, 3, 4].map((value) => echo(handle, value, { priority: 1 }));
    sent.push(...[5, 6, 7].map((value) => echo(handle, value, { priority: 2 })));
    await clock.advance(100);
    await Promise.all(sent);
    expect(ran.slice(1, 5)).toEqual(expect.arrayContaining([5, 6, 7]));
  });

  it("refuse the request that would run last when the queue is full", async () => {
    const { ran, send } = await bind({
      batcher: { shares: { by: "caller" }, defaultQueuePolicy: { maxQueueSize: 3 } },
    });
    const many = [1, 2, 3, 4].map((value) => outcomeOf(send(value, "a")));
    await clock.settle();
    const few = outcomeOf(send(5, "b"));
    await clock.advance(100);
    expect(await few).toBe("done");
    const outcomes = await Promise.all(many);
    expect(
      outcomes.filter((outcome) => outcome.includes("Exceeds maximum queue size")).length,
    ).toBeGreaterThan(0);
    expect(ran).toContain(5);
  });

  it("hold for models that run each request alone, by the configuration", async () => {
    const { ran, send } = await bind({
      batcher: false,
      parameters: { shares_by: "caller", shares_weights: "b=2, c=1" },
    });
    const sent = [...[1, 2, 3].map((value) => send(value, "a")), send(4, "b")];
    await clock.advance(100);
    await Promise.all(sent);
    expect(ran.indexOf(4)).toBeLessThanOrEqual(2);
  });

  it("are part of the configuration, and exclude settings that contradict them", async () => {
    const { handle } = await bind({ batcher: { shares: { by: "x-tenant", weights: { gold: 3 } } } });
    expect(handle.config().parameters).toEqual({
      shares_by: { stringValue: "x-tenant" },
      shares_weights: { stringValue: "gold=3" },
    });
    const other = (batcher: ModelOptions["batcher"]) =>
      thrownBy(() =>
        triton.bind({
          modelName: "other",
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
          config: { batcher },
        }),
      );
    expect(other({ shares: { by: "caller" }, targetLatencyMs: 5 })).toContain(
      "model 'other' has shares and a target latency: leave one of them out",
    );
    expect(other({ shares: { by: "caller", weights: { a: 0 } } })).toContain(
      "share of caller 'a' of model 'other': expected a weight above 0, got 0",
    );
    expect(other({ shares: { by: "caller" }, batchBy: () => 1 })).toContain(
      "config.batcher.batchBy and config.batcher.shares are both given: leave one of them out",
    );
  });
});
