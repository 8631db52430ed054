import { StructuredOutput } from "@tritonjs/llm";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { type ResponseFormat, readSamplingParameters } from "../../src/sampling/sampling-parameters.js";
import { Regexes } from "../../src/structured/byte-regex.js";
import { readConstraintVocabulary } from "../../src/structured/constraint-vocabulary.js";
import { GrammarMachine } from "../../src/structured/grammar.js";
import { type GrammarAnswer, GrammarJobs, type GrammarRequest } from "../../src/structured/grammar-jobs.js";
import { grammarOfText } from "../../src/structured/grammar-reader.js";
import type { TokenConstraint } from "../../src/structured/structured-output.js";
import { TokenBytes } from "../../src/structured/token-masks.js";
import { HOSTILE_FORMATS } from "./hostile-formats.js";

const END = 0;

const TOKENS = [
  "<end>",
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)),
  '{"',
  '":',
  "abc",
];

const tokens = new TokenBytes(TOKENS, "raw", TOKENS.length);

/** Steps between two looks at other work. */
const SLICE = 2_000;

const MAX_BYTES = 64 * 2 ** 20;

/** Jobs that get requests at the looks for other work, which are counted from 1. */
class Jobs {
  readonly answers: GrammarAnswer[] = [];
  readonly #jobs: GrammarJobs;
  looks = 0;
  /** Requests of the looks to come. */
  arrivals: (look: number) => GrammarRequest | undefined = () => undefined;
  #requests: GrammarRequest[] = [];

  constructor(maxBytes = MAX_BYTES) {
    this.#jobs = new GrammarJobs(tokens, [END], false, maxBytes, {
      next: () => this.#requests.shift() ?? this.arrivals(++this.looks),
      answer: (answer) => this.answers.push(answer),
    });
  }

  get bytes(): number {
    return this.#jobs.bytes;
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** Sends requests, and returns the last answer when all are done. */
  send(...requests: GrammarRequest[]): GrammarAnswer {
    this.#requests = requests;
    this.#jobs.run();
    return this.answers.at(-1)!;
  }
}

const begin = (text: number, format: ResponseFormat): GrammarRequest => ({
  type: "begin",
  text,
  format: JSON.stringify(format),
});

const token = (text: number, id: number): GrammarRequest => ({ type: "tokens", text, tokens: [id] });

const end = (text: number): GrammarRequest => ({ type: "end", text });

const range = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

const schema = (value: object): ResponseFormat => ({ type: "json_schema", schema: value });

const allowed = ({ mask }: { readonly mask: Int32Array }) =>
  TOKENS.map((_, id) => id).filter((id) => (mask[id >> 5]! >>> (id & 31)) & 1);

/** A format that takes all steps. */
const HOSTILE = HOSTILE_FORMATS["oneOf of 120 open objects"]!;

