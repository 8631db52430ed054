import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { openTextStream, TextTokenizer } from "../../src/text-tokenizer.js";
import { STORIES } from "../support/stories.js";

const read = (name: string) => JSON.parse(readFileSync(`${STORIES}/${name}`, "utf8"));

const byteLevel = new TextTokenizer({
  tokenizer: read("tokenizer.json"),
  config: read("tokenizer_config.json"),
});

/** A small vocabulary as SentencePiece makes them: "▁" for a space, and tokens for bytes. */
const pieces = [
  "<s>",
  "▁once",
  "▁there",
  "▁was",
  "▁",
  ...[..."once thra wé"].filter((letter) => letter !== " " && letter !== "é"),
];
const bytes = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
);
const sentencePiece = new TextTokenizer({
  tokenizer: {
    added_tokens: [{ id: 0, content: "<s>", special: true }],
    pre_tokenizer: null,
    post_processor: null,
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "Prepend", prepend: "▁" },
        { type: "Replace", pattern: { String: " " }, content: "▁" },
      ],
    },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
      ],
    },
    model: {
      type: "BPE",
      byte_fallback: true,
      fuse_unk: true,
      vocab: Object.fromEntries([...new Set([...pieces, ...bytes])].map((token, id) => [token, id])),
      merges: [],
    },
  },
  config: {},
});

/** The pieces of a text, one for each token, and what is left at the end. */
function stream(tokenizer: TextTokenizer, ids: readonly number[], showSpecial = false): string[] {
  const text = openTextStream(tokenizer, showSpecial ? "all" : new Set());
  return [...ids.map((id) => text.push(id)), text.end()];
}

describe("streamed text", () => {
  it.each([
    ["of a byte-level vocabulary", byteLevel],
    ["of a vocabulary with bytes as a fallback", sentencePiece],
  ])("%s never splits a character", (_, tokenizer) => {
    const text = "once there was a café 🎉 once ☀ was Zoë";
    const ids = tokenizer.encode(text, false);
    const seen = stream(tokenizer, ids);
    // The space before the first word is a part of its token.
    expect(seen.join("")).toBe(tokenizer === sentencePiece ? ` ${text}` : text);
    expect(ids.length).toBeGreaterThan(20);
    for (const piece of seen) expect(piece).not.toContain("\ufffd");
  });

  it("keeps the bytes of an unfinished character for the end", () => {
    const ids = byteLevel.encode("a🎉", false).slice(0, -1);
    expect(stream(byteLevel, ids)).toEqual(["a", "", "", "", "\ufffd"]);
  });

  it("shows special tokens only if asked", () => {
    const ids = [...byteLevel.encode("Once", true), byteLevel.idOf("<|end|>")!];
    expect(stream(byteLevel, ids).join("")).toBe("Once");
    expect(stream(byteLevel, ids, true).join("")).toBe("<|begin|>Once<|end|>");
  });
});
