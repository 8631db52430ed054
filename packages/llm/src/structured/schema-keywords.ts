import { type Regex, TooComplex, UNBOUNDED } from "./byte-regex.js";
import type { JsonText } from "./json-text.js";
import { patternRegex, UnheldPattern } from "./pattern.js";
import type { ArrayForm, ObjectForm, SCALARS, SchemaNode, ValueShape, Values } from "./shape.js";

export type Schema = Readonly<Record<string, unknown>>;

/**
 * Which values a shape has where a schema cannot be said exactly: fewer than the schema (what a text may have), or more
 * (what is taken away from others by `not` and `oneOf`).
 */
export type Bound = "fewer" | "more";

/** A schema that is not one. The message says why. */
export class InvalidSchema extends Error {}

const TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"];

/** The schemas of a document, as the reader of their keywords needs them. */
interface Schemas {
  readonly anything: Values;
  readonly nothing: Values;
  /** The schema of a keyword, with its place. */
  node(schema: unknown, path: string): SchemaNode;
  valuesOf(fit: readonly SchemaNode[]): Values;
  shape(values: Values): ValueShape;
  /** Takes a keyword that is not held. */
  report(keyword: string, node: SchemaNode): void;
}

/** Reads the keywords that stand in a schema itself: the texts of its scalars, the forms of its arrays and objects. */
export class KeywordReader {
  constructor(
    private readonly schemas: Schemas,
    private readonly text: JsonText,
  ) {}

  literals(values: readonly unknown[], node: SchemaNode): ValueShape {
    const { none } = this.text.regexes;
    const texts: Record<(typeof SCALARS)[number], Regex[]> = {
      string: [],
      number: [],
      boolean: [],
      null: [],
    };
    const arrays: ArrayForm[] = [];
    const objects: ObjectForm[] = [];
    const constant = (value: unknown) =>
      this.schemas.valuesOf([this.schemas.node({ const: value }, node.path)]);
    for (const value of values) {
      if (Array.isArray(value)) {
        const rules = [{ first: value.map(constant), rest: this.schemas.nothing }];
        arrays.push({ rules, min: value.length, max: value.length, isUnique: false });
      } else if (typeof value === "object" && value !== null) {
        const entries = Object.entries(value);
        const named = new Map(entries.map(([name, one]) => [name, constant(one)]));
        objects.push({
          rules: [{ named, patterns: [], others: this.schemas.nothing }],
          required: new Set(named.keys()),
          keys: [],
          min: 0,
          max: UNBOUNDED,
        });
      } else if (typeof value !== "number" || Number.isFinite(value)) {
        const kind = value === null ? "null" : (typeof value as "string");
        texts[kind].push(this.text.literal(value as string));
      }
    }
    const any = (regexes: readonly Regex[]) =>
      regexes.length === 0 ? none : this.text.regexes.any(...regexes);
    return {
      string: any(texts.string),
      number: any(texts.number),
      boolean: any(texts.boolean),
      null: any(texts.null),
      arrays,
      objects,
    };
  }

