import {
  type ResponseFormat,
  readConstraintVocabulary,
  readSamplingParameters,
  StructuredOutput,
  type TokenConstraint,
} from "@tritonjs/llm";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { HOSTILE_FORMATS } from "./hostile-formats.js";

const END = 0;
const SPECIAL = 1;
const PRINTED = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
const WORDS = [
  '{"',
  '":',
  '", "',
  '"}',
  "name",
  "age",
  "true",
  "null",
  "tall",
  "12",
  "\n",
  "é",
  "日本",
  "<|im_start|>",
];
const TOKENS = ["<end>", "", ...PRINTED, ...WORDS];
const vocabulary = { tokens: TOKENS, spelling: "raw", size: TOKENS.length + 40 } as const;

const person = {
  type: "object",
  properties: { name: { type: "string", maxLength: 8 }, age: { type: "integer", minimum: 0, maximum: 150 } },
  required: ["name", "age"],
  additionalProperties: false,
};
const schemaFormat = (schema: unknown): ResponseFormat => ({ type: "json_schema", schema });

function allowedIds(mask: Int32Array): number[] {
  return Array.from({ length: mask.length * 32 }, (_, id) => id).filter(
    (id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1,
  );
}

/** Spells the text with the first tokens that fit, and tells whether the constraint allowed all of them. */
async function accepts(constraint: TokenConstraint, text: string): Promise<boolean> {
  for (const character of text) {
    const id = TOKENS.indexOf(character);
    if (!allowedIds(await constraint.allowed()).includes(id)) return false;
    constraint.accept(id);
  }
  return true;
}

/** Writes a text by choosing among the allowed tokens. Ends as soon as it may, after `length` tokens. */
async function write(constraint: TokenConstraint, random: SeededRandom, length: number): Promise<string> {
  let text = "";
  for (let step = 0; step < 2_000; step++) {
    const ids = allowedIds(await constraint.allowed());
    expect(ids).not.toContain(SPECIAL);
    const end = step >= length && ids.includes(END);
    // A text that is long enough closes its strings and objects where it can.
    const closing = step < length ? [] : ids.filter((id) => /^["}\]]+$/.test(TOKENS[id] ?? ""));
    const among = closing.length > 0 ? closing : ids;
    const id = end ? END : (among[random.below(among.length)] as number);
    if (constraint.accept(id)) return text;
    text += TOKENS[id];
  }
  throw new Error("the text did not end");
}

/** All tests have one, as all requests of a model do. */
const structured = new StructuredOutput(vocabulary, [END]);

/** The format that the fields of a request ask for. */
const formatOf = (fields: object) => readSamplingParameters({ json: JSON.stringify(fields) }).responseFormat!;

describe("structured output", () => {
  it("allows only texts that fit a JSON schema", async () => {
    const random = new SeededRandom(7);
    for (let run = 0; run < 8; run++) {
      const constraint = await structured.constrain(schemaFormat(person));
      if (constraint === undefined) throw new Error("expected a constraint");
      const parsed = JSON.parse(await write(constraint, random, 5 + run * 4));
      expect(Object.keys(parsed).sort()).toEqual(["age", "name"]);
      expect(typeof parsed.name).toBe("string");
      expect(Number.isInteger(parsed.age) && parsed.age >= 0 && parsed.age <= 150).toBe(true);
      expect(constraint.finished).toBe(true);
      constraint.release();
    }
  });

  it.each([
    ["an object", { response_format: { type: "json_object" } }, '{"a": [1, {}]}', "[1]"],
    ["vLLM's guided_json as text", { guided_json: '{"type":"boolean"}' }, "true", "1"],
    [
      "a schema of structured_outputs",
      { structured_outputs: { json: { type: "array", items: { type: "null" } } } },
      "[null]",
      "[1]",
    ],
    ["a pattern", { guided_regex: "[a-c]{2}[0-9]+" }, "ab12", "ad"],
    ["a choice", { structured_outputs: { choice: ['say "yes"', "no"] } }, 'say "yes"', "yes"],
    ["a grammar", { guided_grammar: 'root ::= "<" [0-9]+ ">"' }, "<42>", "<a"],
  ])("limits an answer to %s", async (_, fields, good, bad) => {
    const format = formatOf(fields);
    const constraint = await structured.constrain(format);
    expect(await accepts(constraint as TokenConstraint, good)).toBe(true);
    expect(allowedIds(await (constraint as TokenConstraint).allowed())).toContain(END);
    expect(await accepts((await structured.constrain(format)) as TokenConstraint, bad)).toBe(false);
  });

  it("does not limit an answer of any text", async () => {
    expect(await structured.constrain({ type: "text" })).toBeUndefined();
  });

  it("keeps the constraints of concurrent answers apart", async () => {
    const [a, b] = await Promise.all([
      structured.constrain(schemaFormat(person)),
      structured.constrain(schemaFormat(person)),
    ]);
    expect(await accepts(a as TokenConstraint, '{"name":"Bo')).toBe(true);
    expect(await accepts(b as TokenConstraint, '{"')).toBe(true);
    expect(await accepts(a as TokenConstraint, '","age":7}')).toBe(true);
    await (a as TokenConstraint).allowed();
    expect((a as TokenConstraint).accept(END)).toBe(true);
    expect((b as TokenConstraint).finished).toBe(false);
  });

  it("starts anew with a grammar that was used before", async () => {
    const first = (await structured.constrain(schemaFormat(person))) as TokenConstraint;
    expect(await accepts(first, '{"na')).toBe(true);
    first.release();
    first.release();
    const [second, third] = await Promise.all([
      structured.constrain(schemaFormat(person)),
      structured.constrain(schemaFormat(person)),
    ]);
    expect(await accepts(second as TokenConstraint, '{"name":"x"')).toBe(true);
    expect(await accepts(third as TokenConstraint, '{"name":"x"')).toBe(true);
  });

  it("refuses a token that the format does not allow, and use after the end", async () => {
    const constraint = (await structured.constrain({ type: "choice", texts: ["a"] })) as TokenConstraint;
    expect(() => constraint.accept(TOKENS.indexOf("b"))).toThrow(
      /cannot accept token \d+: expected one that the format allows/,
    );
    expect(constraint.accept(TOKENS.indexOf("a"))).toBe(false);
    expect(await constraint.allowed()).toBe(await constraint.allowed());
    expect(constraint.accept(END)).toBe(true);
    await expect(constraint.allowed()).rejects.toThrow(
      "cannot use the constraint of an answer: it is finished",
    );
    constraint.release();
    expect(() => constraint.accept(END)).toThrow("it is finished");
  });

  it.each<[ResponseFormat, string]>([
    [
      { type: "grammar", grammar: "root ::= (" },
      "line 1 of the grammar: expected a closing parenthesis, got its end",
    ],
    [{ type: "regex", pattern: "(?<=a)b" }, "cannot hold a pattern with (?<=a), which looks back"],
    [{ type: "regex", pattern: "a(?=b)c" }, "no text matches the pattern"],
    [{ type: "regex", pattern: "a".repeat(20_000) }, "it is nested too deeply"],
  ])("rejects the format %j", async (format, message) => {
    await expect(structured.constrain(format)).rejects.toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: `cannot read the format of the answer: ${message}`,
      }),
    );
    // The next format is not disturbed.
    expect(
      await accepts((await structured.constrain(schemaFormat(person))) as TokenConstraint, '{"name"'),
    ).toBe(true);
  });

  it("rejects a format of more than 262,144 characters", async () => {
    await expect(structured.constrain({ type: "regex", pattern: "a".repeat(270_000) })).rejects.toThrow(
      "cannot read response_format: expected a grammar of at most 262144 characters, got 270029",
    );
  });

  it("tells when the vocabulary cannot spell the format", async () => {
    const structured = new StructuredOutput({ tokens: ["<end>", "a"], spelling: "raw" }, [0]);
    await expect(structured.constrain({ type: "choice", texts: ["b"] })).rejects.toThrow(
      "expected a token for it in the model's vocabulary, got none",
    );
  });

  it("needs a token that ends the text", () => {
    expect(() => new StructuredOutput(vocabulary, [])).toThrow("expected a token that ends a text, got none");
  });
});

