import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** The highest sum of scores of pieces that make a text, by the best sum of each beginning of it. */
function bestScore(letters: string, scores: ReadonlyMap<string, number>): number {
  const best = [0];
  for (let end = 1; end <= letters.length; end++) {
    const sums = best.map(
      (sum, begin) => sum + (scores.get(letters.slice(begin, end)) ?? Number.NEGATIVE_INFINITY),
    );
    best.push(Math.max(...sums));
  }
  return best.at(-1)!;
}

/** Runs an example to its end and compares its output with its README. */
async function run(example: string, ...options: string[]): Promise<void> {
  const program = Program.node(join(exampleFolder(example), "dist", "main.js"), options, repositoryRoot);
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(example));
}

describe("the examples of text models", () => {
  it("retrieval finds articles by their meaning, with one run for all articles", () => run("retrieval"));

  it("retrieval cuts texts into the pieces of the highest score", async () => {
    const folder = exampleFolder("retrieval");
    const { sentenceTokenizer } = await import(join(folder, "dist", "sentence-tokenizer.js"));
    const network = join(folder, "node_modules", "@energetic-ai", "model-embeddings-en", "dist");
    // Some pieces of the file have no score, which counts as 0.
    const read: [string, number | null][] = JSON.parse(readFileSync(join(network, "vocab.json"), "utf8"));
    const vocabulary = read.map(([piece, score]): [string, number] => [piece, score ?? 0]);
    const tokensOf: (text: string) => number[] = sentenceTokenizer(vocabulary);
    // The numbers that the documentation of the Universal Sentence Encoder gives.
    expect(tokensOf("Hello, how are you?")).toEqual([341, 4125, 8, 140, 31, 19, 54]);
    // Unknown letters, and a reserved piece that the text spells.
    expect(tokensOf("日本").slice(-1)).toEqual([0]);
    expect(tokensOf("<s>").some((token) => token > 0 && token < 6)).toBe(false);
    const pieces = vocabulary.slice(6);
    const scores = new Map(pieces);
    const word = fc.constantFrom(
      ...pieces.map(([piece]) => piece.replace("▁", "")).filter((word) => word !== ""),
    );
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (words) => {
        const tokens = tokensOf(words.join(" "));
        const letters = `▁${words.join(" ").normalize("NFKC").replaceAll(" ", "▁")}`;
        expect(tokens.map((token) => vocabulary[token]![0]).join("")).toBe(letters);
        const score = tokens.reduce((sum, token) => sum + vocabulary[token]![1], 0);
        expect(score).toBeCloseTo(bestScore(letters, scores), 6);
      }),
    );
  });

  it("remote-openai streams from another server, cancels there, and passes its errors on", () =>
    run("remote-openai"));

  it("chat-page answers the question of its page", () => run("chat-page", "--once"));
});
