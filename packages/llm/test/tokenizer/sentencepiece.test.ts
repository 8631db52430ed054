import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tokenizerOfSentencePiece } from "../../src/sentencepiece-model.js";
import { openTextStream, TextTokenizer } from "../../src/text-tokenizer.js";

const fixture = (name: string) => new URL(`../fixtures/${name}`, import.meta.url);

interface Recorded {
  readonly ids: readonly (readonly number[])[];
  readonly decoded: readonly string[];
}

const recorded = JSON.parse(readFileSync(fixture("sentencepiece-texts.json"), "utf8")) as {
  readonly texts: readonly string[];
  readonly bpe: Recorded;
  readonly unigram: Recorded;
  readonly symbolTexts: readonly string[];
  readonly symbols: Recorded;
};

function open(kind: "bpe" | "unigram" | "symbols"): TextTokenizer {
  const path = fixture(`sentencepiece-${kind}.model`);
  return new TextTokenizer({ ...tokenizerOfSentencePiece(readFileSync(path), path.pathname), config: {} });
}

describe.each(["bpe", "unigram"] as const)("a tokenizer of SentencePiece, of the type %s", (kind) => {
  const tokenizer = open(kind);
  const { texts } = recorded;

  it("encodes and decodes 1,000 random strings as sentencepiece does", () => {
    const { ids, decoded } = recorded[kind];
    const wrong = texts.filter((text, i) => {
      const got = tokenizer.encode(text, false);
      return got.join() !== ids[i]!.join() || tokenizer.decode(got) !== decoded[i];
    });
    expect(wrong).toEqual([]);
  });

  it("keeps the space before the first word of a text that continues a prompt", () => {
    const prompt = tokenizer.encode("The license", false);
    const whole = tokenizer.encode("The license Two 😀_x", false);
    const stream = openTextStream(tokenizer, new Set());
    const pieces = whole.slice(prompt.length).map((id) => stream.push(id));
    expect([...pieces, stream.end()].join("")).toBe(" Two 😀_x");
    // No piece ends inside a character.
    expect(pieces.join("")).not.toContain("\ufffd");
  });

  it("has tokens whose bytes join to the text that it decodes", () => {
    for (const text of texts.slice(0, 200)) {
      const ids = tokenizer.encode(text, false);
      const bytes = Buffer.concat(ids.map((id) => tokenizer.bytesOf(id)));
      if (ids.length > 0) expect(bytes.toString()).toBe(` ${tokenizer.decode(ids)}`);
    }
  });
});

describe("a model of SentencePiece with pieces that the user defined", () => {
  const tokenizer = open("symbols");

  it("encodes and decodes 300 random strings as sentencepiece does", () => {
    const { ids, decoded } = recorded.symbols;
    const wrong = recorded.symbolTexts.filter((text, i) => {
      const got = tokenizer.encode(text, false);
      return got.join() !== ids[i]!.join() || tokenizer.decode(got) !== decoded[i];
    });
    expect(wrong).toEqual([]);
  });

  it("streams spaces where such a piece has them", () => {
    const text = "def f():\n    [X]  <Tool>";
    const stream = openTextStream(tokenizer, new Set());
    const pieces = tokenizer.encode(text, false).map((id) => stream.push(id));
    expect([...pieces, stream.end()].join("")).toBe(` ${text}`);
  });

  it("begins a text after a control piece anew", () => {
    const end = tokenizer.idOf("</s>");
    expect(tokenizer.encode("a</s>the", false)).toEqual([
      ...tokenizer.encode("a", false),
      end,
      ...tokenizer.encode("the", false),
    ]);
  });
});

it("a tokenizer of SentencePiece begins a text anew after a token that its configuration adds", () => {
  const path = fixture("sentencepiece-bpe.model");
  const added = [{ id: 500, content: "<|user|>", special: true }];
  const read = tokenizerOfSentencePiece(readFileSync(path), path.pathname, added);
  const tokenizer = new TextTokenizer({ ...read, config: {} });
  const the = tokenizer.encode("the", false);
  expect(tokenizer.encode("<|user|>the<|user|>the", false)).toEqual([500, ...the, 500, ...the]);
});

it("a file that is not a model of SentencePiece is refused by its name", () => {
  const read = (bytes: Uint8Array) => () => tokenizerOfSentencePiece(bytes, "/m/tokenizer.model");
  for (const bytes of [new Uint8Array(), Buffer.from("{}"), Uint8Array.of(10, 200, 1)]) {
    expect(read(bytes)).toThrow("cannot read /m/tokenizer.model: expected a model of SentencePiece, got");
  }
});

it("a vocabulary may have numbers without a token", () => {
  const tokenizer = new TextTokenizer({
    tokenizer: {
      added_tokens: [{ id: 9, content: "<end>", special: true }],
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: { type: "Fuse" },
      model: { type: "BPE", vocab: { a: 0, b: 3 }, merges: [] },
    },
    config: {},
  });
  expect(tokenizer.encode("ab<end>", false)).toEqual([0, 3, 9]);
  expect(tokenizer.tokens).toHaveLength(10);
  expect(tokenizer.textOf(2)).toBe("");
});
