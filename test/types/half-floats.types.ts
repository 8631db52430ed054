import { ModelClient } from "@tritonjs/client/http";
import { BFloat16Bits, batch, Float16Bits, Triton } from "@tritonjs/core";
import type { ValuesArray } from "@tritonjs/core/types";
import ndarray from "ndarray";

/* Types of FP16 and BF16: `get` and lists are of numbers, `data` is bits or a Float16Array, and arrays tell what they hold. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();
const spec = {
  inputs: [
    { name: "x", dtype: "FP16", shape: [2] },
    { name: "b", dtype: "BF16", shape: [2] },
  ],
  outputs: [
    { name: "y", dtype: "FP16", shape: [2] },
    { name: "c", dtype: "BF16", shape: [2] },
  ],
} as const;
const halves = triton.bind({
  modelName: "halves",
  ...spec,
  inferFunc: batch(({ x, b }) => {
    expectType<ValuesArray<"FP16">>()(x);
    expectType<number>()(x.get(0, 0));
    expectType<number>()(b.get(0, 0));
    expectType<Float32Array<ArrayBuffer>>()(x.data.toFloat32());
    expectType<BFloat16Bits>()(b.data);
    expectType<BFloat16Bits>()(b.data.slice(0, 1));
    if (x.data instanceof Float16Bits) expectType<Float16Bits>()(x.data);
    else expectType<"Float16Array">()(x.data[Symbol.toStringTag]);
    return { y: x.data.subarray(1), c: b };
  }),
});

// Numbers, arrays of numbers, bits, and ndarrays of them are taken, also from other models and by clients.
const { y, c } = await halves.infer({ x: [[1, 2.5]], b: new Float32Array(2) });
await halves.infer({ x: y, b: c });
await halves.infer({ x: [new Float32Array(2)], b: ndarray(new Float32Array(2), [1, 2]) });
await halves.infer({ x: new Float16Bits(2), b: ndarray(new BFloat16Bits(2), [1, 2]) });
const client = new ModelClient<typeof spec.inputs, typeof spec.outputs>("host:1", "halves");
await client.inferSample({ x: y, b: c });
await client.inferSample({ x: y.data, b: new Float32Array(2) });

// @ts-expect-error: a Uint16Array does not tell that it holds bits
await halves.infer({ x: new Uint16Array(2), b: c });
// @ts-expect-error: what map() makes of bits need not be bits
await halves.infer({ x: y, b: c.data.map((bits) => bits * 2) });
// @ts-expect-error: an ndarray of another type
await halves.infer({ x: ndarray(new Uint16Array(2), [1, 2]), b: c });
// @ts-expect-error: FP32 does not take bits
triton.bind({ ...spec, modelName: "other", inferFunc: batch(({ b }) => ({ y: b.data, c: b.data })) });
