import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PromptLookup } from "../../src/decoder/running-text.js";
import { type CopyWish, copyTexts } from "../support/copying-graph.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller, type Wish } from "../support/story-teller.js";

describe("a guess", () => {
  it("is what followed the last three tokens before", () => {
    const lookup = new PromptLookup(4);
    expect(lookup.guess([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3], 10)).toEqual([4, 5, 6, 7]);
    expect(lookup.guess([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 9], 10)).toEqual([]);
    expect(new PromptLookup(4).guess([1, 2, 3, 4, 5, 1, 2, 3], 2)).toEqual([4, 5]);
    expect(new PromptLookup(4).guess([1, 2, 3, 4, 5, 1, 2, 3], 0)).toEqual([]);
    expect(new PromptLookup(4).guess([1, 2], 4)).toEqual([]);
    expect(new PromptLookup(4).guess([2, 3, 4, 5, 1, 2, 3], 2)).toEqual([4, 5]);
  });

  it("takes the last place where the tokens have occurred", () => {
    expect(new PromptLookup(2).guess([1, 2, 3, 7, 7, 1, 2, 3, 8, 8, 1, 2, 3], 9)).toEqual([8, 8]);
  });

  it("continues a text that repeats itself beyond its end", () => {
    expect(new PromptLookup(7).guess([1, 2, 3, 1, 2, 3], 9)).toEqual([1, 2, 3, 1, 2, 3, 1]);
    expect(new PromptLookup(5).guess([9, 9, 9, 9], 9)).toEqual([9, 9, 9, 9, 9]);
  });

  it("grows while it is right, shrinks when it is wrong, and pauses when none of it was right", () => {
    const lookup = new PromptLookup(8);
    const text = [...Array(20).keys(), ...Array(3).keys()];
    const next = () => lookup.guess(text, 20).length;
    expect(next()).toBe(8);
    lookup.learn(8, 3);
    expect(next()).toBe(4);
    lookup.learn(4, 4);
    expect(next()).toBe(8);
    lookup.learn(8, 0);
    expect([next(), next(), next(), next(), next()]).toEqual([0, 0, 0, 0, 2]);
  });
});

let grouped: string;
beforeAll(() => {
  grouped = mkdtempSync(join(tmpdir(), "prompt-lookup-"));
  cpSync(STORIES, grouped, { recursive: true });
  cpSync(new URL("../fixtures/gqa.onnx", import.meta.url), join(grouped, "model.onnx"));
  const config = JSON.parse(readFileSync(join(STORIES, "config.json"), "utf8"));
  const own = { num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, hidden_size: 32 };
  writeFileSync(join(grouped, "config.json"), JSON.stringify({ ...config, ...own }));
});
afterAll(() => rmSync(grouped, { recursive: true, force: true }));

/** Tokens in which no two follow each other twice. */
const PASSAGE = Array.from({ length: 50 }, (_, i) => (i * 7) % 50);

/** Texts that copy a passage of their prompt, and others. */
const COPIES: readonly CopyWish[] = [
  { prompt: [...PASSAGE, 51, 0, 7], maxTokens: 48 },
  { prompt: [53, ...PASSAGE, 52, 21, 28], maxTokens: 40 },
  { prompt: [55, 56, ...PASSAGE.slice(10), 58, 20, 27, 34], maxTokens: 36 },
];
const OTHERS: readonly CopyWish[] = [
  { prompt: [1, 2, 3, 4], maxTokens: 60 },
  { prompt: [9], maxTokens: 45, sampling: { temperature: 0.8, seed: 5 } },
  { prompt: [...PASSAGE, 51, 0, 7], maxTokens: 70, sampling: { temperature: 1.5, seed: 6, topK: 9 } },
  { prompt: [...PASSAGE, 51, 0, 7], maxTokens: 50, sampling: { frequencyPenalty: 1.5 } },
  { prompt: [5, 5, 5, 5, 5, 5], maxTokens: 64 },
];

describe.each(["all", "prompts", "none"] as const)("texts on a graph that pads %s", (pads) => {
  it("are what they are without guesses, together and alone", async () => {
    const wishes = [...COPIES, ...OTHERS];
    const limits = [{}, { prefillTokens: 16 }, { kvTokens: 400 }, { contextLength: 123 }];
    for (const [i, limit] of limits.entries()) {
      const plain = await copyTexts(wishes, 0, { pads, ...limit });
      for (const length of i === 0 ? [1, 3, 8] : [3]) {
        expect((await copyTexts(wishes, length, { pads, ...limit })).texts).toEqual(plain.texts);
      }
    }
    for (const wish of wishes) {
      expect((await copyTexts([wish], 8, { pads })).texts).toEqual(
        (await copyTexts([wish], 0, { pads })).texts,
      );
    }
  });

  it("take a third of the runs where they copy, and hardly more elsewhere", async () => {
    const plain = await copyTexts(COPIES, 0, { pads });
    const guessed = await copyTexts(COPIES, 10, { pads });
    expect(plain.runs / guessed.runs).toBeGreaterThan(3);
    const free = OTHERS.slice(0, 2);
    const [alone, tried] = [await copyTexts(free, 0, { pads }), await copyTexts(free, 10, { pads })];
    expect(tried.runs).toBeLessThanOrEqual(alone.runs);
    expect(tried.columns / alone.columns).toBeLessThan(1.5);
  });
});