describe("grammar jobs", () => {
  it.each<[string, ResponseFormat]>([
    [
      "one of 60 objects with a property of their own",
      schema({
        oneOf: range(60, (i) => ({
          type: "object",
          properties: { [`p${i}`]: { type: "integer" } },
          required: [`p${i}`],
        })),
      }),
    ],
    [
      "one of 60 tools with their names",
      schema({
        oneOf: range(60, (i) => ({
          type: "object",
          properties: {
            arguments: { type: "object", properties: { text: { type: "string" } } },
            name: { const: `t${i}` },
          },
          required: ["arguments", "name"],
        })),
      }),
    ],
    [
      "100 optional properties",
      schema({ properties: Object.fromEntries(range(100, (i) => [`p${i}`, { type: "string" }])) }),
    ],
    ["letters of all scripts", schema({ type: "string", pattern: "^\\p{Lu}\\p{Ll}{1,40}$" })],
    [
      "500 rules",
      {
        type: "grammar",
        grammar: `root ::= r0\n${range(500, (i) => `r${i} ::= "a" r${i + 1}?`).join("\n")}\nr500 ::= "b"`,
      },
    ],
  ])("reads a common format: %s", (_, format) => {
    expect(new Jobs().send(begin(1, format))).toMatchObject({ text: 1, mayEnd: false });
  });

  it("lets a text of any length go on", () => {
    const jobs = new Jobs();
    let answer = jobs.send(begin(1, { type: "regex", pattern: "([a-z]|[a-m][n-z]| ){1,3000}(?!x)" }));
    for (let i = 0; i < 500; i++) {
      if ("error" in answer) throw new Error(answer.error);
      const letters = allowed(answer).filter((id) => id !== END);
      answer = jobs.send(token(1, letters[(7 * i) % letters.length]!));
    }
    expect(answer).toMatchObject({ mayEnd: true });
  });

  describe("the memory of grammars", () => {
    const distinct = (i: number) =>
      schema({ properties: { [`name${i}`]: { type: "string", maxLength: 50 } } });

    it("is bounded over 100 schemas", () => {
      const jobs = new Jobs(2 ** 19);
      for (let i = 0; i < 100; i++) {
        expect(jobs.send(begin(i, distinct(i)))).toMatchObject({ text: i, mayEnd: false });
        jobs.send(end(i));
        expect(jobs.bytes).toBeLessThanOrEqual(2 ** 19);
      }
      expect(jobs.size).toBeGreaterThan(1);
      expect(jobs.size).toBeLessThan(50);
      // The last one is still there, and begins without being read.
      const { looks } = jobs;
      jobs.send(begin(100, distinct(99)));
      expect(jobs.looks - looks).toBeLessThanOrEqual(3);
    });

    it("lets running texts end while it lasts, and else fails those of the largest grammar", () => {
      const jobs = new Jobs(2 ** 21);
      const names = range(400, (i) => `a rather long name of a choice ${i}`);
      expect(jobs.send(begin(0, { type: "choice", texts: names.slice(0, 60) }))).toHaveProperty("mask");
      let count = 1;
      while (jobs.answers.every((answer) => "mask" in answer) && count < 100) {
        jobs.send(begin(count, distinct(count)));
        if (count > 1 && jobs.size < count) break;
        count++;
      }
      expect(jobs.bytes).toBeLessThanOrEqual(2 ** 21);
      const answers = range(count, (i) =>
        jobs.send(token(i, i === 0 ? TOKENS.indexOf("a") : TOKENS.indexOf("{"))),
      );
      expect(answers.filter((answer) => "error" in answer)).toEqual([
        {
          text: 0,
          error:
            "cannot continue the answer in its format: it is too complex: expected at most 2097152 bytes, got more",
        },
      ]);
    });
  });
});

describe("a format that asks for much work", () => {
  // The long layer has the other formats.
  it.each([
    "oneOf of 120 open objects",
    "16 patterns at once",
    "nested repetitions of a pattern",
    "40 nested choices of two",
    "rules that double",
    "an ambiguous grammar",
    "a long bounded string with a pattern",
  ])("ends within the steps of a format: %s", (name) => {
    const format = HOSTILE_FORMATS[name]!;
    const jobs = new Jobs();
    const answer = jobs.send(begin(1, format));
    expect(jobs.answers).toHaveLength(1);
    // Three tries, and a look before and after each.
    expect(jobs.looks).toBeLessThan((8_000 + 60_000 + 600_000) / SLICE + 8);
    if ("error" in answer)
      expect(answer.error).toMatch(
        /^cannot read .*(too complex: expected at most \d+ (steps|bytes), got more|nested too deeply|cannot hold|expected a rule)/,
      );
    expect(jobs.bytes).toBeLessThan(MAX_BYTES / 2);
  });

  it("is refused with the reason", () => {
    expect(new Jobs().send(begin(1, HOSTILE))).toEqual({
      text: 1,
      error:
        "cannot read the format of the answer: it is too complex: expected at most 600000 steps, got more",
    });
  });

  it("keeps no other text waiting", () => {
    const jobs = new Jobs();
    const person = schema({ type: "object", properties: { name: { type: "string" } }, required: ["name"] });
    jobs.send(begin(1, person));
    // While the hostile ones are read, a text goes on and others begin.
    const arrivals = new Map([
      [100, token(1, TOKENS.indexOf("{"))],
      [150, begin(8, person)],
      [160, begin(9, { type: "regex", pattern: "[ab]+" })],
    ]);
    jobs.arrivals = (look) => arrivals.get(look);
    jobs.send(...range(2, (i) => begin(2 + i, HOSTILE)));
    expect(jobs.answers.map(({ text }) => text)).toEqual([1, 1, 8, 9, 2, 3]);
    expect(jobs.answers.slice(1, 4).every((answer) => "mask" in answer)).toBe(true);
  });

  it("is read no longer when its client has left", () => {
    const jobs = new Jobs();
    jobs.arrivals = (look) => (look === 150 ? end(1) : undefined);
    jobs.send(begin(1, HOSTILE));
    expect(jobs.answers).toEqual([]);
    expect(jobs.looks).toBeLessThan(155);
    expect(jobs).toMatchObject({ bytes: 0, size: 0 });
  });
});

