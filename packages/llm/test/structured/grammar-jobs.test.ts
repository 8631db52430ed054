import type { ResponseFormat } from "@tritonjs/llm";
import { describe, expect, it } from "vitest";
import { type GrammarAnswer, GrammarJobs, type GrammarRequest } from "../../src/structured/grammar-jobs.js";
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

describe("a format that asks for much work", () => {
  // The long layer has the other formats.
  it.each([
    "oneOf of 120 open objects",
    "16 patterns at once",
    "nested repetitions of a pattern",
    "40 nested choices of two",
    "an enumeration of 20,000",
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
    jobs.send(...range(4, (i) => begin(2 + i, HOSTILE)));
    expect(jobs.answers.map(({ text }) => text)).toEqual([1, 1, 8, 9, 2, 3, 4, 5]);
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
  const distinct = (i: number) => schema({ properties: { [`name${i}`]: { type: "string", maxLength: 50 } } });

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
