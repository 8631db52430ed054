import { getEventListeners } from "node:events";
import { type ModelHandle, RESCHEDULE, sequenceState, Tensor, Triton } from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import type { InferenceRequest } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { sendRequest } from "../../../../test/support/send-request.js";

const inputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const outputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;
type Handle = ModelHandle<typeof inputs, typeof outputs>;

let triton: Triton;
afterEach(() => triton.close());

async function run(handle: Handle, value: number): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] });
  return y.data[0]!;
}

describe("a callback that reschedules a request", () => {
  it("gets it in its next batch", async () => {
    triton = new Triton();
    const batches: number[][] = [];
    const left = sequenceState(() => ({ runs: 0 }));
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        batches.push(requests.map(({ inputs: { x } }) => x.data[0]!));
        return requests.map(({ inputs: { x }, sequence }) => {
          const state = left(sequence);
          state.runs++;
          return state.runs < x.data[0]! ? RESCHEDULE : { y: [[state.runs]] };
        });
      },
      config: { sequence: { iterative: true } },
    });
    expect(await Promise.all([2, 4, 1].map((times) => run(handle, times)))).toEqual([2, 4, 1]);
    expect(batches).toEqual([[2, 4, 1], [2, 4], [4], [4]]);
  });

  it("may read the signal of each batch, which removes its listeners from the request", async () => {
    triton = new Triton();
    const left = sequenceState(() => ({ runs: 0 }));
    const handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests, { signal }) =>
        requests.map(({ sequence }) =>
          !signal.aborted && ++left(sequence).runs < 50 ? RESCHEDULE : { y: [[1]] },
        ),
      config: { sequence: { iterative: true } },
    });
    await handle.ready();
    const given = new Map([["x", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1))]]);
    const request = await new Promise<RequestHandle>((resolve) => {
      sendRequest(triton.service.model("m", ""), { inputs: given }, (_outcome, _final, sent) =>
        resolve(sent),
      );
    });
    expect(getEventListeners((request as InferenceRequest).signal, "abort").length).toBeLessThanOrEqual(1);
  });

  it("gets it in its next batch in a worker too", async () => {
    triton = new Triton();
    const inferFunc = new URL("./fixtures/counts-down.mjs", import.meta.url);
    const config = { sequence: { iterative: true } };
    const handle: Handle = triton.bind({ modelName: "m", inputs, outputs, inferFunc, config });
    await handle.ready();
    expect(await Promise.all([3, 1, 2].map((times) => run(handle, times)))).toEqual([3, 1, 2]);
  });

  it("may respond in between when it is decoupled", async () => {
    triton = new Triton();
    const sent = sequenceState(() => ({ count: 0 }));
    const steps: number[] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        steps.push(requests.length);
        return requests.map(({ inputs: { x }, sequence, responseSender }) => {
          const state = sent(sequence);
          void responseSender.send({ y: [[state.count++]] });
          return state.count < x.data[0]! ? RESCHEDULE : undefined;
        });
      },
      config: { decoupled: true, sequence: { iterative: true } },
    });
    const read = async (count: number) => {
      const values: number[] = [];
      for await (const { y } of handle.stream({ x: [[count]] })) values.push(y.data[0]!);
      return values;
    };
    expect(await Promise.all([read(3), read(1), read(2)])).toEqual([[0, 1, 2], [0], [0, 1]]);
    expect(steps).toEqual([3, 2, 1]);
  });

  it("gets an error when its model has no iterative sequences", async () => {
    triton = new Triton();
    const inferFunc = () => [RESCHEDULE] as const;
    const handle: Handle = triton.bind({ modelName: "m", inputs, outputs, inferFunc });
    expect(await outcomeOf(run(handle, 1))).toBe(
      "INTERNAL model 'm' returned RESCHEDULE, which needs sequence batching with iterative sequences",
    );
  });
});
