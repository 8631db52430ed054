import {
  batch,
  constantPadder,
  fillOptionals,
  firstValue,
  groupByKeys,
  groupByValues,
  type InferContext,
  padBatch,
  sample,
  Triton,
  tritonContext,
} from "@tritonjs/core";
import type { BytesArray, ValuesArray } from "@tritonjs/core/types";
import type { NdArray } from "ndarray";

/* Types are tested by compiling this file, as in bind.types.ts: they pass through any number of decorators. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();

const inputs = [
  { name: "x", dtype: "FP32", shape: [2] },
  { name: "t", dtype: "FP64", shape: [1], optional: true },
  { name: "n", dtype: "INT64", shape: [2] },
  { name: "w", dtype: "BYTES", shape: [-1] },
] as const;
const outputs = [{ name: "y", dtype: "FP32", shape: [2] }] as const;

// A filled-in input is present.
triton.bind({
  modelName: "filled",
  inputs,
  outputs,
  inferFunc: fillOptionals({ t: [0.7] })(
    batch(({ x, t }) => {
      expectType<ValuesArray<"FP32">>()(x);
      expectType<ValuesArray<"FP64">>()(t);
      return { y: x };
    }),
  ),
});

// Through groups; an input that is not filled in may be missing.
triton.bind({
  modelName: "grouped",
  inputs,
  outputs,
  inferFunc: groupByKeys(
    batch(
      groupByValues("n", { padFn: constantPadder(1) })(
        padBatch(({ x, t }) => {
          expectType<ValuesArray<"FP32">>()(x);
          expectType<ValuesArray<"FP64"> | undefined>()(t);
          return { y: x };
        }),
      ),
    ),
  ),
});

// The first value is a scalar for a shape of one element, an array for more, and either when the shape does not say.
triton.bind({
  modelName: "first",
  inputs,
  outputs,
  inferFunc: fillOptionals({ t: [0.7] })(
    groupByKeys(
      batch(
        groupByValues("t")(
          firstValue(
            "t",
            "n",
            "w",
          )(({ x, t, n, w }, context) => {
            expectType<ValuesArray<"FP32">>()(x);
            expectType<number>()(t);
            expectType<ValuesArray<"INT64">>()(n);
            expectType<Uint8Array | BytesArray>()(w);
            expectType<InferContext>()(context);
            return { y: x };
          }),
        ),
      ),
    ),
  ),
});

triton.bind({
  modelName: "not-squeezed",
  inputs,
  outputs,
  inferFunc: batch(
    firstValue("t", { squeezeSingleValues: false, strict: false })(({ x, t }) => {
      expectType<ValuesArray<"FP64"> | undefined>()(t);
      return { y: x };
    }),
  ),
});

triton.bind({
  modelName: "context",
  inputs,
  outputs,
  inferFunc: batch(
    groupByValues("t")(
      tritonContext(({ x, tritonContext }) => {
        expectType<ValuesArray<"FP32">>()(x);
        expectType<InferContext>()(tritonContext);
        return { y: x };
      }),
    ),
  ),
});

// Around a plain callback, and around sample.
triton.bind({
  modelName: "requests",
  inputs,
  outputs,
  inferFunc: groupByKeys((requests) =>
    requests.map(({ inputs: { x, t } }) => {
      expectType<ValuesArray<"FP32">>()(x);
      expectType<ValuesArray<"FP64"> | undefined>()(t);
      return { y: x };
    }),
  ),
});
triton.bind({
  modelName: "sample",
  inputs,
  outputs,
  inferFunc: fillOptionals({ t: [1] })(
    sample(({ x, t }) => {
      expectType<ValuesArray<"FP64">>()(t);
      return [x];
    }),
  ),
});

triton.bind({
  modelName: "wrong-output",
  inputs,
  outputs,
  // @ts-expect-error wrong output name
  inferFunc: groupByKeys(batch(firstValue("t")(({ x }) => ({ z: x })))),
});

triton.bind({
  modelName: "wrong-list",
  inputs,
  outputs,
  // @ts-expect-error two outputs of one
  inferFunc: batch(({ x }) => [x, x]),
});

// Methods keep their own types.
class Model {
  @fillOptionals({ t: [0.5] })
  @groupByKeys
  @batch
  @groupByValues("t")
  @firstValue("t")
  @tritonContext
  run({ x }: { readonly x: NdArray<Float32Array>; readonly t: number }): { y: NdArray<Float32Array> } {
    return { y: x };
  }
}
expectType<
  (inputs: { readonly x: NdArray<Float32Array>; readonly t: number }) => { y: NdArray<Float32Array> }
>()(new Model().run);
