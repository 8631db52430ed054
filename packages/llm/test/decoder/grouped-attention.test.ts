import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";
import { UncachedDecoder } from "../support/uncached-decoder.js";

let directory: string;
let oracle: UncachedDecoder;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "grouped-attention-"));
  cpSync(STORIES, directory, { recursive: true });
  cpSync(new URL("../fixtures/gqa.onnx", import.meta.url), join(directory, "model.onnx"));
  const config = JSON.parse(readFileSync(join(STORIES, "config.json"), "utf8"));
  const own = { num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, hidden_size: 32 };
  writeFileSync(join(directory, "config.json"), JSON.stringify({ ...config, ...own }));
  oracle = await UncachedDecoder.open(directory);
});
afterAll(async () => {
  await oracle.release();
  rmSync(directory, { recursive: true, force: true });
});

const PROMPTS = [
  "Once",
  "Once there was a red cat. The cat was called Mia",
  "One day Tom",
  "Once there was a red cat. The cat was sad and",
  "A dog",
];

it.each([{}, { prefillTokens: 4 }, { prefixCache: false, maxRunningRequests: 3 }])(
  "texts of different lengths run together with grouped attention, and stay what they are alone (%j)",
  async (options) => {
    const teller = new StoryTeller({ directory, ...options });
    try {
      const texts = PROMPTS.map((prompt, i) => teller.text({ prompt, sampling: { max_tokens: 8 + 4 * i } }));
      const later = texts[0]!.then(() => teller.text({ prompt: PROMPTS[3]!, sampling: { max_tokens: 12 } }));
      const expected = PROMPTS.map((prompt, i) => oracle.text(prompt, 8 + 4 * i));
      expect(await Promise.all(texts)).toEqual(await Promise.all(expected));
      expect(await later).toBe(await oracle.text(PROMPTS[3]!, 12));
    } finally {
      await teller.close();
    }
  },
);
