import type { ResponseFormat } from "../../src/sampling/sampling-parameters.js";

const schema = (value: object): ResponseFormat => ({ type: "json_schema", schema: value });
const range = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const named = (count: number, value: (i: number) => unknown) =>
  Object.fromEntries(range(count, (i) => [`p${i}`, value(i)]));
const oneOf = (count: number) =>
  schema({
    oneOf: range(count, (i) => ({ type: "object", properties: { [`p${i}`]: {} }, required: [`p${i}`] })),
  });
const openOneOf = (count: number) =>
  schema({
    oneOf: range(count, (i) => ({ type: "object", properties: { [`p${i}`]: { type: "integer" } } })),
  });
const nested = (depth: number, wrap: (inner: object) => object) =>
  range(depth, () => 0).reduce<object>((inner) => wrap(inner), { type: "string" });

/** Formats that ask for much work, by the keyword that does it. */
export const HOSTILE_FORMATS: Readonly<Record<string, ResponseFormat>> = {
  "oneOf of 60 open objects": openOneOf(60),
  "oneOf of 120 open objects": openOneOf(120),
  "oneOf of 500 objects": oneOf(500),
  "40 if and then": schema({
    allOf: range(40, (i) => ({
      if: { properties: { [`a${i}`]: { const: 1 } }, required: [`a${i}`] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON schemas
      then: { required: [`b${i}`] },
      else: { required: [`c${i}`] },
    })),
  }),
  "a multiple of 999983": schema({ type: "number", multipleOf: 999983 }),
  "a multiple of 1e300 with limits": schema({
    type: "number",
    multipleOf: 1e300,
    minimum: 1,
    maximum: 1e308,
  }),
  "1,000 optional properties": schema({ type: "object", properties: named(1000, () => ({})) }),
  "20,000 optional properties": schema({ type: "object", properties: named(12_000, () => ({})) }),
  "200 patternProperties": schema({
    type: "object",
    patternProperties: Object.fromEntries(range(200, (i) => [`^a${i}[0-9]*x`, {}])),
  }),
  "10 rules with 4 patterns": schema({
    allOf: range(10, (i) => ({
      patternProperties: Object.fromEntries(range(4, (j) => [`a${i}.*b${j}`, { type: "string" }])),
    })),
  }),
  "16 patterns at once": schema({
    type: "string",
    allOf: [..."abcdefghijklmnop"].map((one) => ({
      pattern: `${one}.{12}$`,
      not: { pattern: "^.{14,99}$" },
    })),
  }),
  "nested repetitions of a pattern": { type: "regex", pattern: "((a{1,500}b?){1,500}c?){1,500}" },
  "an alternative at a distance": { type: "regex", pattern: "(?=.*a.{18}$)(?=.*b.{17}$)(?!.*c.{16}$)[a-c]*" },
  "nested repetitions of assertions": { type: "regex", pattern: `${"(".repeat(12)}^a${"){0,8}".repeat(12)}` },
  "a pattern of 200,000 characters": { type: "regex", pattern: "[ab]|".repeat(40_000) },
  "100 properties of Unicode": {
    type: "regex",
    pattern: [..."Latn,Grek,Cyrl,Armn,Hebr,Arab,Syrc,Thaa,Deva,Beng,Guru,Gujr,Orya,Taml".split(",")]
      .map((one) => `\\p{Script=${one}}`)
      .join("|"),
  },
  "a chain of 2,000 references": schema({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      range(2000, (i) => [`d${i}`, i < 1999 ? { $ref: `#/$defs/d${i + 1}` } : { type: "string" }]),
    ),
  }),
  "references below a long identifier": schema({
    $id: `http://a/${"b".repeat(100_000)}`,
    properties: named(8_000, () => ({ $ref: "#/a" })),
    a: {},
  }),
  "900 nested arrays": schema(nested(900, (items) => ({ type: "array", items }))),
  "40 nested choices of two": schema({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      range(40, (i) => {
        const inner = i < 39 ? { $ref: `#/$defs/d${i + 1}` } : { type: "string" };
        const object = { type: "object", properties: { a: inner, b: inner } };
        return [`d${i}`, { oneOf: [{ type: "array", items: inner }, object] }];
      }),
    ),
  }),
  "20 unions of 20 objects": schema({
    allOf: range(20, (i) => ({
      anyOf: range(20, (j) => ({ type: "object", properties: { [`a${i}_${j}`]: { type: "integer" } } })),
    })),
  }),
  "an array that contains 100,000,000 items": schema({
    type: "array",
    contains: { type: "string" },
    minContains: 100_000_000,
  }),
  "1,000 different items": schema({
    type: "array",
    uniqueItems: true,
    minItems: 1000,
    items: { type: "string", pattern: "^[a-z]{3}$" },
  }),
  "an enumeration of 20,000": schema({ enum: range(20_000, (i) => `value ${i}`) }),
  "not with 300 members": schema({ type: "string", not: { enum: range(300, (i) => `n${i}`) }, minLength: 3 }),
  "40 objects without others": schema({
    type: "object",
    allOf: range(40, (i) => ({ not: { properties: { [`p${i}`]: { const: i } }, required: [`p${i}`] } })),
  }),
  "100 dependent schemas": schema({
    dependentSchemas: named(100, (i) => ({ required: [`q${i}`] })),
  }),
  "a choice of 20,000": { type: "choice", texts: range(20_000, (i) => `choice ${i}`) },
  "a choice of a long text": { type: "choice", texts: ["a".repeat(200_000)] },
  "rules that double": {
    type: "grammar",
    grammar: `root ::= r30\nr0 ::= "a"?\n${range(30, (i) => `r${i + 1} ::= r${i} r${i}`).join("\n")}`,
  },
  "rules that may each be left out": {
    type: "grammar",
    grammar: `root ::= r30\nr0 ::= "a"\n${range(30, (i) => `r${i + 1} ::= r${i}? r${i}?`).join("\n")}`,
  },
  "10,000 rules": {
    type: "grammar",
    grammar: `root ::= r0\n${range(10_000, (i) => `r${i} ::= "a" r${i + 1}`).join("\n")}\nr10000 ::= root?`,
  },
  "an ambiguous grammar": {
    type: "grammar",
    grammar: 'root ::= "a" | "(" root root root? ")" | "((" root* "a"*',
  },
  "a recursion that ends with itself": {
    type: "grammar",
    grammar: `root ::= a* b*\na ::= "x" root? | "x" a? "x"?\nb ::= "x" a b? | "x"`,
  },
  "a comment of many hashes": { type: "grammar", grammar: `root ::= a ${"#".repeat(60)}` },
  "Lark with many lines": { type: "grammar", grammar: `start: "a"${"\n".repeat(200_000)}| "b"` },
  "Lark with many terminals": {
    type: "grammar",
    grammar: `start: (${range(3000, (i) => `T${i}`).join("|")})*\n${range(3000, (i) => `T${i}: /t${i}[a-z]{1,50}/`).join("\n")}`,
  },
  "a long bounded string with a pattern": schema({
    type: "string",
    minLength: 100_000,
    maxLength: 200_000,
    pattern: "^([a-z]|[a-m][n-z])*x.{50,60}$",
  }),
};
