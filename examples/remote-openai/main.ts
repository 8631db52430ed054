/*
 * An OpenAI-compatible server behind a model of this server: its streams, its cancellations and its errors. Without
 * OPENAI_BASE_URL, OPENAI_MODEL and OPENAI_API_KEY, a small server in this process is asked.
 */
import { Triton, TritonError } from "@tritonjs/core";
import { textGenerator } from "@tritonjs/llm";
import { remoteOpenAi } from "./remote-openai.js";
import { startUpstream } from "./upstream.js";

const upstream = await startUpstream();
const {
  OPENAI_BASE_URL: baseUrl = upstream.baseUrl,
  OPENAI_MODEL: model = "echo",
  OPENAI_API_KEY: apiKey,
} = process.env;

await using triton = new Triton();
const remote = triton.bind({
  modelName: "remote",
  inferFunc: textGenerator(remoteOpenAi({ baseUrl, model, apiKey }), {
    obeys: ["toolChoice", "responseFormat"],
  }),
  config: { batcher: { defaultQueuePolicy: { maxQueueSize: 100 } } },
});
const busy = triton.bind({
  modelName: "busy",
  inferFunc: textGenerator(remoteOpenAi({ baseUrl: upstream.baseUrl, model: "busy" })),
});
const ask = (content: string) => ({ messages: [JSON.stringify([{ role: "user", content }])] });

const parts: string[] = [];
const request = {
  ...ask("one two three"),
  stream: [true],
  return_finish_reason: [true],
  return_num_output_tokens: [true],
};
for await (const { text_output, finish_reason } of remote.stream(request)) {
  parts.push(finish_reason.text() === "null" ? text_output.text() : finish_reason.text());
}
console.log(`streamed: ${parts.join("|")}`);

for await (const { text_output } of remote.stream({ ...ask("forever and ever"), stream: [true] })) {
  console.log(`read "${text_output.text().trim()}", and left`);
  break;
}

try {
  for await (const _ of busy.stream(ask("hello")));
} catch (error) {
  const { code, message, retryAfterMs } = TritonError.from(error);
  console.log(`${code} ${message}; try again in ${retryAfterMs} ms`);
}

upstream.close();
