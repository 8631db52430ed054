import { batch, sample, Triton } from "@tritonjs/core";
import { openai } from "@tritonjs/llm/openai";

/*
 * OpenAI's endpoints over a model that writes text and a model for embeddings.
 *
 *   npm start
 */

await using triton = new Triton();
triton.bind({
  modelName: "parrot",
  // A prompt, or the messages of a chat.
  inputs: [
    { name: "text_input", dtype: "BYTES", shape: [1], optional: true },
    { name: "messages", dtype: "BYTES", shape: [1], optional: true },
  ],
  outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
  inferFunc: sample(async function* ({ text_input, messages }) {
    const chat = messages?.json<{ content: string }[]>(0);
    const text = chat?.at(-1)?.content ?? text_input?.text(0) ?? "";
    for (const word of text.split(" ")) yield { text_output: [`${word} `] };
  }),
});
triton.bind({
  modelName: "lengths",
  inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
  inferFunc: batch(({ text }) => ({ embedding: text.strings().map((line) => [line.length, 1]) })),
  config: { maxBatchSize: 16 },
});
const { addresses } = await triton.serve({ frontends: [openai({ port: 0, apiKeys: ["secret"] })] });

/** Calls an endpoint and prints the parts of its answer that match. */
async function call(endpoint: string, parts: RegExp, body?: object, key = "secret"): Promise<void> {
  const answer = await fetch(`${addresses.openai!.url}/v1/${endpoint}`, {
    headers: { authorization: `Bearer ${key}` },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  console.log(`${endpoint} ${answer.status}: ${text.match(parts)?.join(" ") ?? text}`);
}

const messages = [{ role: "user", content: "say this" }];
await call("chat/completions", /"content":"[^"]*"/g, { model: "parrot", messages });
await call("chat/completions", /"content":"[^"]*"/g, { model: "parrot", messages, stream: true });
await call("completions", /"text":"[^"]*"/g, { model: "parrot", prompt: ["one two", "three"] });
await call("responses", /"text":"[^"]*"/g, { model: "parrot", input: "hello" });
await call("embeddings", /"embedding":\[.*?\]/g, { model: "lengths", input: ["one", "three"] });
await call("models", /"id":"[^"]*"/g);
await call("chat/completions", /"message":"[^"]*"/g, { model: "none", messages });
await call("chat/completions", /"code":"[^"]*"/g, { model: "parrot", messages }, "wrong");
