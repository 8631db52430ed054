import { Triton } from "@tritonjs/core";
import type { BytesArray } from "@tritonjs/core/types";
import type { NdArray } from "ndarray";

/* Types of `triton.infer` for models that `typed-models.d.ts` adds to `TritonModels`; tested by compiling. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();

// A model of the repository: outputs by name, each with its element type.
const { label } = await triton.infer("typed_resnet", { image: new Float32Array(3) });
expectType<BytesArray>()(label);
await triton.infer("typed_resnet", { image: new Float32Array(3), "size-hint": new BigInt64Array(2) });
const { y } = await triton.infer("typed_source", {});
expectType<NdArray<Uint16Array>>()(y);

// @ts-expect-error: an input that the model does not have
await triton.infer("typed_resnet", { picture: new Float32Array(3) });
// @ts-expect-error: an input that is not optional is missing
await triton.infer("typed_resnet", {});
// @ts-expect-error: FP32 is no array of strings
await triton.infer("typed_resnet", { image: ["a"] });
const typed = await triton.infer("typed_resnet", { image: new Float32Array(3) });
// @ts-expect-error: an output that the model does not have
typed.score;

// Any other name, and a name that is known only at run time, accepts and returns tensors of any kind.
const untyped = await triton.infer("another", { anything: [1, 2, 3] });
untyped.something?.shape;
const name: string = "typed_resnet";
const dynamic = await triton.infer(name, { anything: [1] }, { modelVersion: 2 });
dynamic.something?.shape;
