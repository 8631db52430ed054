/*
 * How often the semantic cache of the OpenAI endpoints answers, and how often wrongly, by its threshold: each question
 * of the labelled set is asked once, and the model answers with its label.
 */
import { Triton } from "@tritonjs/core";
import { textGenerator } from "@tritonjs/llm";
import { openAiFetchHandler } from "@tritonjs/llm/openai";
import { bindEncoder } from "./encoder.js";
import { labelledQuestions } from "./paraphrases.js";

const questions = labelledQuestions();
const labels = new Map(questions.map(({ text, label }) => [text, label]));

const triton = new Triton();
const { embed } = bindEncoder(triton);
triton.bind({
  modelName: "oracle",
  inferFunc: textGenerator(({ messages }) => labels.get(String(messages?.at(-1)?.content)) ?? "unknown"),
});
await triton.ready();

const repeated = questions.length - new Set(questions.map(({ label }) => label)).size;
console.log(`${questions.length} questions, ${repeated} of them with an earlier one of the same answer`);
console.log("exact terms  threshold  right hits  wrong hits  wrong of all hits");
for (const [exactTerms, threshold] of [false, true].flatMap((exact) =>
  [0.6, 0.7, 0.8, 0.9, 0.95].map((one) => [exact, one] as const),
)) {
  const semanticCache = { model: embed.name, threshold, exactTerms };
  const handler = openAiFetchHandler(triton, { semanticCache });
  let right = 0;
  let wrong = 0;
  for (const { text, label } of questions) {
    const body = JSON.stringify({
      model: "oracle",
      temperature: 0,
      messages: [{ role: "user", content: text }],
    });
    const request = new Request("http://localhost/v1/chat/completions", { method: "POST", body });
    const response = await handler(request);
    if (response.headers.get("x-semantic-cache") !== "hit") continue;
    const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
    if (choices[0].message.content === label) right++;
    else wrong++;
  }
  const shares = [right / repeated, wrong / questions.length, wrong / Math.max(1, right + wrong)];
  console.log(
    `${exactTerms}  ${threshold}  ${shares.map((share) => `${(100 * share).toFixed(1)}%`).join("  ")}`,
  );
}
await triton.close();
