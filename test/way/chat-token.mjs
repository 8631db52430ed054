/*
 * The way of one more token of a streamed chat, from the callback that makes it to the socket: prints the files whose functions
 * it enters, in their order.
 */
import { sample, Triton } from "@tritonjs/core";
import { openai } from "@tritonjs/llm/openai";
import { clientOf, report } from "./measured.mjs";

const triton = new Triton();
let isWanted = () => {};
let waits = () => {};
/** Resolves when the callback waits for the wish for a token. */
const waiting = () =>
  new Promise((resolve) => {
    waits = resolve;
  });
const text = { dtype: "BYTES", shape: [1] };
triton.bind({
  modelName: "words",
  inputs: [
    { name: "messages", ...text, optional: true },
    { name: "text_input", ...text, optional: true },
    { name: "stream", dtype: "BOOL", shape: [1], optional: true },
  ],
  outputs: [{ name: "text_output", ...text }],
  inferFunc: sample(async function* () {
    for (;;) {
      await new Promise((resolve) => {
        isWanted = resolve;
        waits();
      });
      yield { text_output: ["word "] };
    }
  }),
});
const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
const begun = waiting();
const client = clientOf("chat-client.mjs", `${addresses.openai.url}/v1/chat/completions`);
await begun;
const token = async () => {
  const next = waiting();
  const answered = client.answer();
  isWanted();
  await Promise.all([answered, next]);
};
for (let i = 0; i < 50; i++) await token();
await report(token);
await client.end();
process.exit(0);
