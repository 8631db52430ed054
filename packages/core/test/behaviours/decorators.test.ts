import {
  batch,
  constantPadder,
  fillOptionals,
  firstValue,
  groupByKeys,
  groupByValues,
  type ModelHandle,
  type OutputsOf,
  padBatch,
  sample,
  Triton,
  tritonContext,
} from "@tritonjs/core";
import ndarray, { type NdArray } from "ndarray";
import { afterEach, describe, expect, it } from "vitest";
import { importCompiled } from "../../../../test/support/compile-fixture.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

let triton = new Triton();
afterEach(async () => {
  await triton.close();
  triton = new Triton();
});

const inputs = [
  { name: "x", dtype: "FP32", shape: [1] },
  { name: "t", dtype: "FP64", shape: [1], optional: true },
] as const;
const outputs = [{ name: "y", dtype: "FP64", shape: [-1] }] as const;
type Inputs = { readonly x: NdArray<Float32Array>; readonly t?: NdArray<Float64Array> };
const specs = { modelName: "m", inputs, outputs } as const;

/** x of each row times its t, or -1 without one. */
function product({ x, t }: Inputs): OutputsOf<typeof outputs> {
  return { y: Array.from(x.data, (value, row) => [t === undefined ? -value : value * t.data[row]!]) };
}

const rowsOf = (array: NdArray<Float64Array> | undefined) =>
  array && Array.from({ length: array.shape[0]! }, (_, row) => [...array.pick(row, null).data.subarray(0)]);

describe("the batch decorator", () => {
  it("accepts a list of outputs in the model's order", async () => {
    const handle = triton.bind({ ...specs, inferFunc: batch(({ x }) => [Float64Array.from(x.data)]) });
    expect((await handle.infer({ x: [[1], [2]] })).y.data).toEqual(Float64Array.of(1, 2));
  });

  it("rejects lists of another length and outputs of another row count with PyTriton's texts", async () => {
    const returned: unknown[] = [[1, 2], { y: [[1], [2]] }];
    const handle = triton.bind({ ...specs, inferFunc: batch(() => returned.shift() as { y: number[] }) });
    expect(await outcomeOf(handle.infer({ x: [[1]] }))).toBe(
      "INTERNAL model 'm': Outputs length different than config outputs length: expected 1 ('y'), got 2",
    );
    expect(await outcomeOf(handle.infer({ x: [[1]] }))).toBe(
      "INTERNAL model 'm': Received output tensors with different batch sizes: y: (2, 1). Expected batch size: 1. ",
    );
  });
});

describe("the fillOptionals decorator", () => {
  it("adds the default to each row of a request without the input", async () => {
    const handle = triton.bind({ ...specs, inferFunc: fillOptionals({ t: [0.5] })(batch(product)) });
    expect((await handle.infer({ x: [[2], [4]] })).y.data).toEqual(Float64Array.of(1, 2));
    expect((await handle.infer({ x: [[2]], t: [[3]] })).y.data).toEqual(Float64Array.of(6));
  });

  it("works without a batch axis, with BYTES, and around a plain callback", async () => {
    const handle = triton.bind({
      modelName: "greet",
      inputs: [
        { name: "who", dtype: "BYTES", shape: [1] },
        { name: "how", dtype: "BYTES", shape: [1], optional: true },
      ],
      outputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      inferFunc: fillOptionals({ how: ["hello"] })(
        sample(({ who, how }) => ({ text: [`${Buffer.from(how.data[0]!)} ${Buffer.from(who.data[0]!)}`] })),
      ),
      config: { batching: false },
    });
    const { text } = await handle.infer({ who: ["you"] });
    expect(Buffer.from(text.data[0]!).toString()).toBe("hello you");
    const plain = triton.bind({
      ...specs,
      inferFunc: fillOptionals({ t: Float64Array.of(2) })((requests) =>
        requests.map((request) => product(request.inputs)),
      ),
    });
    expect((await plain.infer({ x: [[2], [3]] })).y.data).toEqual(Float64Array.of(4, 6));
  });

  it("gives each request its own copy of the default", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: fillOptionals({ t: [1] })(
        batch(({ t }) => {
          t.data[0]! += 1;
          return { y: t };
        }),
      ),
    });
    for (let i = 0; i < 2; i++) expect((await handle.infer({ x: [[0]] })).y.data).toEqual(Float64Array.of(2));
  });

  it("is rejected at bind for defaults that do not match their inputs, all at once", () => {
    const bind = (defaults: Record<string, Float64Array | Float32Array | number[]>) => () =>
      triton.bind({ ...specs, inferFunc: fillOptionals(defaults)(batch(product as () => never)) });
    expect(bind({ nope: [1], t: Float32Array.of(1) })).toThrow(
      /Could not found nope inputs\n.*Could not use t: dtype=FP32 expected_dtype=FP64 defaults as they have different than input signature dtypes/,
    );
    expect(bind({ t: [1, 2] })).toThrow(
      "Could not use t: shape=(2,) expected_shape=(1,) defaults as they have different than input signature shapes",
    );
  });
});

