import { type InferFunc, type ModelOptions, sample, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import type { NdArray } from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import {
  adds,
  bindCounter,
  bindPipeline,
  bindStage,
  heldStage,
  pipelineInputs,
  pipelineOutputs,
  stage,
} from "../../../../test/support/pipeline.js";

type Outputs = { y: NdArray<Int32Array> };

/** Binds a model without a batch axis. */
function bindLogic(
  triton: Triton,
  modelName: string,
  inferFunc: InferFunc<typeof pipelineInputs, typeof pipelineOutputs> | URL,
  config: ModelOptions = {},
) {
  return triton.bind({
    modelName,
    inputs: pipelineInputs,
    outputs: pipelineOutputs,
    inferFunc,
    config: { batching: false, ...config },
  });
}

/** A callback that answers with another model's answer to its input. */
const delegate = (modelName: string) =>
  sample<typeof pipelineInputs, typeof pipelineOutputs>(async ({ x }, { infer }) => {
    const { y } = await infer<Outputs>(modelName, { x: Int32Array.of(x.data[0]!) });
    return { y: [y.data[0]!] };
  });

describe("a callback that calls models", () => {
  it("uses them in branches and loops", async () => {
    const triton = new Triton();
    bindStage(triton, "double", (x) => adds(x.data[0]!)(x, AbortSignal.any([])));
    const logic = bindLogic(
      triton,
      "logic",
      sample(async ({ x }, { infer }) => {
        let value = x.data[0]!;
        while (value < 100) value = (await infer<Outputs>("double", { x: [[value]] })).y.data[0]!;
        return { y: [value] };
      }),
    );
    expect((await logic.infer({ x: [3] })).y.data[0]).toBe(192);
    await triton.close();
  });

  it("calls ensembles and is a member of them", async () => {
    const triton = new Triton();
    bindStage(triton, "a", adds(1));
    bindPipeline(triton, [stage("a", "x", "m"), stage("a", "m", "y")], {}, "inner");
    bindStage(triton, "logic", async (x) => x);
    bindLogic(triton, "outer", delegate("inner"));
    const whole = bindPipeline(triton, [stage("logic", "x", "m"), stage("inner", "m", "y")]);
    await whole.ready();
    expect((await triton.infer("outer", { x: [1] })).y?.data[0]).toBe(3);
    expect((await whole.infer({ x: [[1]] })).y.data[0]).toBe(3);
    await triton.close();
  });

  it("reads the responses of a decoupled model and ends it by leaving the loop", async () => {
    const triton = new Triton();
    const progress = bindCounter(triton, "count");
    const logic = bindLogic(
      triton,
      "logic",
      sample(async ({ x }, { stream }) => {
        let sum = 0;
        for await (const { y } of stream<Outputs>("count", { x: [[x.data[0]!]] })) {
          sum += y.data[0]!;
          if (sum >= 10) break;
        }
        return { y: [sum] };
      }),
    );
    expect((await logic.infer({ x: [3] })).y.data[0]).toBe(6);
    expect((await logic.infer({ x: [2 ** 30] })).y.data[0]).toBe(10);
    expect(progress.made).toBeLessThan(20);
    await triton.close();
  });

  it("passes on cancellation and the time left", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const held = heldStage();
    bindStage(triton, "held", held.run);
    const logic = bindLogic(triton, "logic", delegate("held"));
    await clock.settle();
    const giveUp = new AbortController();
    const cancelled = outcomeOf(logic.infer({ x: [1] }, { signal: giveUp.signal }));
    await clock.settle();
    giveUp.abort();
    await clock.settle();
    expect([await cancelled, held.seen.aborted]).toEqual(["CANCELLED the request was cancelled", 1]);
    held.release();
    await clock.settle();
    const late = outcomeOf(logic.infer({ x: [1] }, { timeoutMs: 50 }));
    await clock.advance(50);
    expect([await late, held.seen.aborted]).toEqual(["UNAVAILABLE Request timeout expired", 2]);
    held.release();
  });

  it("gets the errors of its calls and may handle them", async () => {
    const triton = new Triton();
    bindStage(triton, "bad", () => {
      throw new TritonError("UNAVAILABLE", "no luck");
    });
    const fallback = bindLogic(
      triton,
      "fallback",
      sample(async ({ x }, { infer }) => {
        const tried = await infer<Outputs>("bad", { x: [[1]] }).catch((error: TritonError) => error.code);
        return { y: [tried === "UNAVAILABLE" ? 0 : x.data[0]!] };
      }),
    );
    expect((await fallback.infer({ x: [7] })).y.data[0]).toBe(0);
    const logic = bindLogic(triton, "logic", delegate("nobody"));
    expect(await outcomeOf(logic.infer({ x: [1] }))).toContain("'nobody' is not found");
    await triton.close();
  });

  it.each([
    ["", 0],
    [" after a long computation, which leaves the event loop a turn", 5],
  ])("calls its own model while another instance is idle%s", async (_, ms) => {
    const triton = new Triton();
    const sum = bindLogic(
      triton,
      "sum",
      sample(async ({ x }, { infer }) => {
        for (const end = performance.now() + ms; performance.now() < end; );
        const value = x.data[0]!;
        if (value === 0) return { y: [0] };
        const { y } = await infer<Outputs>("sum", { x: Int32Array.of(value - 1) });
        return { y: [value + y.data[0]!] };
      }),
      { instanceGroup: { count: 4 } },
    );
    expect((await sum.infer({ x: [3] })).y.data[0]).toBe(6);
    expect(await outcomeOf(sum.infer({ x: [4] }))).toContain(
      "circular call of models, which could wait forever",
    );
    expect((await sum.infer({ x: [3] })).y.data[0]).toBe(6);
    await triton.close();
  });

  it("fails instead of waiting forever for its own model", async () => {
    const triton = new Triton();
    const self = bindLogic(triton, "self", delegate("self"));
    expect(await outcomeOf(self.infer({ x: [1] }))).toBe(
      "INTERNAL circular call of models, which could wait forever: 'self/1' -> 'self/1'",
    );
    bindLogic(triton, "ping", delegate("pong"));
    bindLogic(triton, "pong", delegate("ping"));
    expect(await outcomeOf(triton.infer("ping", { x: [1] }))).toContain("'ping/1' -> 'pong/1' -> 'ping/1'");
    await triton.close();
  });

  it("fails instead of waiting forever for a model that waits for it", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const call = (model: string) =>
      sample<typeof pipelineInputs, typeof pipelineOutputs>(async ({ x }, { infer }) => {
        if (x.data[0] === 0) return { y: [0] };
        await new Promise<void>((resolve) => void clock.setTimer(10, resolve));
        await infer(model, { x: [0] });
        return { y: [1] };
      });
    const a = bindLogic(triton, "a", call("b"));
    const b = bindLogic(triton, "b", call("a"));
    await clock.settle();
    const outcomes = Promise.all([outcomeOf(a.infer({ x: [1] })), outcomeOf(b.infer({ x: [1] }))]);
    await clock.advance(100);
    expect((await outcomes).sort()).toEqual([
      "UNAVAILABLE model 'b/1' cannot call model 'a/1', which is busy and waits for 'b/1': try again, or add instances",
      "done",
    ]);
  });

  it("gets its answers even while the server closes", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const first = heldStage();
    bindStage(triton, "held", first.run);
    const logic = bindLogic(
      triton,
      "logic",
      sample(async ({ x }, { infer }) => {
        await infer("held", { x: [[1]] });
        const { y } = await infer<Outputs>("held", { x: [[x.data[0]!]] });
        return { y: [y.data[0]!] };
      }),
    );
    await clock.settle();
    const answer = logic.infer({ x: [5] });
    await clock.settle();
    const closed = triton.close();
    for (let i = 0; i < 2; i++) {
      await clock.settle();
      first.release();
    }
    await clock.settle();
    expect((await answer).y.data[0]).toBe(5);
    await closed;
  });
});

