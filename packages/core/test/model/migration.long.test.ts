import { batch, Triton } from "@tritonjs/core";
import type { RebindOptions } from "@tritonjs/core/types";
import { afterEach, describe, expect, it } from "vitest";

const X = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
const Y = [{ name: "y", dtype: "FP32", shape: [1] }] as const;

let triton: Triton;

afterEach(() => triton.close());

const quiet = { logger: { error() {}, warn() {}, info() {}, debug() {} } };

describe("hundreds of changes under load", () => {
  it("lose and reorder nothing between a function on the event loop, threads and processes", async () => {
    triton = new Triton(quiet);
    const module = new URL("./fixtures/plus-zero.mjs", import.meta.url);
    const inline = () =>
      batch<typeof X, typeof Y>(({ x }) => ({ y: x })) as NonNullable<RebindOptions["inferFunc"]>;
    const changeOf = (i: number): RebindOptions => {
      const batcher = i % 2 === 0 ? { maxQueueDelayMicroseconds: 100 * (i % 5) } : false;
      const config = { maxBatchSize: 4 << (i % 3), batcher } as const;
      if (i % 80 === 79)
        return { inferFunc: module, config: { ...config, instanceGroup: { isolation: "process" } } };
      if (i % 20 === 19) return { inferFunc: module, config: { ...config, instanceGroup: { count: 1 } } };
      return { inferFunc: inline(), config };
    };
    const model = triton.bind({
      modelName: "m",
      inputs: X,
      outputs: Y,
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4 },
    });
    await model.ready();
    let isOver = false;
    let next = 0;
    let last = -1;
    const faults: string[] = [];
    const caller = async () => {
      while (!isOver) {
        const number = next++;
        const { y } = await model.infer({ x: [[number % 1e6]] });
        if (y.data[0] !== number % 1e6) faults.push(`${number}: ${y.data[0]}`);
        if (number < last) faults.push(`${number} after ${last}`);
        last = number;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const callers = Array.from({ length: 16 }, caller);
    for (let i = 0; i < 240; i++) {
      await model.rebind(changeOf(i));
      await new Promise((resolve) => setImmediate(resolve));
    }
    isOver = true;
    await Promise.all(callers);
    expect(faults).toEqual([]);
    expect(model.statistics().inferenceCount).toBe(next);
    expect(model.instances().map(({ isolation }) => isolation)).toEqual(["process"]);
  }, 300_000);

  it("break no sequence", async () => {
    triton = new Triton(quiet);
    const counting = () => {
      const sums = new Map<unknown, number>();
      return (
        requests: readonly { inputs: { x: { data: Float32Array } }; sequence?: { correlationId: unknown } }[],
      ) =>
        requests.map(({ inputs, sequence }) => {
          const sum = (sums.get(sequence!.correlationId) ?? 0) + inputs.x.data[0]!;
          sums.set(sequence!.correlationId, sum);
          return { y: [[sum]] };
        });
    };
    const model = triton.bind({
      modelName: "m",
      inputs: X,
      outputs: Y,
      inferFunc: counting() as never,
      config: { maxBatchSize: 16, sequence: { maxSequenceIdleMicroseconds: 3_600_000_000 } },
    });
    await model.ready();
    let isOver = false;
    let nextId = 1;
    let ended = 0;
    const faults: string[] = [];
    const caller = async () => {
      while (!isOver) {
        const id = nextId++;
        const length = 2 + (id % 30);
        for (let step = 1; step <= length; step++) {
          const sequence = { id, start: step === 1, end: step === length };
          const { y } = (await model.infer({ x: [[1]] } as never, { sequence })) as {
            y: { data: Float32Array };
          };
          if (y.data[0] !== step) faults.push(`sequence ${id}: expected ${step}, got ${y.data[0]}`);
          await new Promise((resolve) => setImmediate(resolve));
        }
        ended++;
      }
    };
    const callers = Array.from({ length: 8 }, caller);
    for (let i = 0; i < 240; i++) {
      const strategy = i % 2 === 0 ? { strategy: "oldest" as const } : {};
      const sequence = { maxSequenceIdleMicroseconds: 3_600_000_000, ...strategy };
      await model.rebind({ inferFunc: counting() as never, config: { maxBatchSize: 16, sequence } });
      await new Promise((resolve) => setImmediate(resolve));
    }
    isOver = true;
    await Promise.all(callers);
    expect(faults).toEqual([]);
    expect(ended).toBeGreaterThan(20);
    expect(model.instances()).toHaveLength(1);
  }, 300_000);
});