describe("the groupByKeys decorator", () => {
  const seen: unknown[] = [];
  const watched = ({ x, t }: Inputs) => {
    seen.push([[...x.data], t && [...t.data]]);
    return product({ x, ...(t && { t }) });
  };
  const sentTogether = (handle: ModelHandle<typeof inputs, typeof outputs>) =>
    Promise.all([
      handle.inferSample({ x: [1], t: [10] }),
      handle.inferSample({ x: [2] }),
      handle.inferSample({ x: [3], t: [10] }),
    ]);
  afterEach(() => seen.splice(0));

  it("lets requests with different inputs share a batch, and calls once for each set of inputs", async () => {
    const handle = triton.bind({ ...specs, inferFunc: groupByKeys(batch(watched)) });
    await handle.ready();
    const answers = await sentTogether(handle);
    expect(answers.map(({ y }) => y.data[0])).toEqual([10, -2, 30]);
    expect(seen).toEqual([
      [
        [1, 3],
        [10, 10],
      ],
      [[2], undefined],
    ]);
    expect(handle.statistics().executionCount).toBe(1);
  });

  it("fails only the requests of one group", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: groupByKeys(
        batch(({ x, t }) => {
          if (t === undefined) throw new Error("t is needed");
          return watched({ x, t });
        }),
      ),
    });
    await handle.ready();
    const sent = [handle.inferSample({ x: [1], t: [2] }), handle.inferSample({ x: [1] })];
    expect(await outcomesOf(sent)).toEqual(["done", "INTERNAL model 'm': t is needed"]);
    expect(handle.statistics().executionCount).toBe(1);
  });

  it("sees one group after fillOptionals", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: fillOptionals({ t: [5] })(groupByKeys(batch(watched))),
    });
    await handle.ready();
    await sentTogether(handle);
    expect(seen).toEqual([
      [
        [1, 2, 3],
        [10, 5, 10],
      ],
    ]);
  });

  it("also divides batches of a decoupled model", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: groupByKeys(
        batch(async function* ({ x, t }) {
          yield product({ x, ...(t && { t }) });
          if (t === undefined) throw new Error("no more");
          yield product({ x, t });
        }),
      ),
    });
    await handle.ready();
    const heard = async (given: { x: number[]; t?: number[] }) => {
      const values: unknown[] = [];
      try {
        const { x, t } = given;
        for await (const { y } of handle.stream({ x: [x], ...(t && { t: [t] }) })) values.push(y.data[0]);
      } catch (error) {
        values.push((error as Error).message);
      }
      return values;
    };
    expect(await Promise.all([heard({ x: [1], t: [2] }), heard({ x: [3] })])).toEqual([
      [2, 2],
      [-3, "model 'm': no more"],
    ]);
    await handle.unbind();
    expect(handle.statistics().executionCount).toBe(1);
  });
});