describe("a callback in a worker", () => {
  let triton: Triton;
  beforeEach(() => {
    triton = new Triton();
  });
  afterEach(() => triton.close());

  const bindCalls = async () => {
    const handle = bindLogic(triton, "calls", new URL("./fixtures/calls-others.mjs", import.meta.url));
    await handle.ready();
    return handle;
  };

  it("calls other models", async () => {
    bindStage(triton, "a", adds(1));
    const calls = await bindCalls();
    expect((await calls.infer({ x: [4] }, { parameters: { model: "a" } })).y.data[0]).toBe(5);
    expect(await outcomeOf(calls.infer({ x: [4] }, { parameters: { model: "nobody" } }))).toContain(
      "NOT_FOUND Request for unknown model: 'nobody' is not found",
    );
  });

  it("reads responses one by one", async () => {
    const progress = bindCounter(triton, "count");
    const calls = await bindCalls();
    const parameters = { model: "count", stream: true };
    expect((await calls.infer({ x: [4] }, { parameters })).y.data[0]).toBe(10);
    const some = await calls.infer({ x: [2 ** 30] }, { parameters: { ...parameters, enough: 15 } });
    expect(some.y.data[0]).toBe(15);
    expect(progress.made).toBeLessThan(100);
  });

  it("passes cancellation on", async () => {
    const held = heldStage();
    bindStage(triton, "held", held.run);
    const calls = await bindCalls();
    const giveUp = new AbortController();
    const answer = outcomeOf(
      calls.infer({ x: [4] }, { signal: giveUp.signal, parameters: { model: "held" } }),
    );
    await expect.poll(() => held.seen.runs).toBe(1);
    giveUp.abort();
    expect(await answer).toBe("CANCELLED the request was cancelled");
    expect(held.seen.aborted).toBe(1);
    held.release();
  });

  it("fails instead of waiting forever for its own model", async () => {
    const calls = await bindCalls();
    expect(await outcomeOf(calls.infer({ x: [1] }, { parameters: { model: "calls" } }))).toBe(
      "INTERNAL circular call of models, which could wait forever: 'calls/1' -> 'calls/1'",
    );
  });
});
