import { type Regex, type Regexes, UNBOUNDED } from "./byte-regex.js";
import type { JsonText } from "./json-text.js";
import { namesIn, ObjectKeys, type OtherProperties } from "./object-keys.js";
import { SchemaReferences } from "./references.js";
import {
  type Bound,
  entriesOf,
  InvalidSchema,
  isSchema,
  KeywordReader,
  nameOfValue,
  type Schema,
  schemasOf,
  typesOf,
} from "./schema-keywords.js";
import {
  type ArrayForm,
  distinct,
  isEverything,
  joinedArrays,
  joinedObjects,
  keyBytes,
  type ObjectForm,
  SCALARS,
  type SchemaNode,
  tupleLength,
  type ValueShape,
  type Values,
  withProperty,
} from "./shape.js";

/** Bytes of a set of values or a form, without its members. */
const VALUES_BYTES = 200;
/** Largest number of forms of arrays or objects of one value. */
const MAX_FORMS = 400;

/**
 * Finds the values that a JSON schema allows, or some of them: where a keyword interacts with others in a way that
 * cannot be said exactly, fewer values are allowed, and never others. Keywords that cannot be held at all are listed in
 * {@link unheld}.
 */
export class SchemaReader {
  readonly #nodes = new Map<unknown, SchemaNode>();
  readonly #values = new Map<string, Values>();
  readonly #shapes = { fewer: new Map<Values, ValueShape>(), more: new Map<Values, ValueShape>() };
  readonly #nodeShapes = {
    fewer: new Map<SchemaNode, ValueShape>(),
    more: new Map<SchemaNode, ValueShape>(),
  };
  readonly #open = new Set<SchemaNode>();
  readonly #inhabited = { fewer: new Map<Values, boolean>(), more: new Map<Values, boolean>() };
  readonly #references: SchemaReferences;
  readonly #found = new Set<string>();
  private readonly regexes: Regexes;
  readonly anything: Values;
  readonly nothing: Values;
  readonly root: Values;
  readonly #any: ValueShape;
  readonly #none: ValueShape;
  readonly #keywords: KeywordReader;
  readonly #keys: ObjectKeys;
  #depth = 0;

  constructor(
    document: unknown,
    private readonly text: JsonText,
    isStrict: boolean,
  ) {
    this.regexes = text.regexes;
    const { none } = this.regexes;
    this.#none = { string: none, number: none, boolean: none, null: none, arrays: [], objects: [] };
    this.#any = {
      string: text.string,
      number: text.number,
      boolean: text.boolean,
      null: text.nothing,
      arrays: [{ rules: [], min: 0, max: UNBOUNDED, isUnique: false }],
      objects: [{ rules: [], required: new Set(), keys: [], min: 0, max: UNBOUNDED }],
    };
    this.#keywords = new KeywordReader(this, text);
    this.#references = new SchemaReferences(document, this.regexes.budget);
    this.anything = this.valuesOf([this.node(true, "")]);
    this.nothing = this.valuesOf([this.node(false, "")]);
    this.root = this.valuesOf([this.node(document, "")]);
    this.#keys = new ObjectKeys(this, text, isStrict);
  }

  /** Keywords that are not held, with their places, such as `uniqueItems in properties.list`. */
  get unheld(): readonly string[] {
    return [...this.#found];
  }

  node(schema: unknown, path: string): SchemaNode {
    let node = this.#nodes.get(schema);
    if (node === undefined) {
      node = { id: this.#nodes.size, schema, path };
      this.#nodes.set(schema, node);
    }
    return node;
  }

  /** Adds a keyword to {@link unheld}. */
  report(keyword: string, { path }: SchemaNode): void {
    this.#found.add(path === "" ? keyword : `${keyword} in ${path}`);
  }

  /** The values that fit all of some schemas and none of others. */
  valuesOf(fit: readonly SchemaNode[], none: readonly SchemaNode[] = []): Values {
    const sorted = (nodes: readonly SchemaNode[]) => [...new Set(nodes)].sort((a, b) => a.id - b.id);
    const { budget } = this.regexes;
    budget.spend(1 + fit.length + none.length);
    let all = sorted(fit).filter(({ schema }) => schema !== true);
    if (all.length === 0) all = [this.node(true, "")];
    const not = sorted(none);
    const key = `${all.map(({ id }) => id)}|${not.map(({ id }) => id)}`;
    let values = this.#values.get(key);
    if (values === undefined) {
      budget.hold(VALUES_BYTES + 8 * (all.length + not.length));
      values = { id: this.#values.size, fit: all, none: not };
      this.#values.set(key, values);
    }
    return values;
  }

  /** The values that are in all of several sets. */
  allOf(several: readonly Values[]): Values {
    if (several.length === 1) return several[0]!;
    return this.valuesOf(
      several.flatMap(({ fit }) => fit),
      several.flatMap(({ none }) => none),
    );
  }

  /** The values of a property. */
  ofProperty({ rules }: ObjectForm, name: string): Values {
    const key = keyBytes(name);
    const found: Values[] = [];
    this.regexes.budget.spend(1 + rules.length);
    for (const { named, patterns, others } of rules) {
      const own = named.get(name);
      const matched = patterns.filter((pattern) => this.regexes.matches(pattern.key, key));
      if (own !== undefined) found.push(own);
      for (const { values } of matched) found.push(values);
      if (own === undefined && matched.length === 0 && others !== undefined) found.push(others);
    }
    return found.length === 0 ? this.anything : this.allOf(found);
  }

  /** True if the names of properties may be this one. */
  takesKey({ keys }: ObjectForm, name: string): boolean {
    return keys.every((one) => this.regexes.matches(one, keyBytes(name)));
  }

  /** Properties that an object may have beside those with names, if there are values for them. */
  othersOf(form: ObjectForm): readonly OtherProperties[] {
    return this.#keys.othersOf(form);
  }

  /** The values of an item. */
  ofItem({ rules }: ArrayForm, index: number): Values {
    this.regexes.budget.spend(1 + rules.length);
    const found = rules.map(({ first, rest }) => first[index] ?? rest ?? this.anything);
    return found.length === 0 ? this.anything : this.allOf(found);
  }

  /** @throws InvalidSchema for what is not a JSON schema */
  shape(values: Values, bound: Bound = "fewer"): ValueShape {
    let shape = this.#shapes[bound].get(values);
    if (shape !== undefined) return shape;
    shape = this.#any;
    for (const node of values.fit) shape = this.#both(shape, this.#shapeOf(node, bound), node);
    for (const node of values.none) shape = this.#without(shape, node, node, bound);
    this.#shapes[bound].set(values, shape);
    return shape;
  }

  /** True if there is a value with a finite text. */
  isInhabited(values: Values, bound: Bound = "fewer", open: Set<Values> = new Set()): boolean {
    const known = this.#inhabited[bound].get(values);
    if (known !== undefined) return known;
    if (open.has(values)) return false;
    open.add(values);
    const shape = this.shape(values, bound);
    this.regexes.budget.spend(1 + shape.arrays.length + shape.objects.length);
    const found =
      SCALARS.some((kind) => shape[kind] !== this.regexes.none) ||
      shape.arrays.some((form) => this.hasArray(form, bound, open)) ||
      shape.objects.some((form) => this.#hasObject(form, bound, open));
    open.delete(values);
    // Within a cycle, "no" is only so for as long as the outer values are open.
    if (found || open.size === 0) this.#inhabited[bound].set(values, found);
    return found;
  }

  /** True if there is an array of the form. */
  hasArray(form: ArrayForm, bound: Bound = "fewer", open: Set<Values> = new Set()): boolean {
    if (form.min > form.max) return false;
    for (let i = 0; i < Math.min(form.min, tupleLength(form) + 1); i++) {
      if (!this.isInhabited(this.ofItem(form, i), bound, open)) return false;
    }
    return true;
  }

  #hasObject(form: ObjectForm, bound: Bound, open: Set<Values>): boolean {
    if (form.min > form.max || form.required.size > form.max) return false;
    for (const name of form.required) {
      if (!this.takesKey(form, name)) return false;
      if (!this.isInhabited(this.ofProperty(form, name), bound, open)) return false;
    }
    if (bound === "more" || form.required.size >= form.min) return true;
    let count = form.required.size;
    for (const name of namesIn(form)) {
      if (form.required.has(name) || !this.takesKey(form, name)) continue;
      if (this.isInhabited(this.ofProperty(form, name), bound, open)) count++;
      if (count >= form.min) return true;
    }
    // Other properties may have the same name, so they count as one.
    if (count + 1 < form.min) return false;
    return this.othersOf(form).some(({ values }) => this.isInhabited(values, bound, open));
  }

  #shapeOf(node: SchemaNode, bound: Bound): ValueShape {
    const known = this.#nodeShapes[bound].get(node);
    if (known !== undefined) return known;
    if (this.#open.has(node)) {
      throw new InvalidSchema(`the schema at ${node.path || "the root"} refers to itself without an end`);
    }
    this.#open.add(node);
    try {
      const shape = this.#read(node, bound);
      this.#nodeShapes[bound].set(node, shape);
      return shape;
    } finally {
      this.#open.delete(node);
    }
  }

  #read(node: SchemaNode, bound: Bound): ValueShape {
    const { schema, path } = node;
    this.regexes.budget.spend(10);
    this.regexes.budget.hold(VALUES_BYTES);
    if (schema === true) return this.#any;
    if (schema === false) return this.#none;
    if (!isSchema(schema)) {
      throw new InvalidSchema(
        `expected an object or a boolean at ${path || "the root"}, got ${nameOfValue(schema)}`,
      );
    }
    const at = (name: string) => (path === "" ? name : `${path}.${name}`);
    const shapeAt = (one: unknown, name: string) => this.#shapeOf(this.node(one, at(name)), bound);
    let shape = this.#ownShape(node, schema, bound);
    for (const [reference, found] of this.#references.of(schema)) {
      if (found === undefined) {
        throw new InvalidSchema(`cannot find ${reference}, which ${path || "the root"} refers to`);
      }
      if (!found.isCertain) this.report(`the reference ${reference}, which depends on its caller`, node);
      const referred = this.node(found.schema, reference.replace(/^#\/?/, "").replaceAll("/", "."));
      shape = this.#both(shape, this.#shapeOf(referred, bound), node);
    }
    for (const [i, one] of schemasOf(schema, "allOf", path).entries()) {
      shape = this.#both(shape, shapeAt(one, `allOf[${i}]`), node);
    }
    const anyOf = schemasOf(schema, "anyOf", path);
    if (anyOf.length > 0) {
      const members = anyOf.map((one, i) => shapeAt(one, `anyOf[${i}]`));
      shape = this.#both(shape, this.#union(members, node), node);
    }
    const oneOf = schemasOf(schema, "oneOf", path).map((one, i) => this.node(one, at(`oneOf[${i}]`)));
    if (oneOf.length > 0) shape = this.#exactlyOne(shape, oneOf, node, bound);
    if (schema.not !== undefined) {
      const before = shape;
      const not = this.node(schema.not, at("not"));
      shape = this.#without(shape, not, node, bound);
      if (this.#isNone(shape) && !this.#isNone(this.#without(before, not, node, "more"))) {
        this.report("not", node);
        return before;
      }
    }
    if (schema.if !== undefined && (schema.then !== undefined || schema.else !== undefined)) {
      const test = this.node(schema.if, at("if"));
      const then = this.valuesOf([test, this.node(schema.then ?? true, at("then"))]);
      const other = this.valuesOf([this.node(schema.else ?? true, at("else"))], [test]);
      const either = [this.shape(then, bound), this.shape(other, bound)];
      shape = this.#both(shape, this.#union(either, node), node);
    }
    return shape;
  }

  #exactlyOne(shape: ValueShape, members: readonly SchemaNode[], node: SchemaNode, bound: Bound): ValueShape {
    const unique = [...new Set(members)];
    const either = () =>
      this.#union(
        unique.map((one) => this.#shapeOf(one, bound)),
        node,
      );
    if (bound === "more") return this.#both(shape, either(), node);
    const once = unique.filter((one) => members.indexOf(one) === members.lastIndexOf(one));
    const needs = unique.map((one) => [one, this.#neededName(one)] as const);
    const alone = once.map((one) => {
      let own = this.#both(shape, this.#shapeOf(one, bound), node);
      const mentioned = new Set(own.objects.flatMap((form) => [...namesIn(form)]));
      const absent = new Map<string, Values>();
      for (const [other, name] of needs) {
        this.regexes.budget.spend(1);
        if (other === one) continue;
        if (name !== undefined && !mentioned.has(name)) absent.set(name, this.nothing);
        else own = this.#without(own, other, node, bound);
      }
      if (absent.size === 0) return own;
      const rule = { named: absent, patterns: [], others: undefined };
      const objects = own.objects.map((form) => ({ ...form, rules: [...form.rules, rule] }));
      return { ...own, objects };
    });
    const union = this.#union(alone, node);
    if (!this.#isNone(union)) return union;
    const any = this.#both(shape, either(), node);
    if (!this.#isNone(any)) this.report("oneOf with overlapping members", node);
    return any;
  }

  /** A property that all values of a schema need to have; undefined if not all of them are objects, or none is needed. */
  #neededName(node: SchemaNode): string | undefined {
    const { string, number, boolean, null: nothing, arrays, objects } = this.#shapeOf(node, "more");
    const { none } = this.regexes;
    if (arrays.length > 0 || [string, number, boolean, nothing].some((one) => one !== none)) return undefined;
    const [first, ...others] = objects;
    for (const name of first?.required ?? [])
      if (others.every(({ required }) => required.has(name))) return name;
    return undefined;
  }

  /** The shape of the keywords that stand in a schema itself. */
  #ownShape(node: SchemaNode, schema: Schema, bound: Bound): ValueShape {
    const types = typesOf(schema, node.path);
    const has = (type: string) => types === undefined || types.includes(type);
    const { none } = this.regexes;
    let shape: ValueShape = {
      string: has("string") ? this.#keywords.strings(node, schema, bound) : none,
      number:
        has("number") || has("integer") ? this.#keywords.numbers(node, schema, has("number"), bound) : none,
      boolean: has("boolean") ? this.text.boolean : none,
      null: has("null") ? this.text.nothing : none,
      arrays: has("array") ? this.#keywords.arrays(node, schema, bound) : [],
      objects: has("object") ? this.#keywords.objects(node, schema) : [],
    };
    if (schema.enum !== undefined) {
      const values = schemasOf(schema, "enum", node.path);
      shape = this.#both(shape, this.#keywords.literals(values, node), node);
    }
    if (schema.const !== undefined)
      shape = this.#both(shape, this.#keywords.literals([schema.const], node), node);
    if (has("object")) shape = this.#dependencies(shape, node, schema, bound);
    return shape;
  }

  /** `dependentRequired`, `dependentSchemas` and `dependencies`: without the property, or with what it needs. */
  #dependencies(shape: ValueShape, node: SchemaNode, schema: Schema, bound: Bound): ValueShape {
    let held = shape;
    for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
      for (const [name, needs] of entriesOf(schema, keyword, node.path)) {
        const path = `${node.path}.${keyword}.${name}`.replace(/^\./, "");
        const required = { type: "object", required: [name, ...(Array.isArray(needs) ? needs : [])] };
        const present = [this.node(required, path)];
        if (!Array.isArray(needs)) present.push(this.node(needs, path));
        const absent = this.node({ properties: { [name]: false } }, path);
        const either = [this.#shapeOf(absent, bound), this.shape(this.valuesOf(present), bound)];
        held = this.#both(held, this.#union(either, node), node);
      }
    }
    return held;
  }

  #isNone(shape: ValueShape): boolean {
    return (
      SCALARS.every((kind) => shape[kind] === this.regexes.none) &&
      shape.arrays.length === 0 &&
      shape.objects.length === 0
    );
  }

  #union(shapes: readonly ValueShape[], node: SchemaNode): ValueShape {
    const { regexes } = this;
    const scalar = (kind: (typeof SCALARS)[number]) => regexes.any(...shapes.map((shape) => shape[kind]));
    return {
      string: scalar("string"),
      number: scalar("number"),
      boolean: scalar("boolean"),
      null: scalar("null"),
      arrays: this.#limited(distinct(shapes.flatMap(({ arrays }) => arrays)), node),
      objects: this.#limited(distinct(shapes.flatMap(({ objects }) => objects)), node),
    };
  }

  #limited<T>(forms: readonly T[], node: SchemaNode): readonly T[] {
    if (forms.length <= MAX_FORMS) return forms;
    this.report(`more than ${MAX_FORMS} combinations of choices`, node);
    return forms.slice(0, MAX_FORMS);
  }

  #both(a: ValueShape, b: ValueShape, node: SchemaNode): ValueShape {
    if (a === b || b === this.#any) return a;
    if (a === this.#any) return b;
    const scalar = (kind: (typeof SCALARS)[number]): Regex => {
      const [x, y, any] = [a[kind], b[kind], this.#any[kind]];
      if (x === y || y === any) return x;
      if (x === any) return y;
      return this.#keywords.nonEmpty(this.regexes.both(x, y), "allOf", node);
    };
    const arrays = a.arrays.flatMap((x) => b.arrays.map((y) => this.#counted(joinedArrays(x, y))));
    let objects = a.objects.flatMap((x) => b.objects.map((y) => this.#counted(joinedObjects(x, y))));
    if (a.objects.length > 1 && b.objects.length > 1)
      objects = objects.filter((form) => this.#hasKinds(form));
    return {
      string: scalar("string"),
      number: scalar("number"),
      boolean: scalar("boolean"),
      null: scalar("null"),
      arrays: this.#limited(arrays, node).filter(({ min, max }) => min <= max),
      objects: this.#limited(objects, node).filter(({ min, max }) => min <= max),
    };
  }

  /** Counts a form that was made. */
  #counted<T extends ArrayForm | ObjectForm>(form: T): T {
    const { budget } = this.regexes;
    const size = form.rules.length + ("required" in form ? form.required.size + form.keys.length : 0);
    budget.spend(2 + size);
    budget.hold(VALUES_BYTES + 16 * size);
    return form;
  }

  /** False if a required property can have no value, which tells many combinations of choices apart. */
  #hasKinds(form: ObjectForm): boolean {
    for (const name of form.required) {
      const values = this.ofProperty(form, name);
      if (values.fit.some((node) => this.#open.has(node))) continue;
      if (this.#isNone(this.shape(values, "more"))) return false;
    }
    return true;
  }

  /** The values of a shape that do not fit a schema. */
  #without(a: ValueShape, not: SchemaNode, node: SchemaNode, bound: Bound): ValueShape {
    const { schema } = not;
    if (isSchema(schema) && schema.not !== undefined && Object.keys(schema).length === 1) {
      return this.#both(a, this.#shapeOf(this.node(schema.not, not.path), bound), node);
    }
    const b = this.#shapeOf(not, bound === "fewer" ? "more" : "fewer");
    const scalars = {
      string: this.#textsWithout("string", a, b, node),
      number: this.#textsWithout("number", a, b, node),
      boolean: this.#textsWithout("boolean", a, b, node),
      null: this.#textsWithout("null", a, b, node),
    };
    if (bound === "more" || this.#depth > 6) {
      // Only what is certain: all arrays or objects, or none. Deeper differences allow fewer values than they could.
      const rest = <T extends ArrayForm | ObjectForm>(
        own: readonly T[],
        others: readonly T[],
      ): readonly T[] =>
        bound === "fewer" ? (others.length === 0 ? own : []) : others.some(isEverything) ? [] : own;
      return { ...scalars, arrays: rest(a.arrays, b.arrays), objects: rest(a.objects, b.objects) };
    }
    this.#depth++;
    try {
      let { arrays, objects } = a;
      for (const other of b.arrays) {
        arrays = arrays.flatMap((own) => this.#arraysWithout(own, other, arrays.length));
      }
      for (const other of b.objects) {
        objects = objects.flatMap((own) => this.#objectsWithout(own, other, objects.length));
      }
      return { ...scalars, arrays: this.#limited(arrays, node), objects: this.#limited(objects, node) };
    } finally {
      this.#depth--;
    }
  }

  #textsWithout(kind: (typeof SCALARS)[number], a: ValueShape, b: ValueShape, node: SchemaNode): Regex {
    const { regexes, text } = this;
    const [x, y] = [a[kind], b[kind]];
    if (y === regexes.none || x === regexes.none) return x;
    if (x === y || y === this.#any[kind]) return regexes.none;
    // One text for each value, so that no other text of a value that is taken away is left.
    const single =
      kind === "string" ? text.canonicalString : kind === "number" ? text.canonicalNumber : regexes.all;
    return this.#keywords.nonEmpty(regexes.both(x, single, regexes.not(y)), "not", node);
  }

  /** True if a property that both forms require has other literals in each, as the members of most unions do. */
  #haveOtherLiterals(own: ObjectForm, other: ObjectForm): boolean {
    for (const name of other.required) {
      if (!own.required.has(name)) continue;
      const a = literalsOf(this.ofProperty(own, name));
      const b = a && literalsOf(this.ofProperty(other, name));
      if (b === undefined) continue;
      this.regexes.budget.spend(b.length);
      if (!b.some((one) => a!.includes(one))) return true;
    }
    return false;
  }

  #isApart(a: Values, b: Values): boolean {
    return !this.isInhabited(this.allOf([a, b]), "more");
  }

  /** The values of `a` that do not fit the schemas of `b`. Undefined if `b` cannot be turned around. */
  #difference(a: Values, b: Values): Values | undefined {
    if (b.fit.length !== 1 || b.none.length > 0) return undefined;
    const values = this.valuesOf(a.fit, [...a.none, b.fit[0]!]);
    return this.isInhabited(values) ? values : undefined;
  }

  #arraysWithout(own: ArrayForm, other: ArrayForm, count: number): ArrayForm[] {
    if (own.min > other.max || own.max < other.min) return [own];
    const ways: ArrayForm[] = [];
    const item = this.ofItem(other, 0);
    if (own.min > 0 && this.#isApart(this.ofItem(own, 0), item)) return [own];
    if (own.max > other.max) ways.push({ ...own, min: other.max + 1 });
    if (own.min < other.min) ways.push({ ...own, max: other.min - 1 });
    const differs = own.max > 0 ? this.#difference(this.ofItem(own, 0), item) : undefined;
    if (differs !== undefined) {
      ways.push({
        ...own,
        min: Math.max(1, own.min),
        rules: [...own.rules, { first: [differs], rest: undefined }],
      });
    }
    return ways.slice(0, count < 16 ? 2 : 1);
  }

  #objectsWithout(own: ObjectForm, other: ObjectForm, count: number): ObjectForm[] {
    if (this.#haveOtherLiterals(own, other)) return [own];
    const ways: ObjectForm[] = [];
    for (const form of [own, other]) this.#counted(form);
    const named = new Set(other.rules.flatMap((rule) => [...rule.named.keys()]));
    for (const name of other.required) {
      const values = this.ofProperty(own, name);
      if (!this.isInhabited(values, "more")) return [own];
      if (own.required.has(name)) {
        if (this.#isApart(values, this.ofProperty(other, name))) return [own];
      } else ways.push(withProperty(own, name, this.nothing, false));
    }
    for (const name of own.required) {
      if (this.#isApart(this.ofProperty(own, name), this.ofProperty(other, name))) return [own];
    }
    const mentioned = new Set([...named, ...own.rules.flatMap((rule) => [...rule.named.keys()])]);
    for (const name of mentioned) {
      if (ways.length >= 4) break;
      const differs = this.#difference(this.ofProperty(own, name), this.ofProperty(other, name));
      if (differs !== undefined) ways.push(withProperty(own, name, differs, true));
    }
    if (own.min > other.max || own.max < other.min) return [own];
    return ways.slice(0, count < 16 ? 2 : 1);
  }
}

/** The literals of which each of the values is one; undefined if they have others, or are not scalars. */
function literalsOf({ fit }: Values): readonly unknown[] | undefined {
  for (const { schema } of fit) {
    if (!isSchema(schema)) continue;
    const literals = schema.const === undefined ? schema.enum : [schema.const];
    if (Array.isArray(literals) && literals.every((one) => typeof one !== "object" || one === null))
      return literals;
  }
  return undefined;
}
