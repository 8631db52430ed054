import { Triton } from "@tritonjs/core";
import type { TypedBackend } from "@tritonjs/core/backend";
import type { BytesArray, ValuesArray } from "@tritonjs/core/types";
import { type ChatMessage, type ChatTool, type SamplingParameters, textGenerator } from "@tritonjs/llm";

/* Types are tested by compiling this file: see bind.types.ts. */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const expectType =
  <Expected>() =>
  <Actual>(_actual: Actual & (Equal<Actual, Expected> extends true ? unknown : never)) => {};

const triton = new Triton();

// The parameters of the callback and the tensors of the handle are inferred: no specifications, no annotations.
const handle = triton.bind({
  modelName: "text",
  inferFunc: textGenerator(async function* ({ messages, prompt, sampling, tools }, context) {
    expectType<readonly ChatMessage[] | undefined>()(messages);
    expectType<string | undefined>()(prompt);
    expectType<SamplingParameters>()(sampling);
    expectType<readonly ChatTool[] | undefined>()(tools);
    expectType<AbortSignal>()(context.signal);
    expectType<string>()(context.request.id);
    yield "text";
    yield { text: "more", tokens: 2, finishReason: "length" };
    yield { toolCall: { name: "clock", arguments: { zone: "UTC" } } };
    yield { usage: { promptTokens: 1 } };
  }),
  config: { batcher: { priorityLevels: 2, defaultPriorityLevel: 1 } },
});
for await (const { text_output, num_output_tokens } of handle.stream({ text_input: ["a"], stream: [true] })) {
  expectType<BytesArray>()(text_output);
  expectType<ValuesArray<"UINT32">>()(num_output_tokens);
}
// @ts-expect-error an input that a text model does not have
handle.stream({ text: ["a"] });

// A function of one answer.
textGenerator(({ prompt }) => `${prompt}`);
textGenerator(async ({ prompt }) => ({ text: `${prompt}`, finishReason: "stop" }));
textGenerator(() => ["a", "b"]);

// @ts-expect-error a piece that is not text
textGenerator(async function* () {
  yield 5;
});
// @ts-expect-error a reason that does not exist
textGenerator(() => ({ text: "", finishReason: "done" }));

// Any backend may bring the types of its tensors.
declare const scorer: TypedBackend<
  readonly [{ readonly name: "x"; readonly dtype: "FP32"; readonly shape: readonly [2] }],
  readonly [{ readonly name: "score"; readonly dtype: "FP64"; readonly shape: readonly [1] }]
>;
const { score } = await triton.bind({ modelName: "score", inferFunc: scorer }).infer({ x: [1, 2] });
expectType<ValuesArray<"FP64">>()(score);
