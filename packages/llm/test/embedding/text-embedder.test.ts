import { Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { type EmbeddingCallback, textEmbedder } from "../../src/index.js";

let triton = new Triton();
afterEach(() => triton.close());

function bind(callback: EmbeddingCallback) {
  triton = new Triton();
  return triton.bind({
    modelName: "embed",
    inferFunc: textEmbedder(callback),
    config: { maxBatchSize: 8 },
  });
}

describe("a text embedder", () => {
  it("gets the texts of many requests in one batch, and answers each with its vector", async () => {
    const batches: (readonly string[])[] = [];
    const embed = bind(async (texts) => {
      batches.push(texts);
      return texts.map((text) => [text.length, 1]);
    });
    await embed.ready();
    const texts = ["a", "bcd", "Zoë"];
    const answers = await Promise.all(texts.map((text) => embed.inferSample({ text_input: [text] })));
    expect(answers.map(({ embedding }) => Array.from(embedding.data))).toEqual([
      [1, 1],
      [3, 1],
      [3, 1],
    ]);
    expect(batches).toEqual([texts]);
    const { embedding } = await embed.inferBatch({ text_input: [["x"], ["yy"]] });
    expect(embedding.shape).toEqual([2, 2]);
  });

  it.each([
    ["too few vectors", () => [], "got 0 with the lengths []"],
    ["vectors of different lengths", () => [[1], [1, 2]], "got 2 with the lengths [1, 2]"],
    ["empty vectors", () => [[], []], "got 2 with the lengths [0]"],
    ["something else", () => "vectors" as never, "got a string"],
  ])("fails its batch for %s", async (_, callback, got) => {
    const embed = bind(callback as EmbeddingCallback);
    expect(await outcomeOf(embed.inferBatch({ text_input: [["x"], ["y"]] }))).toBe(
      `INTERNAL model 'embed': textEmbedder: expected 2 vectors of one length above 0, ${got}`,
    );
  });

  it("refuses anything but a function", () => {
    expect(thrownBy(() => textEmbedder(5 as never))).toBe(
      "INVALID_ARG textEmbedder(): callback: expected a function, got number",
    );
  });
});