describe("the groupByValues decorator", () => {
  it("calls the callback once for each value and restores the order of rows", async () => {
    const calls: unknown[] = [];
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(
        groupByValues("t")(async ({ x, t }) => {
          calls.push([[...x.data], [...t!.data]]);
          return product({ x, t: t! });
        }),
      ),
    });
    const { y } = await handle.infer({ x: [[1], [2], [3], [4]], t: [[10], [5], [10], [5]] });
    expect([...y.data]).toEqual([10, 10, 30, 20]);
    expect(calls).toEqual([
      [
        [1, 3],
        [10, 10],
      ],
      [
        [2, 4],
        [5, 5],
      ],
    ]);
  });

  it("pads outputs whose shapes differ between groups; without a padder it fails with a hint", async () => {
    const widen = ({ x, t }: Inputs) => {
      const [rows, width] = [x.shape[0]!, t!.data[0]!];
      return { y: ndarray(new Float64Array(rows * width).fill(width), [rows, width]) };
    };
    const padded = triton.bind({
      ...specs,
      inferFunc: batch(groupByValues("t", { padFn: constantPadder(-1) })(widen)),
    });
    const sent = { x: [[0], [0], [0]], t: [[1], [3], [1]] };
    const { y } = await padded.infer(sent);
    expect(y.shape).toEqual([3, 3]);
    expect([...y.data]).toEqual([1, -1, -1, 3, 3, 3, 1, -1, -1]);
    const bare = triton.bind({ ...specs, modelVersion: 2, inferFunc: batch(groupByValues("t")(widen)) });
    expect(await outcomeOf(bare.infer(sent))).toBe(
      "INTERNAL output 'y' has rows of different shapes [1] and [3] in the groups of @groupByValues; give a padFn " +
        "that makes them equal",
    );
  });

  it("pads BYTES with empty elements", () => {
    const bytes = (texts: string[], shape: number[]) =>
      ndarray(
        texts.map((text) => Buffer.from(text)),
        shape,
      ) as unknown as NdArray;
    const [short] = constantPadder()([{ y: bytes(["a"], [1, 1]) }, { y: bytes(["b", "c"], [1, 2]) }]);
    expect((short!.y!.data as unknown as Uint8Array[]).map((one) => Buffer.from(one).toString())).toEqual([
      "a",
      "",
    ]);
    expect(() =>
      constantPadder()([
        { y: ndarray(new Float32Array(1), [1, 1]) },
        { y: ndarray(new Int8Array(1), [1, 1]) },
      ]),
    ).toThrow("All input arrays for given input name must have the same dtype.");
  });

  it("is rejected around batch, around generators, and without batch", () => {
    expect(() => groupByValues("t")(batch(product as () => never) as never)).toThrow(
      "The @groupByValues decorator must be used after the @batch decorator.",
    );
    expect(() => groupByValues("t")(function* () {} as never)).toThrow(/generator/);
    expect(() =>
      triton.bind({ ...specs, inferFunc: groupByValues("t")(product as () => never) as never }),
    ).toThrow("The @groupByValues decorator must be used after the @batch decorator.");
    expect(() =>
      triton.bind({
        ...specs,
        inferFunc: batch(groupByValues("nope")(({ x }) => ({ y: Float64Array.from(x.data) }))),
      }),
    ).toThrow("Could not found nope inputs");
  });
});

describe("the firstValue decorator", () => {
  const first = (options: { strict?: boolean; squeezeSingleValues?: boolean } = {}) => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(
        firstValue(
          "t",
          options,
        )(({ x, t }) => {
          seen.push(t);
          return { y: Float64Array.from(x.data) };
        }),
      ),
    });
    return { handle, seen };
  };

  it("gives the callback one scalar for all rows, and nothing for a missing input", async () => {
    const { handle, seen } = first();
    await handle.infer({ x: [[1], [2]], t: [[7], [7]] });
    await handle.infer({ x: [[1]] });
    expect(seen).toEqual([7, undefined]);
  });

  it("rejects differing values in strict mode", async () => {
    const { handle } = first();
    expect(await outcomeOf(handle.infer({ x: [[1], [2]], t: [[7], [8]] }))).toBe(
      "INTERNAL model 'm': The values on the 't' input are not equal. To proceed, either disable strict mode in @firstValue " +
        "wrapper or ensure that the values always are consistent. The current values of 't' are [7, 8].",
    );
    await triton.close();
    triton = new Triton();
    const loose = first({ strict: false });
    await loose.handle.infer({ x: [[1], [2]], t: [[7], [8]] });
    expect(loose.seen).toEqual([7]);
  });

  it("keeps the array when squeezing is off", async () => {
    const { handle, seen } = first({ squeezeSingleValues: false });
    await handle.infer({ x: [[1]], t: [[7]] });
    expect((seen[0] as NdArray).shape).toEqual([1]);
  });

  it("is rejected without a batch axis, and for the name of the context", () => {
    expect(() =>
      triton.bind({
        ...specs,
        inferFunc: sample(firstValue("t")(({ x }) => ({ y: Float64Array.from(x.data) }))),
        config: { batching: false },
      }),
    ).toThrow("The @firstValue decorator can only be used with models that support batching.");
    expect(() => firstValue("tritonContext")).toThrow(
      "The keys tritonContext are not allowed as keys for @firstValue wrapper. " +
        "The set of not allowed keys are tritonContext",
    );
  });
});