  strings(node: SchemaNode, schema: Schema, bound: Bound): Regex {
    const { text } = this;
    const { regexes } = text;
    const parts: Regex[] = [];
    const min = countOf(schema, "minLength", node.path) ?? 0;
    const max = countOf(schema, "maxLength", node.path) ?? UNBOUNDED;
    if (min > max) return regexes.none;
    if (min > 0 || max < UNBOUNDED) parts.push(regexes.repeat(text.anyChar, min, max));
    if (typeof schema.pattern === "string")
      parts.push(...this.#pattern(schema.pattern, false, "pattern", node));
    const format = bound === "more" ? undefined : FORMATS.get(String(schema.format));
    if (format !== undefined) parts.push(...this.#pattern(format, true, "format", node));
    if (parts.length === 0) return text.string;
    return this.nonEmpty(text.quoted(regexes.both(...parts)), "pattern", node);
  }

  #pattern(pattern: string, isWhole: boolean, keyword: string, node: SchemaNode): Regex[] {
    try {
      return [patternRegex(pattern, this.text.regexes, this.text, isWhole)];
    } catch (error) {
      if (!(error instanceof UnheldPattern)) throw error;
      this.schemas.report(`${keyword} with ${error.message}`, node);
      return [];
    }
  }

  /** The expression, or `none` if it has no match. */
  nonEmpty(regex: Regex, keyword: string, node: SchemaNode): Regex {
    try {
      return this.text.regexes.hasMatch(regex) ? regex : this.text.regexes.none;
    } catch (error) {
      if (!(error instanceof TooComplex)) throw error;
      this.schemas.report(`${keyword}, which is too complex`, node);
      return this.text.regexes.none;
    }
  }

  numbers(node: SchemaNode, schema: Schema, withFractions: boolean, bound: Bound): Regex {
    const { text } = this;
    const { regexes } = text;
    const parts = [withFractions ? text.number : text.integer];
    const limit = (name: string) => {
      const value = schema[name];
      if (value === undefined || typeof value === "boolean") return undefined;
      if (typeof value === "number" && Number.isFinite(value)) return value;
      throw new InvalidSchema(
        `expected a number as ${name} at ${node.path || "the root"}, got ${nameOfValue(value)}`,
      );
    };
    const [min, max] = [limit("minimum"), limit("maximum")];
    if (min !== undefined) parts.push(text.atLeast(min, schema.exclusiveMinimum === true));
    if (max !== undefined) parts.push(text.atMost(max, schema.exclusiveMaximum === true));
    const [above, below] = [limit("exclusiveMinimum"), limit("exclusiveMaximum")];
    if (above !== undefined) parts.push(text.atLeast(above, true));
    if (below !== undefined) parts.push(text.atMost(below, true));
    const of = limit("multipleOf");
    if (of !== undefined && of <= 0) {
      throw new InvalidSchema(`expected multipleOf above 0 at ${node.path || "the root"}, got ${of}`);
    }
    if (of !== undefined && !(of === 1 && !withFractions)) {
      const multiple = text.multipleOf(of);
      if (multiple === undefined) this.schemas.report("multipleOf", node);
      else parts.push(multiple);
    }
    if (bound === "fewer" && schema.format === "int32")
      parts.push(text.integer, text.atLeast(-(2 ** 31), false), text.atMost(2 ** 31 - 1, false));
    if (bound === "fewer" && schema.format === "int64") parts.push(text.integer);
    if (parts.length === 1) return parts[0]!;
    return this.nonEmpty(regexes.both(...parts), "the limits of a number", node);
  }

  arrays(node: SchemaNode, schema: Schema, bound: Bound): ArrayForm[] {
    const at = (name: string) => (node.path === "" ? name : `${node.path}.${name}`);
    const values = (one: unknown, name: string) => this.schemas.valuesOf([this.schemas.node(one, at(name))]);
    const isOldTuple = Array.isArray(schema.items);
    const tuple = isOldTuple ? (schema.items as unknown[]) : schemasOf(schema, "prefixItems", node.path);
    const restName = isOldTuple ? "additionalItems" : "items";
    const rest = schema[restName];
    const rules: { first: Values[]; rest: Values | undefined }[] = [];
    if (tuple.length > 0 || rest !== undefined) {
      const first = tuple.map((one, i) => values(one, `${isOldTuple ? "items" : "prefixItems"}[${i}]`));
      rules.push({ first, rest: rest === undefined ? undefined : values(rest, restName) });
    }
    let min = countOf(schema, "minItems", node.path) ?? 0;
    const max = countOf(schema, "maxItems", node.path) ?? UNBOUNDED;
    if (schema.contains !== undefined && schema.minContains !== 0) {
      const times = countOf(schema, "minContains", node.path) ?? 1;
      // The first items are those that fit.
      this.text.regexes.budget.spend(times);
      this.text.regexes.budget.hold(8 * times);
      if (bound === "fewer")
        rules.push({ first: Array(times).fill(values(schema.contains, "contains")), rest: undefined });
      min = Math.max(min, times);
    }
    if (bound === "fewer" && schema.maxContains !== undefined && schema.contains !== undefined)
      this.schemas.report("maxContains", node);
    if (schema.unevaluatedItems !== undefined && schema.unevaluatedItems !== true) {
      if (hasBranches(schema)) this.schemas.report("unevaluatedItems", node);
      else if (rest === undefined) {
        rules.push({
          first: tuple.map(() => this.schemas.anything),
          rest: values(schema.unevaluatedItems, "unevaluatedItems"),
        });
      }
    }
    return [{ rules, min, max, isUnique: schema.uniqueItems === true }];
  }

  objects(node: SchemaNode, schema: Schema): ObjectForm[] {
    const at = (name: string) => (node.path === "" ? name : `${node.path}.${name}`);
    const values = (one: unknown, name: string) => this.schemas.valuesOf([this.schemas.node(one, at(name))]);
    const entries = (name: string) => entriesOf(schema, name, node.path);
    const named = new Map(entries("properties").map(([key, one]) => [key, values(one, `properties.${key}`)]));
    const patterns = entries("patternProperties").flatMap(([pattern, one]) =>
      this.#pattern(pattern, false, "patternProperties", node).map((key) => ({
        key: this.text.quoted(key),
        values: values(one, `patternProperties.${pattern}`),
      })),
    );
    let others = schema.additionalProperties;
    if (schema.unevaluatedProperties !== undefined && schema.unevaluatedProperties !== true) {
      if (hasBranches(schema)) this.schemas.report("unevaluatedProperties", node);
      else others ??= schema.unevaluatedProperties;
    }
    const rules =
      named.size === 0 && patterns.length === 0 && others === undefined
        ? []
        : [
            {
              named,
              patterns,
              others: others === undefined ? undefined : values(others, "additionalProperties"),
            },
          ];
    // In draft 3, a property had `required: true` itself.
    const required = typeof schema.required === "boolean" ? [] : schemasOf(schema, "required", node.path);
    return [
      {
        rules,
        required: new Set(required.filter((name): name is string => typeof name === "string")),
        keys: this.#keys(node, schema.propertyNames),
        min: countOf(schema, "minProperties", node.path) ?? 0,
        max: countOf(schema, "maxProperties", node.path) ?? UNBOUNDED,
      },
    ];
  }

  #keys(node: SchemaNode, schema: unknown): Regex[] {
    if (schema === undefined || schema === true) return [];
    const shape = this.schemas.shape(
      this.schemas.valuesOf([this.schemas.node(schema, `${node.path}.propertyNames`.replace(/^\./, ""))]),
    );
    return [shape.string];
  }
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function nameOfValue(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : JSON.stringify(value);
}