it.each([0, 3])(
  "texts are the same when their keys are written in place, with guesses of %i tokens",
  async (length) => {
    for (const others of [{}, { prefillTokens: 16 }, { kvTokens: 400 }, { contextLength: 123 }]) {
      const limits = { pads: "prompts" as const, ...others };
      const { texts } = await copyTexts([...COPIES, ...OTHERS], length, limits);
      const inPlace = await copyTexts([...COPIES, ...OTHERS], length, { ...limits, inPlace: true });
      expect(inPlace.texts).toEqual(texts);
    }
  },
);

const FREE: readonly Wish[] = [
  { prompt: "Once there was a red cat. The cat was called", sampling: { max_tokens: 40 } },
  { prompt: "Once", sampling: { max_tokens: 30, ignore_eos: true } },
  { prompt: "A dog and a dog and a dog and a", sampling: { max_tokens: 25, logprobs: 2 } },
  { prompt: "Then a dog came.", sampling: { max_tokens: 30, temperature: 0.9, seed: 7, ignore_eos: true } },
  {
    prompt: "Then a cat",
    sampling: { max_tokens: 30, temperature: 1.2, top_k: 8, seed: -3, presence_penalty: 0.4 },
  },
  { prompt: "One day Tom", sampling: { max_tokens: 40, stop: ["sad", "happy"], min_tokens: 10 } },
];

/** The texts of some wishes, together or one after the other, and the runs of the graph that they took. */
async function textsOf(
  options: ConstructorParameters<typeof StoryTeller>[0],
  wishes: readonly Wish[],
  together: boolean,
) {
  const teller = new StoryTeller(options);
  try {
    const pieces = [];
    if (together) pieces.push(...(await Promise.all(wishes.map((wish) => teller.all(wish)))));
    else for (const wish of wishes) pieces.push(await teller.all(wish));
    const texts = pieces.map((all) => ({
      text: all.map(({ text }) => text).join(""),
      finish: all.at(-1)!.finish,
      tokens: all.reduce((sum, { tokens }) => sum + tokens!, 0),
    }));
    const page = await teller.triton.metrics.metrics();
    return { texts, runs: Number(/^tritonjs_generation_runs\{.*\} (\d+)$/m.exec(page)![1]) };
  } finally {
    await teller.close();
  }
}

let usual: ReturnType<typeof textsOf> | undefined;

/** The texts of the model as it is, which are generated once. */
function usualTexts() {
  usual ??= textsOf({}, FREE, true);
  return usual;
}

describe.each(["attention of the graph", "grouped attention"])(
  "texts with prompt lookup, with %s",
  (kind) => {
    const base = () => (kind === "grouped attention" ? { directory: grouped, contextLength: 128 } : {});

    it("are what they are without it, alone and together", async () => {
      const plain = await (kind === "grouped attention" ? textsOf(base(), FREE, true) : usualTexts());
      // On one graph alone: the other has the same schedule.
      for (const together of kind === "grouped attention" ? [true] : [true, false]) {
        const guessed = await textsOf({ ...base(), promptLookupTokens: 7 }, FREE, together);
        expect(guessed.texts).toEqual(plain.texts);
      }
    });
  },
);

it("texts may fill the context and the space for keys and values", async () => {
  const wishes = FREE.slice(0, 3).map((wish) => ({
    ...wish,
    sampling: { ignore_eos: true, max_tokens: 40 },
  }));
  const options = { directory: grouped, contextLength: 72, kvCacheBytes: 72 * 1024 };
  const plain = await textsOf(options, wishes, true);
  const guessed = await textsOf({ ...options, promptLookupTokens: 16 }, wishes, true);
  expect(guessed.texts).toEqual(plain.texts);
});

it("a client that leaves in the middle of a guess disturbs no other text", async () => {
  const teller = new StoryTeller({ promptLookupTokens: 10 });
  try {
    const plain = await usualTexts();
    const left = (async () => {
      for await (const _ of teller.pieces(FREE[1]!)) break;
    })();
    const text = await teller.text(FREE[0]!);
    await left;
    expect(text).toBe(plain.texts[0]!.text);
  } finally {
    await teller.close();
  }
});

it("invalid lengths of guesses are refused", () => {
  expect(() => new StoryTeller({ promptLookupTokens: 65 })).toThrow(
    "promptLookupTokens: expected an integer from 0 to 64, got 65",
  );
  expect(() => new StoryTeller({ promptLookupTokens: 4, batchInvariant: true })).toThrow(
    "promptLookupTokens: expected 0 with batchInvariant, because guessed tokens share the run of a text",
  );
});
