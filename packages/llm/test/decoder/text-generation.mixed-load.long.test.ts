import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Program } from "../../../../test/support/program.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { BLOCK_TOKENS } from "../../src/decoder/kept-prefixes.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";
import { UncachedDecoder } from "../support/uncached-decoder.js";

const STARTS = [
  "Once there was a red cat.",
  "Once there was a red dog. The dog was called Mia",
  "Once there was a red dog. The dog was called Ben and lived in the café.",
  "One day Tom",
  "☀",
  "Then a rabbit came and found the cake. Zoë and the rabbit were friends",
];

let oracle: UncachedDecoder;
beforeAll(async () => {
  oracle = await UncachedDecoder.open(STORIES);
});
afterAll(() => oracle.release());

/** A number of seeds that the long layer tries: `MIXED_LOAD_SEEDS`. */
const seeds = Array.from({ length: Number(process.env.MIXED_LOAD_SEEDS ?? 12) }, (_, i) => i + 1);

it.each(seeds)(
  "any mix of requests, cancellations and limits writes what a plain loop writes (seed %i)",
  async (seed) => {
    const random = new SeededRandom(seed);
    const one = <T>(values: readonly T[]) => values[random.below(values.length)]!;
    const options = {
      maxRunningRequests: one([1, 3, 8, 32]),
      kvCacheBytes: 1024 * one([130, 200, 400, 4000]),
      prefillTokens: one([1, 4, 16, 256]),
      prefixCache: random.chance(0.7),
    };
    const teller = new StoryTeller(options);
    try {
      const request = async () => {
        const prompt = one(STARTS) + (random.chance(0.5) ? one(STARTS) : "");
        const max_tokens = 1 + random.below(30);
        const stream = random.chance(0.6);
        const leavesAfter = random.chance(0.25) ? random.below(5) : Number.POSITIVE_INFINITY;
        const pauses = random.chance(0.2);
        for (let turns = random.below(8); turns > 0; turns--)
          await new Promise((done) => setTimeout(done, 1));
        let text = "";
        let count = 0;
        for await (const piece of teller.pieces({ prompt, stream, sampling: { max_tokens } })) {
          text += piece.text;
          if (count++ >= leavesAfter) return;
          if (pauses) await new Promise((done) => setTimeout(done, 2));
        }
        expect(text).toBe(await oracle.text(prompt, max_tokens));
      };
      await Promise.all(Array.from({ length: 24 }, request));
      await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(0);
    } finally {
      await teller.close();
    }
  },
);

describe("a directory of prefixes", () => {
  const STEP = 16;
  const PROMPT = "Once there was a red dog who lived in a big house with Tom and Mia. ".repeat(12);
  const REST = Math.ceil(BLOCK_TOKENS / STEP);

  it("is shared by servers that compute the same prompts at once, and by a process beside them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "prefixes-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const warnings: string[] = [];
    const options = {
      prefixDirectory: folder,
      prefillTokens: STEP,
      onWarning: (text: string) => void warnings.push(text),
    };
    const prompts = ["A cat. ", "A dog. ", "A bird. "].map((begin) => begin + PROMPT);
    const told = await Promise.all(
      [1, 2].map(async () => {
        const teller = new StoryTeller(options);
        const texts = prompts.map((prompt) => teller.text({ prompt, sampling: { max_tokens: 4 } }));
        return await Promise.all(texts).finally(() => teller.close());
      }),
    );
    expect(told[0]).toEqual(told[1]);
    const written = readdirSync(folder).sort();
    expect(written.every((name) => name.endsWith(".kv"))).toBe(true);
    const program = fileURLToPath(new URL("../support/tell-text.mjs", import.meta.url));
    const { stdout, stderr, code } = await Program.node(
      program,
      [STORIES, folder, prompts[1]!, String(STEP)],
      folder,
    ).ended;
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    const { text, runs } = JSON.parse(stdout);
    expect(text).toBe(told[0]![1]);
    expect(runs).toBeLessThanOrEqual(REST + 3);
    expect(readdirSync(folder).sort()).toEqual(written);
    expect(warnings).toEqual([]);
  });
});