describe("the padBatch decorator", () => {
  it("repeats the last row up to the next preferred size, and removes the added rows from the outputs", async () => {
    const seen: number[][] = [];
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(
        padBatch(({ x }) => {
          seen.push([...x.data]);
          return { y: Array.from(x.data, (value) => [value]) };
        }),
      ),
      config: { maxBatchSize: 6, batcher: { preferredBatchSize: [3] } },
    });
    for (const x of [
      [[1], [2]],
      [[1], [2], [3]],
      [[1], [2], [3], [4]],
    ]) {
      expect([...(await handle.infer({ x })).y.data]).toEqual(x.flat());
    }
    expect(seen).toEqual([
      [1, 2, 2],
      [1, 2, 3],
      [1, 2, 3, 4, 4, 4],
    ]);
  });

  it("removes the added rows from each response of a decoupled model", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(
        padBatch(function* ({ x }) {
          yield { y: Float64Array.from(x.data) };
          yield { y: Float64Array.from(x.data, (value) => 2 * value) };
        }),
      ),
    });
    const responses: number[][] = [];
    for await (const { y } of handle.stream({ x: [[1], [2]] })) responses.push([...y.data]);
    expect(responses).toEqual([
      [1, 2],
      [2, 4],
    ]);
  });
});

describe("the tritonContext decorator", () => {
  it("adds the context to the inputs", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(
        groupByValues("t")(
          tritonContext(({ x, tritonContext: given }, context) => {
            expect(given).toBe(context);
            return { y: Float64Array.from(x.data, () => given.modelConfig.maxBatchSize) };
          }),
        ),
      ),
    });
    expect([...(await handle.infer({ x: [[1], [2]], t: [[1], [2]] })).y.data]).toEqual([4, 4]);
  });
});

describe("decorators of methods", () => {
  it("work in PyTriton's order, bound to their object", async () => {
    const { StackedModel } = await importCompiled<
      typeof import("../../../../test/support/decorated/stacked-model.js")
    >(new URL("../../../../test/support/decorated/stacked-model.ts", import.meta.url));
    const [one, two] = [new StackedModel(1), new StackedModel(2)];
    const handle = triton.bind({ ...specs, inferFunc: two.run as never });
    triton.bind({ ...specs, modelVersion: 2, inferFunc: one.run as never });
    expect([...(await handle.infer({ x: [[4]] })).y.data]).toEqual([4]);
    expect([...(await handle.infer({ x: [[1], [2], [3]], t: [[3], [1], [3]] })).y.data]).toEqual([6, 4, 18]);
    expect(two.seen).toEqual([
      ["m", 0.5],
      ["m", 3],
      ["m", 1],
    ]);
    expect(one.seen).toEqual([]);
  });

  it("are rejected in an order that cannot work", () => {
    const fn = product as () => never;
    expect(() => batch(groupByKeys(batch(fn)) as never)).toThrow("@batch and @batch cannot decorate");
    expect(() => batch(groupByKeys(fn) as never)).toThrow(
      "The @groupByKeys decorator must be used before the @batch decorator.",
    );
    expect(() => groupByKeys(padBatch(fn) as never)).toThrow(
      "The @padBatch decorator must be used after the @batch decorator.",
    );
    expect(() => batch(7 as never)).toThrow("@batch: expected a function to decorate, got number");
  });
});

describe("strict result checks", () => {
  const cases: Record<string, [unknown, string]> = {
    "a nested array": [{ y: [[1]] }, "Not all values returned by `m` model callable are ndarrays"],
    "another data type": [
      { y: ndarray(new Float32Array(1), [1, 1]) },
      "Returned output `y` for model `m` has invalid type. Returned: FP32. Expected: FP64.",
    ],
    "another rank": [
      { y: ndarray(new Float64Array(1), [1]) },
      "Returned output `y` for model `m` has invalid shapes. Returned: (). Expected: (1,).",
    ],
    "another size": [
      { y: ndarray(new Float64Array(2), [1, 2]) },
      "Returned output `y` for model `m` has invalid shapes at one or more positions. Returned: (2,). Expected: (1,).",
    ],
    "an unknown name": [
      { z: ndarray(new Float64Array(1), [1, 1]) },
      "Returned output `z` is not defined in model config for model `m`.",
    ],
  };
  for (const [name, [returned, text]] of Object.entries(cases)) {
    it(`reject ${name}`, async () => {
      const handle = triton.bind({
        ...specs,
        outputs: [{ name: "y", dtype: "FP64", shape: [1] }],
        strict: true,
        inferFunc: batch(() => returned as { y: number[] }),
      });
      expect(await outcomeOf(handle.infer({ x: [[1]] }))).toBe(`INTERNAL ${text}`);
    });
  }

  it("accept ndarrays of the declared type and shape", async () => {
    const handle = triton.bind({
      ...specs,
      strict: true,
      inferFunc: batch(() => ({ y: ndarray(Float64Array.of(1), [1, 1]) })),
    });
    expect(rowsOf((await handle.infer({ x: [[1]] })).y)).toEqual([[1]]);
  });
});