/** Keywords that evaluate properties or items beside a schema's own. */
function hasBranches(schema: Schema): boolean {
  return ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"].some(
    (name) => schema[name] !== undefined,
  );
}

export function typesOf(schema: Schema, path: string): readonly string[] | undefined {
  if (schema.type === undefined) return undefined;
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  for (const type of types) {
    if (TYPES.includes(type)) continue;
    throw new InvalidSchema(
      `expected one of ${TYPES.join(", ")} as the type at ${path || "the root"}, got ${nameOfValue(type)}`,
    );
  }
  return types;
}

export function schemasOf(schema: Schema, name: string, path: string): readonly unknown[] {
  const value = schema[name];
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw new InvalidSchema(`expected an array as ${name} at ${path || "the root"}, got ${nameOfValue(value)}`);
}

export function entriesOf(schema: Schema, name: string, path: string): [string, unknown][] {
  const value = schema[name];
  if (value === undefined) return [];
  if (isSchema(value)) return Object.entries(value);
  throw new InvalidSchema(
    `expected an object as ${name} at ${path || "the root"}, got ${nameOfValue(value)}`,
  );
}

function countOf(schema: Schema, name: string, path: string): number | undefined {
  const value = schema[name];
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && (value as number) >= 0) return value as number;
  throw new InvalidSchema(
    `expected a number of at least 0 as ${name} at ${path || "the root"}, got ${nameOfValue(value)}`,
  );
}

const DATE =
  "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
const TIME =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const CLOCK_PERIOD = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
const DAYS = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
const BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const DOMAIN = `${LABEL}(?:\\.${LABEL})+`;
/** At most 63 characters a label, and 253 together. */
const SHORT_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?";
const HOST = `${SHORT_LABEL}(?:\\.${SHORT_LABEL}){0,7}`;
const H16 = "[0-9A-Fa-f]{1,4}";
const PATH_CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const PATH = `(?:/${PATH_CHARACTER}*)*`;
const QUERY = `(?:\\?(?:${PATH_CHARACTER}|[/?])*)?(?:#(?:${PATH_CHARACTER}|[/?])*)?`;
const ORIGIN = `[A-Za-z][A-Za-z0-9+.-]*://${DOMAIN}(?::[0-9]{1,4})?`;
const URI = `${ORIGIN}${PATH}${QUERY}`;
const URI_REFERENCE = `(?:${ORIGIN})?${PATH}${QUERY}`;
const EMAIL = `[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@${DOMAIN}`;
const POINTER = "(?:/(?:[^~/]|~[01])*)*";

/**
 * Formats of JSON schemas as patterns of ECMAScript, without `^` and `$`. Each matches a part of what its RFC allows, so
 * that every validator takes the text. A format that is not here is a note and limits nothing, as the specification has
 * it.
 */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ["date", DATE],
  ["time", TIME],
  ["iso-time", TIME],
  ["date-time", `${DATE}T${TIME}`],
  ["iso-date-time", `${DATE}T${TIME}`],
  ["duration", `P(?:[0-9]+W|${DAYS}(?:${CLOCK_PERIOD})?|${CLOCK_PERIOD})`],
  ["uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"],
  ["email", EMAIL],
  ["idn-email", EMAIL],
  ["hostname", HOST],
  ["idn-hostname", HOST],
  ["ipv4", `${BYTE}(?:\\.${BYTE}){3}`],
  [
    "ipv6",
    `(?:${H16}:){7}${H16}|::(?:${H16}(?::${H16}){0,5})?|${H16}::(?:${H16}(?::${H16}){0,4})?|${H16}:${H16}::(?:${H16}(?::${H16}){0,3})?`,
  ],
  ["uri", URI],
  ["iri", URI],
  ["url", "https?://[a-z0-9]+(?:\\.[a-z0-9]+){0,4}\\.[a-z]{2,10}(?::[1-9][0-9]{1,3})?(?:/[A-Za-z0-9._~-]*)*"],
  ["uri-reference", URI_REFERENCE],
  ["iri-reference", URI_REFERENCE],
  ["uri-template", `(?:${ORIGIN})?(?:/(?:[A-Za-z0-9._~-]|\\{[A-Za-z0-9_]+\\})*)*`],
  ["json-pointer", POINTER],
  ["relative-json-pointer", `(?:0|[1-9][0-9]{0,9})(?:#|${POINTER})`],
  ["json-pointer-uri-fragment", "#(?:/(?:[A-Za-z0-9_.!$&'()*+,;:=@-]|%[0-9A-Fa-f]{2}|~0|~1)*)*"],
  ["regex", "[A-Za-z0-9_ ,;:-]*"],
  ["byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"],
]);
