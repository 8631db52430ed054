import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StructuredOutput } from "@tritonjs/llm";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import {
  type ConstraintVocabulary,
  readConstraintVocabulary,
} from "../../src/structured/constraint-vocabulary.js";
import { GrammarMachine } from "../../src/structured/grammar.js";
import { jsonGrammar } from "../../src/structured/json-grammar.js";
import { JsonScalars, TokenBytes, TokenGrammar } from "../../src/structured/token-masks.js";
import { STORIES } from "../support/stories.js";

const tokenizer = JSON.parse(readFileSync(join(STORIES, "tokenizer.json"), "utf8"));
const vocabulary: ConstraintVocabulary = readConstraintVocabulary(tokenizer);
const END = tokenizer.added_tokens.at(-1).id;
const structured = new StructuredOutput(vocabulary, [END]);
const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });
addFormats.default(ajv);

/** Bytes of a text that is written by choosing among the allowed tokens, with a preference for the end. */
async function write(schema: unknown, random: SeededRandom): Promise<string> {
  const constraint = (await structured.constrain({ type: "json_schema", schema, strict: false }))!;
  const letters = byteLetters();
  const bytes: number[] = [];
  for (let step = 0; step < 2_000; step++) {
    const mask = await constraint.allowed();
    const all = [...vocabulary.tokens.keys()].filter((id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1);
    const closing =
      step < 12 ? [] : all.filter((id) => id === END || /^["}\]]+$/.test(vocabulary.tokens[id]!));
    const among = closing.length > 0 ? closing : all;
    const id = among[random.below(among.length)]!;
    if (constraint.accept(id)) break;
    for (const letter of vocabulary.tokens[id]!) bytes.push(letters.get(letter)!);
  }
  expect(constraint.finished).toBe(true);
  constraint.release();
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
}

function byteLetters(): Map<string, number> {
  let next = 256;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => {
      const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
      return [String.fromCodePoint(printable ? byte : next++), byte];
    }),
  );
}

/** True if the grammar of a schema takes a text as a whole. */
function takes(schema: unknown, text: string, isStrict = false): boolean {
  const { root, regexes, unheld } = jsonGrammar(schema, isStrict);
  expect(unheld).toEqual([]);
  const machine = new GrammarMachine(regexes, root);
  const scalars = new JsonScalars();
  let state: ReturnType<GrammarMachine["step"]> = machine.start;
  for (const byte of new TextEncoder().encode(text)) {
    const scalar = scalars.read(byte);
    const next = machine.step(state, byte);
    state = machine.dependsOnScalars ? machine.stepWith(state, byte, scalar()) : next;
    if (state === undefined) return false;
  }
  return state.mayEnd;
}

const objectOf = (properties: object, more: object = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const ref = (text: string) => ({ $ref: text });
const person = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const kind = (name: string, more: object = {}) => ({
  type: "object",
  properties: { kind: { const: name }, ...more },
  required: Object.keys(more),
});
const list = (items: unknown, more: object = {}) => ({ type: "array", items, maxItems: 5, ...more });

/** Schemas of each keyword, and of those that interact. */
const SCHEMAS: Readonly<Record<string, unknown>> = {
  "any value": {},
  "an object of any": { type: "object" },
  "several types": { type: ["integer", "null", "boolean"] },
  "an enum": { enum: ["x", 1, null, true, ["a", { b: 2 }], { c: [] }, 'say "yes"\n'] },
  "an enum that a type limits": { enum: ["x", 1, null], type: ["string", "null"] },
  "lengths of a string": { type: "string", minLength: 2, maxLength: 9 },
  "a pattern": { type: "string", pattern: "^[a-z]+-\\d{2,4}$" },
  "a pattern in the middle": { type: "string", pattern: "ab|cd", maxLength: 12 },
  "a pattern that looks ahead": { type: "string", pattern: "^(?!admin)(?=.*\\d)[a-z0-9]{3,8}$" },
  "a pattern of escaped characters": { type: "string", pattern: '^["\\\\\\n\\t/]{1,4}$' },
  "a pattern of a property": { type: "string", pattern: "^\\p{Lu}\\p{Ll}{1,4}$" },
  "a pattern and lengths": { type: "string", pattern: "^(ab)*$", minLength: 3, maxLength: 7 },
  ...Object.fromEntries(
    ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "url", "uuid"].map(
      (format) => [`the format ${format}`, { type: "string", format }],
    ),
  ),
  "the format json-pointer": { type: "string", format: "json-pointer" },
  "the format uri-reference": { type: "string", format: "uri-reference" },
  "the format byte": { type: "string", format: "byte" },
  "the format regex": { type: "string", format: "regex" },
  "limits of an integer": { type: "integer", minimum: -12, maximum: 130 },
  "limits of a number": { type: "number", exclusiveMinimum: 0.25, maximum: 17.5 },
  "limits below zero": { type: "number", minimum: -3.75, exclusiveMaximum: -0.5 },
  "small limits": { type: "number", minimum: 1e-7, maximum: 2.5e-7 },
  "multiples of an integer": { type: "integer", multipleOf: 7, minimum: 20, maximum: 900 },
  "multiples of a fraction": { type: "number", multipleOf: 0.05 },
  "an array": list({ enum: ["x", 1, null, true] }, { minItems: 1 }),
  "a tuple": {
    type: "array",
    prefixItems: [{ type: "integer" }, { type: "string" }],
    items: false,
    minItems: 1,
  },
  "an array that contains": list(
    { type: ["integer", "string"] },
    { contains: { type: "string" }, minContains: 2 },
  ),
  "an array without equal items": list({ type: "string", maxLength: 1 }, { uniqueItems: true, minItems: 3 }),
  "an array of distinct integers": list({ type: "integer", minimum: 0, maximum: 4 }, { uniqueItems: true }),
  "an array of distinct members of an enum": list(
    { enum: ["a", "b", "c"] },
    { uniqueItems: true, minItems: 3, maxItems: 3 },
  ),
  "a closed object": objectOf({ a: { type: "integer" }, b: person }),
  "optional properties": {
    ...objectOf({ a: { type: "null" }, b: { type: "null" }, c: {} }),
    required: ["b"],
  },
  "names with escapes": objectOf({
    'a"b': { type: "null" },
    "c\\d": { type: "null" },
    "é\n": { type: "null" },
  }),
  "a required property that is not described": { type: "object", required: ["n"] },
  "numbers of properties": {
    type: "object",
    properties: { a: {}, b: {}, c: {} },
    minProperties: 2,
    maxProperties: 3,
  },
  "other properties of a type": {
    type: "object",
    properties: { a: {} },
    additionalProperties: { type: "integer" },
  },
  "patterns of names": {
    type: "object",
    patternProperties: { "^s_": { type: "string" }, _n$: { enum: ["q"] } },
    propertyNames: { maxLength: 5 },
    maxProperties: 3,
    additionalProperties: false,
  },
  "names that fit a pattern": {
    type: "object",
    propertyNames: { pattern: "^[a-c]{1,3}$" },
    maxProperties: 4,
  },
  "members of allOf": { allOf: [person, { properties: { n: { type: "integer" } }, required: ["n"] }] },
  "members of allOf that limit one property": {
    allOf: [objectOf({ n: { minimum: 3 } }), { properties: { n: { type: "integer", maximum: 5 } } }],
  },
  "limits beside anyOf": { ...person, anyOf: [{ required: ["a"] }, { required: ["b"] }] },
  "kinds that exclude each other": { oneOf: [kind("a", { n: { type: "null" } }), kind("b")] },
  "an integer or another number": { oneOf: [{ type: "integer" }, { type: "number", maximum: 5 }] },
  "strings of one of two patterns": {
    maxLength: 4,
    oneOf: [
      { type: "string", pattern: "^a" },
      { type: "string", pattern: "z$" },
    ],
  },
  "one of two properties": { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] },
  "not a type": { not: { type: ["string", "object", "array"] } },
  "not an enum": { type: "string", maxLength: 3, not: { enum: ["", "a", "b"] } },
  "not a property": { type: "object", properties: { a: {}, b: {} }, not: { required: ["a"] } },
  "not what is not": { not: { not: { type: "integer" } } },
  "if, then and else": {
    type: "object",
    properties: { kind: { enum: ["a", "b"] }, n: {} },
    required: ["kind"],
    if: { properties: { kind: { const: "a" } } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON schemas.
    then: { required: ["n"] },
    else: { properties: { n: false } },
  },
  "properties that need others": {
    type: "object",
    properties: { a: { type: "null" }, b: { type: "null" } },
    dependentRequired: { a: ["b"] },
  },
  "schemas of dependent properties": {
    type: "object",
    properties: { a: { type: "null" }, b: {} },
    dependentSchemas: { a: { properties: { b: { type: "integer" } }, required: ["b"] } },
  },
  references: {
    $defs: { n: { type: "integer", minimum: 3 }, list: list({ $ref: "#/$defs/n" }) },
    ...objectOf({ a: { $ref: "#/$defs/list" }, b: { $ref: "#/$defs/n", maximum: 40 } }),
  },
  "a tree": {
    $defs: { node: { ...objectOf({ name: { type: "string" }, of: list({ $ref: "#/$defs/node" }) }) } },
    $ref: "#/$defs/node",
  },
  "unevaluated properties": { type: "object", properties: { a: {} }, unevaluatedProperties: false },
};

describe("texts that are written within a JSON schema", () => {
  it.each(Object.entries(SCHEMAS))("are valid: %s", async (_, schema) => {
    const fits = ajv.compile(schema as object);
    for (let seed = 1; seed <= 2; seed++) {
      const text = await write(schema, new SeededRandom(seed));
      expect([text, fits(JSON.parse(text)), fits.errors]).toEqual([text, true, null]);
    }
  });
});

describe("what a grammar takes", () => {
  it.each<[string, unknown, string]>([
    ["escapes of any kind in a free string", { type: "string" }, '"\\u00e9 \\/ \\ud83d\\ude00 é"'],
    ["white space between the parts", objectOf({ a: { type: "null" } }), '{\n  "a" :\tnull\n}'],
    ["others after the named properties", person, '{"name": "x", "more": [1, {}]}'],
    ["a fraction and an exponent", { type: "number" }, "-12.5e+10"],
    ["prices", { type: "number", multipleOf: 0.01 }, "12.50"],
    ["a name that begins as another", { properties: { name: {} } }, '{"name2": 1}'],
    ["items that differ in their end", list({ type: "string" }, { uniqueItems: true }), '["a","ab"]'],
    ["draft 4's exclusive limits", { type: "integer", minimum: 3, exclusiveMinimum: true }, "4"],
    ["draft 4's tuples", { items: [{ type: "null" }], additionalItems: { type: "integer" } }, "[null,1]"],
    ["anchors", { $defs: { a: { $anchor: "x", type: "null" } }, $ref: "#x" }, "null"],
    ["the id of a part", { $defs: { a: { $id: "http://x/a", type: "null" } }, $ref: "http://x/a" }, "null"],
    [
      "references from a part with an id",
      {
        $id: "http://x/root",
        $defs: {
          n: { type: "integer" },
          part: { $id: "part/a", $defs: { n: { type: "null" } }, ...ref("#/$defs/n") },
        },
        ...ref("part/a"),
      },
      "null",
    ],
    [
      "an anchor that a caller sets",
      {
        $dynamicAnchor: "node",
        ...ref("tree"),
        $defs: {
          tree: { $id: "tree", $dynamicAnchor: "node", items: { $dynamicRef: "#node" }, type: "array" },
        },
      },
      "[[],[[]]]",
    ],
  ])("takes %s", (_, schema, text) => {
    expect(takes(schema, text)).toBe(true);
  });

  it.each<[string, unknown, string]>([
    ["control characters in a string", { type: "string" }, '"\n"'],
    ["half a surrogate", { type: "string" }, '"\\ud83d"'],
    ["a number with a leading zero", { type: "number" }, "01"],
    ["a number that is infinite", { type: "number" }, "1e999"],
    ["a limit that is exclusive in draft 4", { type: "integer", minimum: 3, exclusiveMinimum: true }, "3"],
    ["equal items", list({ type: "string" }, { uniqueItems: true }), '["a","b","a"]'],
    [
      "an integer that two members of oneOf take",
      { oneOf: [{ type: "integer" }, { type: "number" }] },
      "1.0",
    ],
    [
      "what looks like an id but is data",
      {
        ...ref("http://x/a"),
        $defs: { a: { $id: "http://x/a", type: "null" } },
        enum: [null, { $id: "http://x/a" }],
      },
      '{"$id":"http://x/a"}',
    ],
    ["a second spelling of what is not allowed", { type: "string", not: { const: "a" } }, '"\\u0061"'],
  ])("refuses %s", (_, schema, text) => {
    expect(takes(schema, text)).toBe(false);
  });

  it("closes objects that name their properties if it is strict", () => {
    expect(takes(person, '{"name":"x","more":1}', true)).toBe(false);
    expect(takes({ ...person, additionalProperties: true }, '{"name":"x","more":1}', true)).toBe(true);
    expect(takes({ type: "object" }, '{"more":1}', true)).toBe(true);
  });
});

describe("what a grammar cannot hold", () => {
  const warnings: string[] = [];
  const lenient = new StructuredOutput(vocabulary, [END], (text) => warnings.push(text));

  it.each<[object, string]>([
    [
      { properties: { a: list({ type: "object" }, { uniqueItems: true }) } },
      "uniqueItems of arrays or objects in properties.a",
    ],
    [
      { ...list({ type: "boolean" }), uniqueItems: true, minItems: 3 },
      "uniqueItems of 3 items with fewer values",
    ],
    [
      {
        ...ref("a"),
        $defs: {
          a: { $id: "a", $dynamicAnchor: "n", properties: { b: ref("b") } },
          b: { $id: "b", $dynamicAnchor: "n", properties: { c: { $dynamicRef: "#n" } } },
        },
      },
      "the reference #n, which depends on its caller in b.properties.c",
    ],
    [{ type: "array", contains: { const: 1 }, maxContains: 2 }, "maxContains"],
    [{ oneOf: [{ type: "integer" }, { type: "integer" }] }, "oneOf with overlapping members"],
    [{ oneOf: [true, true] }, "oneOf with overlapping members"],
    [{ type: "string", pattern: "(a)\\1" }, "pattern with \\1, which refers to an earlier part"],
    [{ type: "string", pattern: "\\bword" }, "pattern with \\b, which looks back"],
    [{ allOf: [person], unevaluatedProperties: false }, "unevaluatedProperties"],
    [{ type: "number", multipleOf: 1e-20 }, "multipleOf"],
  ])("is named: %j", async (schema, expected) => {
    const format = { type: "json_schema", schema } as const;
    await expect(structured.constrain(format)).rejects.toThrow(
      `cannot read response_format: the grammar of a JSON schema cannot hold ${expected}`,
    );
    warnings.length = 0;
    expect(await (await lenient.constrain(format))!.allowed()).toBeDefined();
    expect(warnings).toEqual([`the grammar of a JSON schema cannot hold ${expected}: texts may break them`]);
  });

  it.each<[unknown, string]>([
    [
      { type: "objec" },
      'expected one of string, number, integer, boolean, null, array, object as the type at the root, got "objec"',
    ],
    [{ properties: { a: { $ref: "#/x" } } }, "cannot find #/x, which properties.a refers to"],
    [ref("#/%"), "cannot find #/%, which the root refers to"],
    [{ required: "a" }, 'expected an array as required at the root, got "a"'],
    [{ enum: "a" }, 'expected an array as enum at the root, got "a"'],
    [{ properties: { a: 3 } }, "expected an object or a boolean at properties.a, got 3"],
    [{ minLength: -1 }, "expected a number of at least 0 as minLength at the root, got -1"],
    [{ $ref: "#" }, "the schema at the root refers to itself without an end"],
    [{ type: "string", minLength: 3, maxLength: 2 }, "no value fits the schema"],
    [
      {
        $defs: { n: { properties: { next: { $ref: "#/$defs/n" } }, required: ["next"], type: "object" } },
        $ref: "#/$defs/n",
      },
      "no value fits the schema",
    ],
    [
      objectOf({
        a: { type: "object", properties: { b: {} }, additionalProperties: false, minProperties: 2 },
      }),
      "no value fits the schema",
    ],
    [
      objectOf({ a: { type: "object", propertyNames: { const: "b" }, minProperties: 2 } }),
      "no value fits the schema",
    ],
  ])("is not a schema: %j", async (schema, message) => {
    await expect(structured.constrain({ type: "json_schema", schema })).rejects.toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: `cannot read the format of the answer: ${message}`,
      }),
    );
  });
});

