import { batch, type Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { openTriton } from "../../../../test/e2e/support/open-triton.js";

/** Computes for a millisecond. */
function compute(): void {
  const end = performance.now() + 1;
  while (performance.now() < end);
}

const tensors = {
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
} as const;

/** Models whose requests compute for a millisecond each, and how they are called. */
const bindings = {
  "a callback": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(({ x }) => {
      compute();
      return { y: x };
    });
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config: { maxBatchSize: 1 } });
    return { model, call: (i: number) => model.inferSample({ x: [i] }) };
  },
  "a callback that awaits before it computes": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(async ({ x }) => {
      await null;
      compute();
      return { y: x };
    });
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config: { maxBatchSize: 1 } });
    return { model, call: (i: number) => model.inferSample({ x: [i] }) };
  },
  "a generator": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(async function* ({ x }) {
      compute();
      yield { y: x };
    });
    const config = { maxBatchSize: 1, decoupled: true } as const;
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config });
    return {
      model,
      call: async (i: number) => {
        for await (const _response of model.stream({ x: [[i]] }));
      },
    };
  },
};

const ways = [
  ["one after the other", 1],
  ["together", 40],
] as const;
const cases = Object.entries(bindings).flatMap(([kind, bind]) =>
  ways.map(([how, together]) => [kind, how, bind, together] as const),
);

it.each(cases)(
  "40 requests of %s, %s, leave turns to the rest of the program",
  async (_kind, _how, bind, together) => {
    const { model, call } = bind(openTriton());
    await model.ready();
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const client = async () => {
      for (let i = 0; i < 40 / together; i++) await call(i);
    };
    await Promise.all(Array.from({ length: together }, client));
    isOver = true;
    // A turn after each two milliseconds of work.
    expect(turns).toBeGreaterThanOrEqual(19);
  },
);
