import { ModelClient } from "@tritonjs/client/http";
import {
  batch,
  firstValue,
  type InferContext,
  RESCHEDULE,
  sample,
  stepwise,
  Tensor,
  Triton,
  withParameters,
} from "@tritonjs/core";
import type { BytesArray, ValuesArray } from "@tritonjs/core/types";
import ndarray, { type NdArray } from "ndarray";

/* Types are tested by compiling this file: `Expect` fails to compile when the types differ, and so does a `@ts-expect-error` above a correct line. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();

// The parameters of the callback follow from the specifications, through the wrapper, without annotations.
const linear = triton.bind({
  modelName: "linear",
  inputs: [
    { name: "x", dtype: "FP32", shape: [2] },
    { name: "ids", dtype: "INT64", shape: [1] },
    { name: "words", dtype: "BYTES", shape: [-1] },
    { name: "mask", dtype: "BOOL", shape: [2], optional: true },
  ],
  outputs: [
    { name: "y", dtype: "FP32", shape: [3] },
    { name: "label", dtype: "BYTES", shape: [1] },
  ],
  inferFunc: batch(({ x, ids, words, mask }, context) => {
    expectType<ValuesArray<"FP32">>()(x);
    expectType<ValuesArray<"INT64">>()(ids);
    expectType<BytesArray>()(words);
    expectType<ValuesArray<"BOOL"> | undefined>()(mask);
    expectType<InferContext>()(context);
    return { y: ndarray(new Float32Array(3), [1, 3]), label: [["a"]] };
  }),
});

// The same without batching, and with a plain callback.
triton.bind({
  modelName: "sample",
  inputs: [{ name: "x", dtype: "FP64", shape: [2] }],
  outputs: [{ name: "y", dtype: "UINT64", shape: [1] }],
  inferFunc: sample(({ x }) => {
    expectType<ValuesArray<"FP64">>()(x);
    return { y: [1n] };
  }),
});

// Rows may be typed arrays of the data type.
triton.bind({
  modelName: "rows",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
  // @ts-expect-error
  inferFunc: batch(() => ({ y: [new Float64Array(2)] })),
});
triton.bind({
  modelName: "rows",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
  inferFunc: batch(() => ({ y: [new Float32Array(2), new Float32Array(2)] })),
});

triton.bind({
  modelName: "plain",
  inputs: [{ name: "x", dtype: "UINT8", shape: [2] }],
  outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
  inferFunc: async (requests, context) => {
    expectType<AbortSignal>()(context.signal);
    return requests.map(({ inputs, id }) => {
      expectType<ValuesArray<"UINT8">>()(inputs.x);
      expectType<string>()(id);
      return id === "" ? new Error("no id") : { y: new Int32Array(1) };
    });
  },
});

// One function for each instance.
triton.bind({
  modelName: "list",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: [batch(({ x }) => ({ y: x })), batch(({ x }) => ({ y: x }))],
});

// Results of the handle.
const { y, label } = await linear.infer({ x: [[1, 2]], ids: [[1n]], words: [["a"]] });
expectType<ValuesArray<"FP32">>()(y);
expectType<BytesArray>()(label);

// @ts-expect-error a required input is missing
await linear.infer({ x: [[1, 2]], ids: [[1n]] });
// @ts-expect-error an input that the model does not have
await linear.infer({ x: [[1, 2]], ids: [[1n]], words: [["a"]], extra: [1] });
// @ts-expect-error wrong element type
await linear.infer({ x: new Float64Array(2), ids: [[1n]], words: [["a"]] });

triton.bind({
  modelName: "wrong-name",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [3] }],
  // @ts-expect-error wrong output name
  inferFunc: batch(({ x }) => ({ z: x })),
});

// A function must not return an output that the model does not have, whatever form it has.
const plain = {
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
} as const;
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: batch(({ x }) => ({ y: x, z: x })),
});
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: sample(async ({ x }) => {
    const outputs = { y: x, z: x };
    return outputs;
  }),
});
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: batch(async function* ({ x }) {
    yield { y: x, z: x };
  }),
});
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: batch(firstValue("x")(({ x }) => ({ y: [x], z: x }))),
});
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x, z: inputs.x })),
});
triton.bind({
  ...plain,
  modelName: "extra",
  // @ts-expect-error the model has no output z
  inferFunc: [batch(({ x }) => ({ y: x })), batch(({ x }) => ({ y: x, z: x }))],
});
triton.bind({
  ...plain,
  modelName: "extra",
  inferFunc: stepwise({
    start: ({ x }) => x,
    // @ts-expect-error the model has no output z
    step: (active) => active.map((x) => ({ y: x, z: x })),
  }),
});
// Parameters of a response are not outputs, and requests may fail or come back.
triton.bind({
  ...plain,
  modelName: "more",
  inferFunc: [
    batch(({ x }) => withParameters({ y: x }, { tokens: 3 })),
    batch(({ x }) => [x]),
    (requests) =>
      requests.map(({ id, inputs }) =>
        id === "" ? RESCHEDULE : id === "a" ? new Error("a") : { y: inputs.x },
      ),
  ],
});
declare const either: URL | typeof plainFunc;
const plainFunc = batch<typeof plain.inputs, typeof plain.outputs>(({ x }) => ({ y: x }));
triton.bind({ ...plain, modelName: "either", inferFunc: either });

// A tensor of the library is a value too.
const tensorInput = triton.bind({ ...plain, modelName: "tensor", inferFunc: plainFunc });
await tensorInput.infer({ x: Tensor.fromElements("FP32", [1, 2], new Float32Array(2)) });

triton.bind({
  modelName: "wrong-type",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "INT64", shape: [3] }],
  // @ts-expect-error a Float32Array is no INT64
  inferFunc: batch(({ x }) => ({ y: x })),
});

triton.bind({
  modelName: "wrong-input",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
  // @ts-expect-error there is no input of that name
  inferFunc: batch(({ nope }) => ({ y: nope })),
});

// Decorated methods are bound to their object.
class Model {
  readonly factor = 2;

  @batch
  run({ x }: { readonly x: NdArray<Float32Array> }): { y: NdArray<Float32Array> } {
    return {
      y: ndarray(
        x.data.map((value) => value * this.factor),
        x.shape,
      ),
    };
  }
}

triton.bind({
  modelName: "decorated",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
  inferFunc: new Model().run,
});

// BYTES as text and as JSON, in callbacks and in results. Inputs and outputs take strings, bytes and plain objects.
interface Question {
  readonly text: string;
  readonly tags: readonly string[];
}
const asked: Question = { text: "hi", tags: [] };
const chat = triton.bind({
  modelName: "chat",
  inputs: [
    { name: "question", dtype: "BYTES", shape: [1] },
    { name: "prompt", dtype: "BYTES", shape: [1] },
  ],
  outputs: [
    { name: "answer", dtype: "BYTES", shape: [1] },
    { name: "details", dtype: "BYTES", shape: [1] },
  ],
  inferFunc: batch(({ question, prompt }) => {
    expectType<Question[]>()(question.jsonValues<Question>());
    expectType<string>()(prompt.pick(0, null).text());
    return { answer: prompt.strings(), details: question.jsonValues<Question>() };
  }),
});
const said = await chat.inferSample({ question: asked, prompt: "be brief" });
expectType<string>()(said.answer.text());
expectType<Question>()(said.details.json<Question>());
await chat.inferBatch({ question: [asked, { text: "ho", tags: [] }], prompt: [["a"], [new Uint8Array(1)]] });
await chat.inferSample({ question: { anything: [1, { nested: true }] }, prompt: "be brief" });
// @ts-expect-error a number is not an element of BYTES
await chat.inferSample({ question: 1, prompt: "be brief" });
// @ts-expect-error numbers are not elements of BYTES
await chat.inferSample({ question: new Float32Array(1), prompt: "be brief" });
// @ts-expect-error neither is an ndarray of numbers
await chat.inferSample({ question: ndarray(new Float32Array(1)), prompt: "be brief" });
// @ts-expect-error a map is not a plain object
await chat.inferSample({ question: new Map(), prompt: "be brief" });
// @ts-expect-error only BYTES are text
y.text();

// Tensors without names get those of their positions, and callbacks may return a list.
const unnamed = triton.bind({
  modelName: "unnamed",
  inputs: [
    { dtype: "FP32", shape: [2] },
    { dtype: "BYTES", shape: [-1] },
  ],
  outputs: [
    { dtype: "FP32", shape: [3] },
    { dtype: "INT64", shape: [1] },
  ],
  inferFunc: batch(({ INPUT_1, INPUT_2 }) => {
    expectType<ValuesArray<"FP32">>()(INPUT_1);
    expectType<BytesArray>()(INPUT_2);
    return [ndarray(new Float32Array(3), [1, 3]), [[1n]]];
  }),
});
const positioned = await unnamed.inferBatch(new Float32Array(2), [["a"]]);
expectType<ValuesArray<"FP32">>()(positioned.OUTPUT_1);
expectType<ValuesArray<"INT64">>()(positioned.OUTPUT_2);
await unnamed.infer([[1, 2]], [["a"]], { timeoutMs: 100 });
await unnamed.inferSample(ndarray(new Float32Array(2)), "a");
await unnamed.inferSample({ INPUT_1: [1, 2], INPUT_2: "a" }, { id: "1" });
for await (const { OUTPUT_1 } of unnamed.stream([[1, 2]], ["a"])) expectType<ValuesArray<"FP32">>()(OUTPUT_1);
// @ts-expect-error one tensor of two
await unnamed.inferSample([1, 2]);
// @ts-expect-error three tensors of two
await unnamed.inferSample([1, 2], "a", "b");
// @ts-expect-error a wrong type at the second position
await unnamed.inferSample([1, 2], 3);
// @ts-expect-error there is no third output
positioned.OUTPUT_3;

triton.bind({
  modelName: "unnamed-plain",
  inputs: [{ dtype: "UINT8", shape: [2] }],
  outputs: [{ dtype: "INT32", shape: [1] }],
  inferFunc: (requests) =>
    requests.map(({ inputs }) => {
      expectType<ValuesArray<"UINT8">>()(inputs.INPUT_1);
      return [new Int32Array(1)];
    }),
});
triton.bind({
  modelName: "unnamed-outputs",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ dtype: "FP32", shape: [2] }],
  inferFunc: [sample(({ x }) => [x]), sample(({ x }) => ({ OUTPUT_1: x }))],
});
triton.bind({
  modelName: "wrong-list",
  inputs: [{ dtype: "FP32", shape: [2] }],
  outputs: [{ dtype: "FP32", shape: [2] }],
  // @ts-expect-error two outputs of one
  inferFunc: batch(({ INPUT_1 }) => [INPUT_1, INPUT_1]),
});
triton.bind({
  modelName: "wrong-position",
  inputs: [{ dtype: "FP32", shape: [2] }],
  outputs: [{ dtype: "FP32", shape: [2] }],
  // @ts-expect-error there is no second input
  inferFunc: batch(({ INPUT_2 }) => [INPUT_2]),
});
triton.bind({
  modelName: "some-names",
  // @ts-expect-error a name for one input and none for the other
  inputs: [
    { name: "x", dtype: "FP32", shape: [2] },
    { dtype: "FP32", shape: [2] },
  ],
  outputs: [{ dtype: "FP32", shape: [2] }],
  inferFunc: batch(() => [[[1, 2]]]),
});

// Named tensors by position too. Inputs at the end may be left out if they are optional.
await linear.inferSample([1, 2], [1n], ["a"]);
await linear.inferSample([1, 2], [1n], ["a"], [true, false], { id: "1" });
await linear.inferSample([1, 2], [1n], ["a"], undefined, { id: "1" });
const client = new ModelClient("localhost:8000", "linear");
await client.inferBatch(new Float32Array(2), { timeoutMs: 100, headers: {} });
await client.inferSample([1, 2], ndarray(new Float32Array(2)));
const typedClient = new ModelClient<
  [{ name: "text"; dtype: "BYTES"; shape: [1] }],
  [{ name: "score"; dtype: "FP32"; shape: [1] }]
>("localhost:8000", "score");
expectType<ValuesArray<"FP32">>()((await typedClient.inferSample("hello")).score);
// @ts-expect-error an input that the model does not have
await typedClient.inferSample({ txt: "hello" });

// Methods of models without names.
class Positioned {
  @batch
  run({ INPUT_1 }: { readonly INPUT_1: NdArray<Float32Array> }): readonly [NdArray<Float32Array>] {
    return [INPUT_1];
  }
}
triton.bind({
  modelName: "unnamed-method",
  inputs: [{ dtype: "FP32", shape: [2] }],
  outputs: [{ dtype: "FP32", shape: [2] }],
  inferFunc: new Positioned().run,
});