function takes(grammar: string, text: string): boolean {
  const regexes = new Regexes();
  const machine = new GrammarMachine(regexes, grammarOfText(grammar, regexes));
  let state: ReturnType<GrammarMachine["step"]> = machine.start;
  for (const byte of new TextEncoder().encode(text)) {
    state = machine.step(state, byte);
    if (state === undefined) return false;
  }
  return state.mayEnd;
}

/** A grammar in the form of llama.cpp, with a rule that refers to itself in its middle. */
const ARITHMETIC = `
# expressions
root  ::= (expr "=" ws term "\\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \\t\\n]*
`;

const LARK_ARITHMETIC = `
?start: sum
?sum: product | sum "+" product -> add
    | sum "-" product -> sub
?product: atom
    | product "*" atom  // binds closer
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
`;

describe("grammars as text", () => {
  it.each<[string, string, readonly string[], readonly string[]]>([
    ["EBNF", 'root ::= "a" b? | "c"{2,3}\nb ::= [^a-y]', ["a", "az", "aé", "cc", "ccc"], ["ab", "c", "cccc"]],
    [
      "escapes of EBNF",
      'root ::= "\\x41\\u00e9\\n\\"" [\\]\\-\\\\]',
      ['Aé\n"]', 'Aé\n"-', 'Aé\n"\\'],
      ['Aé\n"a'],
    ],
    ["GBNF", ARITHMETIC, ["a=1\n", "(a +2)*b_1=x\ny=2\n"], ["a=", "(a=1\n", "a=1"]],
    ["a rule that begins with itself", 'root ::= root "x" | "y"', ["y", "yxx"], ["x", "yy"]],
    [
      "a repetition of a rule that recurs",
      'root ::= p{2}\np ::= "(" p* ")"',
      ["()()", "(())()"],
      ["()", "()()()"],
    ],
    ["Lark", LARK_ARITHMETIC, ["1", "a + (2*-b) - 3.5e2", " 1 "], ["1 +", "(1", "1 2"]],
    [
      "Lark's strings and ranges",
      'start: "yes"i | "a".."c" | /x\\/y/',
      ["YES", "yEs", "b", "x/y"],
      ["d", "no"],
    ],
    ["Lark's repetitions", 'start: A~2 "b"~1..3 ["c"]\nA: "a"', ["aab", "aabbbc"], ["ab", "aabbbb"]],
  ])("takes the texts of a grammar: %s", (_, grammar, good, bad) => {
    expect(good.filter((text) => !takes(grammar, text))).toEqual([]);
    expect(bad.filter((text) => takes(grammar, text))).toEqual([]);
  });

  it.each([
    ['root ::= "a', "line 1 of the grammar: expected a quotation mark, got its end"],
    ["root ::= x", "expected a rule named x, which root refers to, got none"],
    ['a ::= "b"', "expected a rule named root, got none"],
    ['root ::= "a"\nroot ::= "b"', "the rule root is given twice"],
    ['root ::= a\na ::= b "x"\nb ::= a | "y"', "the rule a begins with itself by way of another rule"],
    ['root ::= root "x"', "the rule root never ends"],
    ['root ::= "a" (="b")', "it looks ahead with (=, which is not held"],
    ['root ::= "a"{5,2}', "expected at most 2 as the smallest number of repetitions, got 5"],
    ['start: "a"~5..2', "expected at most 2 as the smallest number of repetitions, got 5"],
    ["root ::= [z-a]", "line 1 of the grammar: expected a range from a lower to a higher character"],
    ['start: "a"\n%import python.NAME', "line 2 of the grammar: expected %ignore, or %import of common"],
    ['start: "a"\n%import common.NAM', "expected a terminal of common, such as WS or NUMBER, got NAM"],
    ["start: /a/i", "a pattern with the flags i is not held"],
    ["start: /(a)\\1/", "cannot hold a pattern with \\1, which refers to an earlier part"],
    ["hello", 'line 1 of the grammar: expected a rule such as start: ..., got "hello"'],
  ])("names what is wrong in %j", (grammar, message) => {
    expect(() => takes(grammar, "a")).toThrow(message);
  });
});

describe("structured output", () => {
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
    properties: {
      name: { type: "string", maxLength: 8 },
      age: { type: "integer", minimum: 0, maximum: 150 },
    },
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
  const formatOf = (fields: object) =>
    readSamplingParameters({ json: JSON.stringify(fields) }).responseFormat!;

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
      expect(() => new StructuredOutput(vocabulary, [])).toThrow(
        "expected a token that ends a text, got none",
      );
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
});
