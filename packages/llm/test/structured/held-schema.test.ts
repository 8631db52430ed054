import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ConstraintVocabulary, readConstraintVocabulary, StructuredOutput } from "@tritonjs/llm";
import { expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { holdSchema } from "../../src/sampling/held-schema.js";
import { STORIES } from "../support/stories.js";

const person = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

it.each<[object, string[]]>([
  [{ type: "integer", multipleOf: 3 }, ["multipleOf"]],
  [{ properties: { list: { type: "array", uniqueItems: true } } }, ["uniqueItems in properties.list"]],
  [{ type: "array", contains: { type: "string" } }, ["contains"]],
  [{ type: "object", dependentRequired: { a: ["b"] } }, ["dependentRequired"]],
  [{ if: { type: "string" }, else: {} }, ["if"]],
  [{ not: { type: "string" } }, ["not"]],
  [{ type: "object", propertyNames: { pattern: "^a" } }, ["propertyNames"]],
  [{ oneOf: [{ type: "integer" }, { type: "number" }] }, ["oneOf with overlapping members"]],
  [{ allOf: [{ type: "string" }, { type: "integer" }] }, ["allOf"]],
  [{ properties: { 'a"b': { type: "string" } } }, ['the name "a\\"b"']],
  [
    { type: "string", minLength: 2, pattern: "a+" },
    ["minLength or maxLength beside pattern, format or several types"],
  ],
  [{ $ref: "#/$defs/a", minimum: 3, $defs: { a: { type: "integer" } } }, ["other keywords beside $ref"]],
  [{ type: "string", anyOf: [{ type: "integer" }] }, ["other keywords beside anyOf"]],
  [{ type: "array", uniqueItems: false }, []],
  [{ oneOf: [{ type: "string" }, { type: "null" }] }, []],
  [
    {
      oneOf: ["a", "b"].map((kind) => ({
        type: "object",
        properties: { kind: { const: kind } },
        required: ["kind"],
      })),
    },
    [],
  ],
])("names what a grammar cannot hold in %j", (schema, expected) => {
  expect(holdSchema(schema).unheld).toEqual(expected);
});

it("joins the members of allOf", () => {
  const age = { properties: { age: { type: "integer", minimum: 0 } }, required: ["age"] };
  expect(holdSchema({ allOf: [person, age] }).schema).toEqual({
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
    required: ["name", "age"],
  });
});

it("makes limits beside a choice a part of each member", () => {
  const schema = { title: "t", ...person, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
  expect(holdSchema(schema).schema).toEqual({
    title: "t",
    anyOf: ["a", "b"].map((name) => ({
      ...person,
      properties: { ...person.properties, [name]: {} },
      required: ["name", name],
    })),
  });
});

const tokenizer = JSON.parse(readFileSync(join(STORIES, "tokenizer.json"), "utf8"));
const vocabulary: ConstraintVocabulary = readConstraintVocabulary(tokenizer);
const END = tokenizer.added_tokens.at(-1).id;
const structured = new StructuredOutput(vocabulary, [END]);

/** Bytes of a text that is written by choosing among the allowed tokens, with a preference for the end. */
async function write(schema: unknown, random: SeededRandom): Promise<string> {
  const constraint = (await structured.constrain({ type: "json_schema", schema }))!;
  const letters = byteLetters();
  const bytes: number[] = [];
  for (let step = 0; step < 400; step++) {
    const mask = await constraint.allowed();
    const all = [...vocabulary.tokens.keys()].filter((id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1);
    const closing =
      step < 12 ? [] : all.filter((id) => id === END || /^["}\]]+$/.test(vocabulary.tokens[id]!));
    const among = closing.length > 0 ? closing : all;
    const id = among[random.below(among.length)]!;
    if (constraint.accept(id)) break;
    for (const letter of vocabulary.tokens[id]!) bytes.push(letters.get(letter)!);
  }
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

interface Valid {
  readonly what: string;
  readonly schema: object;
  // biome-ignore lint/suspicious/noExplicitAny: the values of any schema.
  readonly fits: (value: any) => boolean;
}

const kind = (name: string, properties: object) => ({
  type: "object",
  properties: { kind: { const: name }, ...properties },
  required: ["kind", ...Object.keys(properties)],
  additionalProperties: false,
});

it.each<Valid>([
  {
    what: "a string of limited length",
    schema: {
      type: "object",
      properties: { s: { type: "string", minLength: 2, maxLength: 9 } },
      required: ["s"],
      additionalProperties: false,
    },
    fits: ({ s, ...others }) => [...s].length >= 2 && [...s].length <= 9 && Object.keys(others).length === 0,
  },
  {
    what: "members of allOf",
    schema: { allOf: [person, { properties: { n: { type: "integer" } }, required: ["n"] }] },
    fits: ({ name, n }) => typeof name === "string" && Number.isInteger(n),
  },
  {
    what: "kinds that exclude each other",
    schema: { oneOf: [kind("a", { n: { type: "null" } }), kind("b", {})] },
    fits: (value) => (value.kind === "a" ? value.n === null : value.kind === "b" && !("n" in value)),
  },
  {
    what: "a property that is required and not described",
    schema: { type: "object", required: ["n"] },
    fits: (value) => "n" in value,
  },
  {
    what: "an array",
    schema: { type: "array", items: { enum: ["x", 1, null, true] }, minItems: 1, maxItems: 4 },
    fits: (value) =>
      value.length >= 1 &&
      value.length <= 4 &&
      value.every((one: unknown) => ["x", 1, null, true].includes(one as string)),
  },
])("each text of $what is valid", async ({ schema, fits }) => {
  for (let seed = 1; seed <= 6; seed++) {
    const text = await write(schema, new SeededRandom(seed));
    expect([text, fits(JSON.parse(text))]).toEqual([text, true]);
  }
});

it("a schema that cannot be held is refused by its keyword, or compiles with a warning", async () => {
  const format = { type: "json_schema", schema: { type: "integer", multipleOf: 3 } } as const;
  await expect(structured.constrain(format)).rejects.toThrow(
    "cannot read response_format: the grammar of a JSON schema cannot hold multipleOf",
  );
  const warnings: string[] = [];
  const lenient = new StructuredOutput(vocabulary, [END], (text) => warnings.push(text));
  (await lenient.constrain(format))!.release();
  expect(warnings).toEqual(["the grammar of a JSON schema cannot hold multipleOf: texts may break them"]);
});