it("spends a limited time on a schema with many parts that are too complex", async () => {
  const letters = [..."abcdefghijklmnop"];
  const hard = letters.map((one) => ({
    type: "string",
    pattern: `${one}.{12}$`,
    not: { pattern: "^.{14,99}$" },
  }));
  const part = { allOf: [...hard, { pattern: "^[a-p]{30,}$" }] };
  const schema = { properties: Object.fromEntries(letters.map((one) => [one, { ...part, title: one }])) };
  const { regexes, unheld } = jsonGrammar(schema, true);
  expect(unheld.length).toBeGreaterThan(0);
  expect(regexes.size).toBeLessThan(400_000);
});

it("allows no token in an array of different items that the array then refuses", async () => {
  const items = { enum: ["a", "b", 1, true, false] };
  const schema = { type: "array", items, uniqueItems: true, minItems: 4 };
  const pairs = ['","', '"a","', "1,", ",1", 'true,"', "false,t", ",fals", "e,"];
  const tokens = [...new Set([...'[]",ab1truefals', ...pairs]), ""];
  const own = new StructuredOutput({ tokens, spelling: "raw" }, [tokens.length - 1]);
  for (let seed = 1; seed <= 20; seed++) {
    const random = new SeededRandom(seed);
    const constraint = (await own.constrain({ type: "json_schema", schema }))!;
    let text = "";
    while (!constraint.finished) {
      const mask = await constraint.allowed();
      const all = [...tokens.keys()].filter((id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1);
      const id = all[random.below(all.length)]!;
      constraint.accept(id);
      text += tokens[id];
    }
    expect(new Set(JSON.parse(text)).size).toBe(JSON.parse(text).length);
  }
});

it("masks are those of the tokens that may follow, also where strings that may end share one", () => {
  const schema = objectOf({
    text: { type: "string", minLength: 66, maxLength: 90 },
    code: { type: "string", pattern: "^([a-z]{2} ?){66,80}$" },
  });
  const { root, regexes, plainChars } = jsonGrammar(schema, true);
  const tokens = new TokenBytes(vocabulary.tokens, vocabulary.spelling, vocabulary.tokens.length);
  const grammar = new TokenGrammar(new GrammarMachine(regexes, root), tokens, [END], plainChars);
  const random = new SeededRandom(3);
  let state = grammar.machine.start;
  while (!state.mayEnd) {
    const mask = grammar.mask(state);
    const after = vocabulary.tokens.map((_, id) => grammar.after(state, id, new JsonScalars()));
    const expected = [...after.keys()].filter((id) => after[id] !== undefined);
    expect([...after.keys()].filter((id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1)).toEqual(expected);
    // White space would take long.
    const others = expected.filter((id) => !/^[ĠĊ]+$/.test(vocabulary.tokens[id]!));
    state = after[others[random.below(others.length)]!]!;
  }
});
