/* Tells a text after a prompt, with a directory of prefixes, and how many runs of the graph it took. */
import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";

const [directory, prefixDirectory, prompt, step] = process.argv.slice(2);
const triton = new Triton();
const inferFunc = textGeneration({
  directory,
  prefixDirectory,
  prefillTokens: Number(step),
  intraOpNumThreads: 1,
});
const model = triton.bind({ modelName: "stories", inferFunc });
const sampling_parameters = [JSON.stringify({ max_tokens: 4 })];
let text = "";
for await (const { text_output } of model.stream({
  text_input: [prompt],
  stream: [true],
  sampling_parameters,
}))
  text += text_output.text();
const page = await triton.metrics.metrics();
const runs = Number(/^tritonjs_generation_runs\{[^}]*\} (\S+)/m.exec(page)?.[1]);
await triton.close();
console.log(JSON.stringify({ text, runs }));