describe("the thread of the formats", () => {
  const hostile = HOSTILE_FORMATS["oneOf of 120 open objects"]!;
  const own = (heapMegabytes: number) =>
    new StructuredOutput(vocabulary, [END], undefined, { bytes: 2 ** 33, heapMegabytes });

  it("reads no format whose client has left", async () => {
    const gone = new AbortController();
    const reading = structured.constrain(hostile, gone.signal);
    gone.abort();
    await expect(reading).rejects.toMatchObject({ code: "CANCELLED" });
    await expect(structured.constrain(hostile, gone.signal)).rejects.toMatchObject({ code: "CANCELLED" });
    await expect(structured.constrain(hostile)).rejects.toThrow("expected at most 600000 steps, got more");
  });

  it("fails the formats that it held when its heap is full, and starts again", async () => {
    const structured = own(12);
    const format = schemaFormat(person);
    const running = (await structured.constrain(format)) as TokenConstraint;
    expect(await accepts(running, '{"name"')).toBe(true);
    const words = Array.from({ length: 16_000 }, (_, i) => `choice ${i}`);
    const full = "the thread that holds answers to their formats has ended";
    await expect(structured.constrain({ type: "choice", texts: words })).rejects.toMatchObject({
      code: "INTERNAL",
      reason: "WORKER_CRASHED",
      message: expect.stringContaining(full),
    });
    await running.allowed();
    running.accept(TOKENS.indexOf(":"));
    await expect(running.allowed()).rejects.toThrow(full);
    running.release();
    expect(await accepts((await structured.constrain(format)) as TokenConstraint, '{"name"')).toBe(true);
    await structured.close();
  });

  it("ends when it is closed, with its texts", async () => {
    const structured = own(64);
    const constraint = (await structured.constrain(schemaFormat(person))) as TokenConstraint;
    const reading = structured.constrain(hostile);
    await Promise.all([expect(reading).rejects.toThrow("it was closed"), structured.close()]);
    constraint.accept(TOKENS.indexOf("{"));
    await expect(constraint.allowed()).rejects.toThrow("it was closed");
  });
});

