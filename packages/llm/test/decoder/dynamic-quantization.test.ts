import { appendFileSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";

it("a graph with dynamic quantisation warns that texts depend on each other, unless each runs by itself", async () => {
  const directory = mkdtempSync(join(tmpdir(), "quantised-"));
  cpSync(STORIES, directory, { recursive: true });
  // The operator as a node names it, in the description of the model: field 6, with its length.
  appendFileSync(join(directory, "model.onnx"), "\x32\x17\x22\x15DynamicQuantizeLinear");
  const texts: string[] = [];
  const warned: string[][] = [];
  for (const batchInvariant of [false, true]) {
    const warnings: string[] = [];
    const teller = new StoryTeller({ directory, batchInvariant, onWarning: (text) => warnings.push(text) });
    const ask = (prompt: string) => teller.text({ prompt, sampling: { max_tokens: 10 } });
    texts.push((await Promise.all(["Once there was", "One day"].map(ask))).join("|"));
    warned.push(warnings);
    await teller.close();
  }
  rmSync(directory, { recursive: true });
  expect(texts[1]).toBe(texts[0]);
  expect(warned).toEqual([
    [
      expect.stringMatching(
        /model\.onnx quantises by the range of all texts of a run \(DynamicQuantizeLinear\)/,
      ),
    ],
    [],
  ]);
});
