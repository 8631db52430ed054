import type { LabelOf, ModelNamed } from "@tritonjs/client";
import { createClient as createGrpcClient } from "@tritonjs/client/grpc";
import { createClient } from "@tritonjs/client/http";
import { batch, sample, Triton } from "@tritonjs/core";

/* Clients that are typed by the handles of a server. Only the types of the server are used. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();
const models = {
  linear: triton.bind({
    modelName: "linear",
    inputs: [
      { name: "x", dtype: "FP32", shape: [3, -1] },
      { name: "mask", dtype: "BOOL", shape: [1], optional: true },
    ],
    outputs: [
      { name: "y", dtype: "FP32", shape: [3, -1] },
      { name: "scores", dtype: "FP64", shape: [2], labels: ["cat", "dog"] },
    ],
    inferFunc: batch(({ x }) => ({ y: x, scores: [[1, 2]] })),
  }),
  // The client knows a model by its name, whatever the key is.
  words: triton.bind({
    modelName: "words-v2",
    inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "words", dtype: "BYTES", shape: [-1] }],
    inferFunc: sample(({ text }) => ({ words: text.text().split(" ") })),
  }),
};

const client = createClient<typeof models>("localhost:8000");
const linear = client.model("linear");
const { y, scores } = await linear.inferSample({ x: [[1], [2], [3]], mask: true });
const [channels, width] = y.shape;
expectType<3>()(channels);
expectType<number>()(width);
expectType<Float64Array>()(scores.data);
const rows = await linear.inferBatch({ x: new Float32Array(6) });
const [rowCount, three] = rows.y.shape;
expectType<number>()(rowCount);
expectType<3>()(three);
const [best] = await linear.classify("scores", { x: [[1], [2], [3]] });
expectType<"cat" | "dog" | undefined>()(best?.label);
expectType<"cat">()("cat" satisfies LabelOf<ModelNamed<typeof models, "linear">, "scores"> as "cat");
// @ts-expect-error: a level of nesting too few
await linear.inferSample({ x: [1, 2, 3] });
// @ts-expect-error: an input that the model does not have
await linear.inferSample({ x: [[1], [2], [3]], z: 1 });
// @ts-expect-error: an output that the model does not have
await linear.classify("score", { x: [[1], [2], [3]] });
// @ts-expect-error: the key of the handle is not the name of the model
client.model("words");
const { words } = await client.model("words-v2").inferSample({ text: "a b" }, { timeoutMs: 100 });
expectType<string[]>()(words.strings());
for await (const part of client.model("words-v2").streamSample({ text: "a" })) part.words.strings();

// A list of handles.
const list = [models.linear, models.words] as const;
const other = createGrpcClient<typeof list>("localhost:8001");
(await other.model("words-v2").inferSample({ text: ["a"] })).words.strings();
// @ts-expect-error: no handle has the name
other.model("linea");

// Without types, any model has tensors of any kind.
const any = createClient("localhost:8000");
(await any.model("m").inferSample({ a: 1, b: "text" })).c?.toArray();
