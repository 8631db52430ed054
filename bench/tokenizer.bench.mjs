/*
 * What does a text cost on its way to tokens: with the bare library, in a worker thread, and on the event loop? One text
 * at a time, and 32 texts that share batches.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Triton } from "@tritonjs/core";
import { tokenizer } from "@tritonjs/llm";
import { rateOf } from "./support/cpu-rate.mjs";
import { short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

// The library is a dependency of the package, not of the workspace.
const { Tokenizer } = createRequire(new URL("../packages/llm/package.json", import.meta.url))(
  "@huggingface/tokenizers",
);
const directory = "packages/llm/test/tokenizer/fixtures/roberta";
const bare = new Tokenizer(JSON.parse(readFileSync(`${directory}/tokenizer.json`, "utf8")), {});
const sentence = "The old man is looking for the unbelievable umbrella in Zürich. ";

const rows = {};
for (const tokens of [16, 128, 512, 8192]) {
  const text = textOf(tokens);
  const row = { "bare library": short((await rateOf(1, () => bare.encode(text))).cpu) };
  for (const isolation of ["inline", "worker"]) {
    const triton = new Triton();
    const model = triton.bind({
      modelName: "tokens",
      inferFunc: tokenizer({ directory }),
      config: { maxBatchSize: 32, instanceGroup: { isolation } },
    });
    const call = () => model.inferSample({ text: [text] });
    for (const clients of [1, 32]) {
      await rateOf(clients, call);
      row[`${isolation}, ${clients} at a time`] = short((await rateOf(clients, call)).cpu);
    }
    await triton.close();
  }
  rows[`${tokens} tokens`] = row;
}
report("tokenizer", {
  rows,
  note: "Milliseconds of the processor for a text. Byte-level BPE with 420 tokens.",
  document: "tokenizer.md",
});

/** A text of about `tokens` tokens. */
function textOf(tokens) {
  let text = sentence;
  while (bare.encode(text).ids.length < tokens) text += sentence;
  return text;
}
