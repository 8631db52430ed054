/* llama.cpp behind models of this server: text, cancellation and embeddings. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { llamacpp } from "@tritonjs/llm";
import { tinyLlama } from "./tiny-llama.js";

const folder = await mkdtemp(join(tmpdir(), "llama-cpp-"));
const file = process.env.GGUF ?? join(folder, "tiny.gguf");
if (process.env.GGUF === undefined) await writeFile(file, tinyLlama());

const triton = new Triton();
const model = triton.bind({ modelName: "llama", inferFunc: llamacpp({ model: file, sequences: 4 }) });
const embed = triton.bind({ modelName: "embed", inferFunc: llamacpp({ model: file, task: "embedding" }) });
const decoder = new TextDecoder();
const textOf = (tensor: { get(index: number): unknown } | undefined) =>
  decoder.decode(tensor!.get(0) as Uint8Array);

const options = JSON.stringify({ max_tokens: 16, temperature: 0, ignore_eos: true });
const ask = {
  text_input: ["once upon a time"],
  sampling_parameters: [options],
  exclude_input_in_output: [true],
};
const wants = { return_finish_reason: [true], return_num_output_tokens: [true] };
for await (const { finish_reason, num_output_tokens } of model.stream({ ...ask, ...wants })) {
  console.log(`${num_output_tokens!.get(0)} tokens, then ${textOf(finish_reason)}`);
}

// Eight texts at a time, four in llama.cpp and four in the queue.
const texts = await Promise.all(
  Array.from({ length: 8 }, async () => {
    for await (const { text_output } of model.stream(ask)) return textOf(text_output);
    return "";
  }),
);
console.log(`${texts.length} texts, ${new Set(texts).size === 1 ? "all equal" : "of different kinds"}`);

const messages = JSON.stringify([{ role: "user", content: "tell me more" }]);
let read = 0;
for await (const _ of model.stream({ messages: [messages], stream: [true] })) {
  if (++read === 3) break;
}
console.log(`left a chat after ${read} pieces`);

const { embedding } = await embed.inferSample({ text_input: ["hello"] });
console.log(`an embedding of ${embedding!.shape.at(-1)} numbers`);

await triton.close();
await rm(folder, { recursive: true });
