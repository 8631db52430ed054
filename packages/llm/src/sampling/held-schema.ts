/**
 * A JSON schema as the grammar compiler holds it. The compiler ignores some keywords, so a text could break them. Here
 * they are rewritten where there is an equal form, and reported otherwise.
 */
export interface HeldSchema {
  readonly schema: unknown;
  /** Keywords that the grammar cannot hold, with their paths, such as `multipleOf in properties.age`. */
  readonly unheld: readonly string[];
}

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that a grammar cannot hold, unless their value has no effect. */
const UNHELD: Readonly<Record<string, (value: unknown) => boolean>> = {
  multipleOf: () => true,
  uniqueItems: (value) => value === true,
  contains: () => true,
  minContains: () => true,
  maxContains: () => true,
  dependentRequired: hasMembers,
  dependentSchemas: hasMembers,
  dependencies: hasMembers,
  if: () => true,
  not: () => true,
  propertyNames: () => true,
  unevaluatedProperties: (value) => value !== true,
  unevaluatedItems: (value) => value !== true,
};

/** Keywords whose values are schemas by name, lists of schemas, or one schema. */
const BY_NAME = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS = ["anyOf", "oneOf", "prefixItems"];
const SINGLE = ["items", "additionalProperties", "additionalItems"];

/** Keywords that describe a schema and do not limit its values. */
const NOTES = new Set([
  "title",
  "description",
  "default",
  "examples",
  "$comment",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

/** Keywords that name schemas, and limit nothing where they stand. */
const META = new Set(["$schema", "$id", "$defs", "definitions", "$anchor", "id"]);

function hasMembers(value: unknown): boolean {
  return Object.keys(Object(value)).length > 0;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Rewrites a schema, and reports the keywords that a grammar cannot hold. */
export function holdSchema(schema: unknown): HeldSchema {
  const unheld: string[] = [];
  return { schema: new Holder(unheld).hold(schema, ""), unheld };
}

class Holder {
  constructor(private readonly unheld: string[]) {}

  hold(given: unknown, path: string): unknown {
    if (!isSchema(given)) return given;
    const schema: Record<string, unknown> = { ...this.#distributed(this.#merged(given, path), path) };
    for (const [keyword, limits] of Object.entries(UNHELD)) {
      if (schema[keyword] !== undefined && limits(schema[keyword])) this.#report(keyword, path);
    }
    this.#nameRequired(schema, path);
    for (const name of BY_NAME) {
      if (!isSchema(schema[name])) continue;
      const entries = Object.entries(schema[name]);
      for (const [key] of entries)
        if (isUnspellable(key)) this.#report(`the name ${JSON.stringify(key)}`, path);
      schema[name] = Object.fromEntries(
        entries.map(([key, one]) => [key, this.hold(one, `${path}.${name}.${key}`)]),
      );
    }
    for (const name of LISTS) {
      if (!Array.isArray(schema[name])) continue;
      schema[name] = schema[name].map((one, i) => this.hold(one, `${path}.${name}[${i}]`));
    }
    for (const name of SINGLE)
      if (isSchema(schema[name])) schema[name] = this.hold(schema[name], `${path}.${name}`);
    if (Array.isArray(schema.oneOf) && !areDisjoint(schema.oneOf))
      this.#report("oneOf with overlapping members", path);
    return this.#withLengths(schema, path);
  }

  #report(keyword: string, path: string): void {
    this.unheld.push(path === "" ? keyword : `${keyword} in ${path.slice(1)}`);
  }

  /** The compiler takes the first member of `allOf` alone, so members are joined where they do not interact. */
  #merged(schema: Schema, path: string): Schema {
    if (!Array.isArray(schema.allOf)) return schema;
    const { allOf, ...own } = schema;
    const members = allOf.map((one) => (isSchema(one) ? this.#merged(one, path) : {}));
    const parts = [own, ...members].filter((one) => Object.keys(one).some((key) => !NOTES.has(key)));
    if (parts.length === 1) return { ...own, ...parts[0] };
    const joined = parts.reduce<Schema | undefined>(
      (all, one) => (all === undefined ? undefined : joinedSchemas(all, one)),
      {},
    );
    if (joined !== undefined) return joined;
    this.#report("allOf", path);
    return own;
  }

  /** The compiler leaves out required properties that the schema does not describe. */
  #nameRequired(schema: Record<string, unknown>, path: string): void {
    const { required, additionalProperties: others } = schema;
    const described = Object(schema.properties) as Record<string, unknown>;
    const missing = Array.isArray(required)
      ? required.filter((name) => !Object.hasOwn(described, name as string))
      : [];
    if (missing.length === 0) return;
    if (others === false || schema.patternProperties !== undefined) {
      this.#report(`required names outside of properties (${missing.join(", ")})`, path);
      return;
    }
    const own = isSchema(others) ? others : {};
    schema.properties = { ...described, ...Object.fromEntries(missing.map((name) => [name, own])) };
  }

  /** The compiler takes a choice or a reference alone, so limits beside a choice become part of each member. */
  #distributed(schema: Schema, path: string): Schema {
    const choice = ["anyOf", "oneOf"].find((name) => Array.isArray(schema[name]));
    const limits = Object.entries(schema).filter(
      ([key]) => key !== choice && key !== "$ref" && !NOTES.has(key) && !META.has(key),
    );
    if (limits.length === 0) return schema;
    if (schema.$ref !== undefined) this.#report("other keywords beside $ref", path);
    if (choice === undefined) return schema;
    const beside = Object.fromEntries(limits);
    const members = (schema[choice] as unknown[]).map((one) =>
      isSchema(one) && one.$ref === undefined ? joinedSchemas(beside, one) : undefined,
    );
    if (members.includes(undefined)) {
      this.#report(`other keywords beside ${choice}`, path);
      return schema;
    }
    const others = Object.entries(schema).filter(([key]) => !Object.hasOwn(beside, key));
    return { ...Object.fromEntries(others), [choice]: members };
  }

  /** Strings with a limit of their length may have raw control characters in the compiler's grammar. */
  #withLengths(schema: Record<string, unknown>, path: string): unknown {
    const { minLength, maxLength, pattern, format, enum: values, const: value } = schema;
    if (minLength === undefined && maxLength === undefined) return schema;
    if (values !== undefined || value !== undefined) return schema;
    if (schema.type !== "string" || pattern !== undefined || format !== undefined) {
      if (schema.type !== undefined && schema.type !== "string" && !Array.isArray(schema.type)) return schema;
      this.#report("minLength or maxLength beside pattern, format or several types", path);
      return schema;
    }
    const { minLength: _least, maxLength: _most, ...rest } = schema;
    return { ...rest, pattern: `^[^"\\\\\\x00-\\x1f\\x7f]{${minLength ?? 0},${maxLength ?? ""}}$` };
  }
}

function isUnspellable(name: string): boolean {
  return JSON.stringify(name) !== `"${name}"`;
}

/** One schema with the limits of two; undefined if they interact in a way that one schema cannot say. */
function joinedSchemas(a: Schema, b: Schema): Schema | undefined {
  if (a.additionalProperties === false || b.additionalProperties === false) {
    const names = (one: Schema) => Object.keys(Object(one.properties)).sort().join();
    const isOpen = (one: Schema) => Object.keys(one).length === 0;
    if (!isOpen(a) && !isOpen(b) && names(a) !== names(b)) return undefined;
  }
  if ((a.$ref !== undefined || b.$ref !== undefined) && Object.keys(a).length > 0) return undefined;
  const joined: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const own = joined[key];
    if (own === undefined || NOTES.has(key)) joined[key] = own ?? value;
    else if (JSON.stringify(own) === JSON.stringify(value)) continue;
    else if (key === "required") joined[key] = [...new Set([...(own as unknown[]), ...(value as unknown[])])];
    else if (/^(minimum|exclusiveMinimum|min(Length|Items|Properties))$/.test(key)) {
      joined[key] = Math.max(own as number, value as number);
    } else if (/^(maximum|exclusiveMaximum|max(Length|Items|Properties))$/.test(key)) {
      joined[key] = Math.min(own as number, value as number);
    } else if (key === "properties" && isSchema(own) && isSchema(value)) {
      const properties: Record<string, unknown> = { ...own };
      for (const [name, one] of Object.entries(value)) {
        const before = properties[name];
        const both =
          before === undefined
            ? one
            : isSchema(before) && isSchema(one)
              ? joinedSchemas(before, one)
              : undefined;
        if (both === undefined) return undefined;
        properties[name] = both;
      }
      joined[key] = properties;
    } else return undefined;
  }
  return joined;
}

