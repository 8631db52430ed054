/* transformers.js behind a model of this server, with the story writer of `examples/text-generation`. */
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { openTransformers } from "./transformers-engine.js";

/** Seen from `dist`. */
const folder = fileURLToPath(new URL("../../text-generation/models/stories/", import.meta.url));
const transformers = await openTransformers({ folder, model: "1" });
const triton = new Triton();
const stories = triton.bind({ modelName: "stories", inferFunc: transformers.inferFunc });

const messages = JSON.stringify([{ role: "user", content: "Tell me a story about a red cat." }]);
const greedy = JSON.stringify({ temperature: 0, max_tokens: 60, stop: "." });
const ask = { messages: [messages], sampling_parameters: [greedy], return_finish_reason: [true] };
for await (const { text_output, finish_reason } of stories.stream(ask)) {
  console.log(`${text_output.text()} (${finish_reason.text()})`);
}

let pieces = 0;
for await (const _ of stories.stream({
  ...ask,
  sampling_parameters: ['{"max_tokens":60}'],
  stream: [true],
})) {
  if (++pieces === 3) break;
}
console.log(`left after ${pieces} pieces`);

await triton.close();
await transformers.close();