describe("the vocabulary of a tokenizer.json", () => {
  it("spells added tokens as the others, and leaves special ones out", () => {
    const tokenizer = {
      model: { type: "BPE", vocab: { a: 0, Ġb: 1, Ċ: 3 } },
      decoder: { type: "ByteLevel" },
      added_tokens: [
        { id: 4, content: "<|end|>", special: true },
        { id: 5, content: "  \né", special: false },
      ],
    };
    expect(readConstraintVocabulary(tokenizer, 8)).toEqual({
      tokens: ["a", "Ġb", "", "Ċ", "", "ĠĠĊÃ©"],
      spelling: "byte_level",
      size: 8,
    });
  });

  it("reads the tokens of SentencePiece", () => {
    const decoder = {
      type: "Sequence",
      decoders: [{ type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "ByteFallback" }],
    };
    const added = [{ id: 0, content: "<s>", special: true }];
    const tokenizer = {
      model: {
        type: "Unigram",
        vocab: [
          ["<s>", 0],
          ["▁a", -1],
          ["<0x0A>", -2],
        ],
      },
      decoder,
      added_tokens: added,
    };
    expect(readConstraintVocabulary(tokenizer)).toEqual({
      tokens: ["", "▁a", "<0x0A>"],
      spelling: "byte_fallback",
      size: 3,
    });
  });

  it("reads the tokens of a Metaspace tokenizer without tokens for bytes", () => {
    const model = { type: "Unigram", vocab: [["▁a", -1]] };
    const decoder = { type: "Metaspace", replacement: "▁", prepend_scheme: "always" };
    expect(readConstraintVocabulary({ model, decoder })).toMatchObject({ spelling: "byte_fallback" });
  });

  it.each([
    [
      { model: { type: "WordPiece", vocab: {} } },
      "expected a tokenizer of the type BPE or Unigram, got WordPiece",
    ],
    [{}, 'cannot read tokenizer.json: expected "model.vocab", an object or an array'],
  ])("rejects %j", (tokenizer, message) => {
    expect(() => readConstraintVocabulary(tokenizer)).toThrow(message);
  });
});
