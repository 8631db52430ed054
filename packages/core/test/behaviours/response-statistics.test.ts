import { Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";

const none = { count: 0, ns: 0 };
const ms = (count: number, milliseconds: number) => ({ count, ns: milliseconds * 1e6 });

/**
 * A model that answers each of `steps` after 5 ms: with the number, an error for -1, or no further response for 0.
 */
async function counting() {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  onTestFinished(() => triton.close());
  const handle = triton.bind({
    modelName: "steps",
    inputs: [{ name: "steps", dtype: "INT32", shape: [-1] }],
    outputs: [{ name: "n", dtype: "INT32", shape: [1] }],
    inferFunc: async function* ([request]) {
      for (const step of request!.inputs.steps.data) {
        if (step === 0) return;
        await new Promise<void>((resolve) => clock.setTimer(5, resolve));
        yield [step === -1 ? new TritonError("INTERNAL", "broken") : { n: [step] }];
      }
    },
    config: { decoupled: true, batching: false },
  });
  await handle.ready();
  const infer = (steps: number[], signal?: AbortSignal) => {
    const answers = handle.stream({ steps }, { signal })[Symbol.asyncIterator]();
    return {
      next: async () => {
        const next = answers.next().catch((error: unknown) => error);
        // A slow generator gives the event loop a turn before it continues.
        await clock.settle();
        await clock.advance(5);
        return next;
      },
    };
  };
  return { handle, infer };
}

describe("response statistics", () => {
  it("are kept by the index of the response in its request", async () => {
    const { handle, infer } = await counting();
    for (const steps of [[7, 8], [9]]) {
      const answers = infer(steps);
      for (const _ of [...steps, "end"]) await answers.next();
    }
    const success = (count: number) => ({
      computeInfer: ms(count, 5 * count),
      computeOutput: ms(count, 0),
      success: ms(count, 5 * count),
      fail: none,
      emptyResponse: none,
      cancel: none,
    });
    expect(handle.statistics().responseStats).toEqual({ 0: success(2), 1: success(1) });
    expect(handle.statistics().inferenceStats.success.count).toBe(2);
  });

  it("separate errors and requests without a response", async () => {
    const { handle, infer } = await counting();
    await infer([0]).next();
    expect(handle.statistics().responseStats).toMatchObject({
      0: { emptyResponse: ms(1, 0), success: none },
    });
    await infer([-1]).next();
    expect(handle.statistics().responseStats[0]).toMatchObject({ fail: ms(1, 5), computeOutput: none });
  });

  it("record the response at which a request was cancelled", async () => {
    const { handle, infer } = await counting();
    const left = new AbortController();
    const answers = infer([1, 2, 3], left.signal);
    await answers.next();
    left.abort();
    await answers.next();
    const { 0: first, 1: second, 2: third } = handle.statistics().responseStats;
    expect(first).toMatchObject({ success: ms(1, 5), cancel: none });
    expect(second).toMatchObject({ success: none, cancel: ms(1, 0) });
    expect(third).toBeUndefined();
  });

  it("count a request cancelled while it runs as an execution and a failure, not as an inference", async () => {
    const { handle, infer } = await counting();
    const left = new AbortController();
    const given = infer([1, 2, 3], left.signal);
    await given.next();
    left.abort();
    await given.next();
    const kept = infer([4]);
    for (let i = 0; i < 2; i++) await kept.next();
    const { executionCount, inferenceCount, inferenceStats } = handle.statistics();
    expect({ executionCount, inferenceCount }).toEqual({ executionCount: 2, inferenceCount: 1 });
    expect([inferenceStats.success.count, inferenceStats.fail.count]).toEqual([1, 1]);
  });

  it("are empty for a model with one response to a request", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      modelName: "one",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: (requests: readonly { inputs: { x: unknown } }[]) =>
        requests.map(({ inputs }) => ({ y: inputs.x })) as never,
    });
    await handle.infer({ x: [[1]] });
    expect(handle.statistics().responseStats).toEqual({});
  });

  it("are kept for the first responses of a long stream", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      modelName: "many",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: function* () {
        for (let i = 0; i < 1500; i++) yield [{ y: [i] }];
      },
      config: { decoupled: true, batching: false },
    });
    let answers = 0;
    for await (const _ of handle.stream({ x: [1] })) answers++;
    expect([answers, Object.keys(handle.statistics().responseStats).length]).toEqual([1500, 1024]);
  });
});
