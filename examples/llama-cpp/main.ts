/* llama.cpp behind models of this server: text, cancellation and embeddings. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { openLlama } from "./llama-engine.js";
import { tinyLlama } from "./tiny-llama.js";

const folder = await mkdtemp(join(tmpdir(), "llama-cpp-"));
const modelPath = process.env.GGUF ?? join(folder, "tiny.gguf");
if (process.env.GGUF === undefined) await writeFile(modelPath, tinyLlama());

const llama = await openLlama({ modelPath });
const triton = new Triton();
const model = triton.bind({ modelName: "llama", inferFunc: llama.generate });
const embed = triton.bind({ modelName: "embed", inferFunc: llama.embed });

const options = JSON.stringify({ max_tokens: 16, temperature: 0, seed: 1 });
const ask = {
  text_input: ["once upon a time"],
  sampling_parameters: [options],
  exclude_input_in_output: [true],
};
const wants = { return_finish_reason: [true], return_num_output_tokens: [true] };
for await (const { finish_reason, num_output_tokens } of model.stream({ ...ask, ...wants })) {
  console.log(`${num_output_tokens.get(0)} tokens, then ${finish_reason.text()}`);
}

// Eight texts at a time, four in llama.cpp and four in the queue.
const texts = await Promise.all(
  Array.from({ length: 8 }, async () => {
    for await (const { text_output } of model.stream(ask)) return text_output.text();
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
console.log(`an embedding of ${embedding.data.length} numbers`);

await triton.close();
await llama.close();
await rm(folder, { recursive: true });
