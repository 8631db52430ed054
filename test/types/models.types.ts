import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type ModelHandle, type TensorSpec, Triton } from "@tritonjs/core";
import type { BytesArray, ValuesArray } from "@tritonjs/core/types";

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
await triton.infer("typed_resnet", { image: [new Float32Array(3)] });
const { y } = await triton.infer("typed_source", {});
expectType<ValuesArray<"BF16">>()(y);

// @ts-expect-error: an input that the model does not have
await triton.infer("typed_resnet", { picture: new Float32Array(3) });
// @ts-expect-error: an input that is not optional is missing
await triton.infer("typed_resnet", {});
// @ts-expect-error: FP32 is not an array of strings
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

// A bound model file: its handle is typed by the name of the model.
const resnet = triton.bind({ modelName: "typed_resnet", inferFunc: onnxruntime({ model: "resnet.onnx" }) });
const bound = await resnet.inferSample({ image: new Float32Array(3), "size-hint": [1n, 2n] });
expectType<BytesArray>()(bound.label);
expectType<string>()(bound.label.text());
// @ts-expect-error: an input that the model does not have
await resnet.inferSample({ picture: new Float32Array(3) });
// @ts-expect-error: INT64 is a BigInt64Array
await resnet.inferSample({ image: new Float32Array(3), "size-hint": new Int32Array(2) });
// @ts-expect-error: an output that the model does not have
bound.score;

// Specifications that are given come first, and a name that is not listed has any tensors.
const given = triton.bind({
  modelName: "typed_resnet",
  modelVersion: 2,
  inputs: [{ name: "a", dtype: "FP64", shape: [1] }],
  outputs: [{ name: "b", dtype: "FP32", shape: [1] }],
  inferFunc: new URL("file:///model.mjs"),
});
expectType<ValuesArray<"FP32">>()((await given.inferSample({ a: 1 })).b);
const unlisted = triton.bind({ modelName: "unlisted", inferFunc: onnxruntime({ model: "m.onnx" }) });
expectType<ModelHandle<readonly TensorSpec[], readonly TensorSpec[], "unlisted">>()(unlisted);
const unknownName = triton.bind({ modelName: name, inferFunc: onnxruntime({ model: "m.onnx" }) });
expectType<ModelHandle<readonly TensorSpec[], readonly TensorSpec[]>>()(unknownName);
