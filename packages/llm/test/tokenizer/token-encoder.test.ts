import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tokenizerOfSentencePiece } from "../../src/sentencepiece-model.js";
import { StopTexts } from "../../src/text-answer.js";
import { openTextStream, TextTokenizer } from "../../src/text-tokenizer.js";
import { TokenEncoder } from "../../src/tokenizer/token-encoder.js";
import { planTokenizer, type TokenizerOptions } from "../../src/tokenizer/tokenizer-options.js";
import { allParts } from "../../src/turns.js";
import { STORIES } from "../support/stories.js";

const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));

const read = (path: string) => JSON.parse(readFileSync(`${fixtures}/${path}`, "utf8"));

/** Ids, mask and types of one text; null for a text that the library refuses to cut. */
type Values = readonly [ids: number[], mask: number[], types: number[]] | null;

interface Expected {
  readonly texts: readonly string[];
  readonly pairs: readonly (readonly [string, string])[];
  readonly settings: readonly Readonly<Record<string, string | number>>[];
  readonly kinds: Readonly<
    Record<string, { readonly texts: Values[][]; readonly pairs: Values[][]; readonly decoded: string[] }>
  >;
}

const expected: Expected = read("expected.json");

function encoderOf(kind: string, options: Omit<TokenizerOptions, "directory">): TokenEncoder {
  const tokenizer = read(`${kind}/tokenizer.json`);
  const plan = planTokenizer({ directory: "", ...options });
  return new TokenEncoder(new TextTokenizer({ tokenizer, config: {} }), plan, { tokenizer, config: {} });
}

function valuesOf(encoder: TokenEncoder, texts: readonly string[]): Values {
  try {
    const { input_ids, attention_mask, token_type_ids } = encoder.pad([
      allParts(encoder.encode(texts, undefined)),
    ]);
    return [[...input_ids], [...attention_mask], [...token_type_ids]];
  } catch (error) {
    expect(String(error)).toMatch(/expected at most \d+ tokens, got \d+; '\w+' cuts only '\w+'|cuts only/);
    return null;
  }
}

const camelCase = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

describe.each(Object.keys(expected.kinds))(
  "tokens of a tokenizer like %s equal those of Hugging Face's library",
  (kind) => {
    const values = expected.kinds[kind]!;

    it.each(expected.settings.map((settings, i) => [JSON.stringify(settings), i] as const))(
      "with %s",
      (_, i) => {
        const settings = Object.fromEntries(
          Object.entries(expected.settings[i]!).map(([name, value]) => [camelCase(name), value]),
        );
        const single = encoderOf(kind, settings);
        for (const [n, text] of expected.texts.entries()) {
          expect({ text, values: valuesOf(single, [text]) }).toEqual({ text, values: values.texts[i]![n] });
        }
        const pair = encoderOf(kind, { ...settings, pair: true });
        for (const [n, texts] of expected.pairs.entries()) {
          expect({ texts, values: valuesOf(pair, texts) }).toEqual({ texts, values: values.pairs[i]![n] });
        }
      },
    );

    it("and back", () => {
      const tokenizer = new TextTokenizer({ tokenizer: read(`${kind}/tokenizer.json`), config: {} });
      for (const [n, text] of expected.texts.entries()) {
        expect(tokenizer.decode(tokenizer.encode(text, true))).toBe(values.decoded[n]);
      }
    });
  },
);

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

describe("SentencePiece models", () => {
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
});

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

/** The text that is released for these pieces, and whether a stop text ended it. */
function release(stops: readonly string[], pieces: readonly string[], keep = false) {
  const texts = new StopTexts(stops, keep);
  let text = "";
  for (const piece of pieces) {
    const released = texts.take(piece);
    text += released.text;
    if (released.stopped) return { text, stopped: true };
  }
  return { text: text + texts.rest(), stopped: false };
}

describe("stop texts", () => {
  it("end a text across the borders of its pieces", () => {
    expect(release(["END"], ["one E", "N", "D two"])).toEqual({ text: "one ", stopped: true });
    expect(release(["END"], ["one END"], true)).toEqual({ text: "one END", stopped: true });
  });

  it("release what only began like a stop text", () => {
    expect(release(["END"], ["one E", "N", "TRY"])).toEqual({ text: "one ENTRY", stopped: false });
    expect(release(["END"], ["EN"])).toEqual({ text: "EN", stopped: false });
  });

  it("end a text with the one that is complete first", () => {
    expect(release(["bcd", "c"], ["abcd"])).toEqual({ text: "ab", stopped: true });
    expect(release(["bcd", "c"], ["abcd"], true)).toEqual({ text: "abc", stopped: true });
    expect(release(["aab"], ["aaab"])).toEqual({ text: "a", stopped: true });
  });

  it("are never shown in part", () => {
    const texts = new StopTexts(["</s>"]);
    expect(["a<", "/", "s", "b"].map((piece) => texts.take(piece).text)).toEqual(["a", "", "", "</sb"]);
  });

  it("release at once what cannot begin a stop text", () => {
    expect(new StopTexts(["END", "xyz"]).take("text x")).toEqual({ text: "text ", stopped: false });
    expect(new StopTexts([]).take("text x")).toEqual({ text: "text x", stopped: false });
  });

  it("never divide a character", () => {
    const texts = new StopTexts([]);
    expect(texts.take(`a${"😀"[0]}`).text).toBe("a");
    expect(texts.take("😀"[1]!).text).toBe("😀");
  });

  it("give the same text for any division into pieces", () => {
    const letters = (most: number) => fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: most });
    const stops = fc.array(
      letters(4).filter((stop) => stop !== ""),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(fc.array(letters(5)), stops, fc.boolean(), (pieces, some, keep) => {
        expect(release(some, pieces, keep)).toEqual(release(some, [pieces.join("")], keep));
      }),
    );
  });
});

describe("streams of text", () => {
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
});