/** True if no value fits two of the schemas. */
function areDisjoint(schemas: readonly unknown[]): boolean {
  return schemas.every((a, i) =>
    schemas.slice(i + 1).every((b) => isSchema(a) && isSchema(b) && excludes(a, b)),
  );
}

function excludes(a: Schema, b: Schema): boolean {
  const [ofA, ofB] = [valuesOf(a), valuesOf(b)];
  if (ofA !== undefined && ofB !== undefined) return !ofA.some((one) => ofB.includes(one));
  const [typesA, typesB] = [typesOf(a), typesOf(b)];
  if (typesA !== undefined && typesB !== undefined && !typesA.some((type) => typesB.includes(type)))
    return true;
  const required = (one: Schema) => (Array.isArray(one.required) ? (one.required as unknown[]) : []);
  return required(a).some((name) => {
    const [inA, inB] = [a, b].map((one) => Object(one.properties)[String(name)] as unknown);
    return required(b).includes(name) && isSchema(inA) && isSchema(inB) && excludes(inA, inB);
  });
}

/** JSON of the values of `const` or `enum`. */
function valuesOf(schema: Schema): readonly string[] | undefined {
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  return Array.isArray(schema.enum) ? schema.enum.map((one) => JSON.stringify(one)) : undefined;
}

function typesOf(schema: Schema): readonly string[] | undefined {
  const listed = valuesOf(schema);
  if (listed !== undefined) return listed.map((json) => typeOfJson(JSON.parse(json)));
  const { type } = schema;
  const types = typeof type === "string" ? [type] : Array.isArray(type) ? (type as string[]) : undefined;
  // An integer is a number.
  return types?.map((one) => (one === "integer" ? "number" : one));
}

function typeOfJson(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
