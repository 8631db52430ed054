import { type Regex, type Regexes, TooComplex, UNBOUNDED } from "./byte-regex.js";
import type { Part } from "./grammar.js";
import { JsonText } from "./json-text.js";
import { namesIn, type OtherProperties } from "./object-keys.js";
import { InvalidSchema } from "./schema-keywords.js";
import { SchemaReader } from "./schema-reader.js";
import { type ArrayForm, type ObjectForm, tupleLength, type Values } from "./shape.js";

/** Largest number of values that a schema may describe. */
const MAX_VALUES = 50_000;

/** A grammar of the JSON texts that fit a schema. */
export interface JsonGrammar {
  readonly root: Part;
  readonly regexes: Regexes;
  /** Characters of strings: any text without quotation marks, reverse solidi and control characters repeats them. */
  readonly plainChars: ReadonlySet<Regex>;
  /** Keywords that the grammar does not hold, with their places. */
  readonly unheld: readonly string[];
}

/**
 * Makes the grammar of a JSON schema. Properties come in the order of the schema, others after them.
 *
 * @param isStrict true if objects that name properties have no others, unless the schema says so
 * @param text expressions of JSON's text, which grammars may share
 * @throws InvalidSchema for what is not a JSON schema, and for a schema that no value fits
 */
export function jsonGrammar(schema: unknown, isStrict: boolean, text = new JsonText()): JsonGrammar {
  const { regexes, plainChars } = text;
  const reader = new SchemaReader(schema, text, isStrict);
  const writer = new JsonWriter(reader, text);
  writer.visitAll(reader.root);
  if (!reader.isInhabited(reader.root) && reader.unheld.length === 0) {
    throw new InvalidSchema("no value fits the schema");
  }
  return { root: writer.value(reader.root), regexes, plainChars, unheld: reader.unheld };
}

interface Property {
  readonly name: string;
  readonly values: Values;
  readonly isRequired: boolean;
}

interface ObjectPlan {
  readonly properties: readonly Property[];
  readonly others: readonly OtherProperties[];
  readonly min: number;
  readonly max: number;
  /** Number of required properties from each position on. */
  readonly requiredFrom: readonly number[];
  readonly parts: Map<string, Part>;
}

class JsonWriter {
  readonly regexes: Regexes;
  readonly #values = new Map<Values, Part>();
  readonly #plans = new Map<ObjectForm, ObjectPlan | undefined>();
  /** Arrays whose items cannot be held apart. */
  readonly #repeating = new Set<ArrayForm>();
  /** Ends a token: no text has this byte. */
  readonly #barrier: Part;
  readonly #openBrace: Part;
  readonly #closeBrace: Part;
  readonly #openBracket: Part;
  readonly #closeBracket: Part;
  readonly #comma: Part;
  readonly #space: Part;

  constructor(
    readonly reader: SchemaReader,
    readonly text: JsonText,
  ) {
    const { space, regexes } = text;
    this.regexes = regexes;
    const literal = (char: string) => regexes.text(char);
    this.#barrier = { regex: regexes.range(0xff, 0xff) };
    this.#openBrace = { regex: literal("{") };
    this.#closeBrace = { regex: regexes.sequence(space, literal("}")) };
    this.#openBracket = { regex: literal("[") };
    this.#closeBracket = { regex: regexes.sequence(space, literal("]")) };
    this.#space = { regex: space };
    this.#comma = { regex: regexes.sequence(space, literal(",")) };
  }

  /** Reads all values that the grammar can reach, so that everything it cannot hold is known. */
  visitAll(root: Values): void {
    const seen = new Set<Values>([root]);
    const add = (values: Values) => seen.add(values);
    for (const values of seen) {
      if (seen.size > MAX_VALUES) throw new InvalidSchema(`it describes more than ${MAX_VALUES} values`);
      const shape = this.reader.shape(values);
      for (const form of shape.arrays) {
        const tuple = tupleLength(form);
        for (let i = 0; i <= Math.min(tuple, form.max - 1); i++) {
          const item = this.reader.ofItem(form, i);
          add(item);
        }
        const problem = form.isUnique && form.max > 1 ? this.#unheldUniqueness(form) : undefined;
        if (problem !== undefined) {
          this.reader.report(`uniqueItems ${problem}`, values.fit[0]!);
          this.#repeating.add(form);
        }
      }
      for (const form of shape.objects) {
        const plan = this.#planOf(form);
        for (const { values } of [...(plan?.properties ?? []), ...(plan?.others ?? [])]) add(values);
      }
    }
  }

  value(values: Values): Part {
    let part = this.#values.get(values);
    if (part === undefined) {
      part = { choices: () => this.#choices(values) };
      this.#values.set(values, part);
    }
    return part;
  }

  #choices(values: Values): readonly (readonly Part[])[] {
    const { string, number, boolean, null: nothing, arrays, objects } = this.reader.shape(values);
    const scalars = this.regexes.any(string, number, boolean, nothing);
    const choices: (readonly Part[])[] = scalars === this.regexes.none ? [] : [[{ regex: scalars }]];
    for (const form of arrays) {
      if (!this.reader.hasArray(form)) continue;
      const isUnique = form.isUnique && form.max > 1 && !this.#repeating.has(form);
      const items = isUnique
        ? { choices: () => this.#uniqueItems(form, [], 0, true) }
        : this.#items(form, 0, new Map());
      choices.push([this.#openBracket, items]);
    }
    for (const form of objects) {
      const plan = this.#planOf(form);
      if (plan !== undefined) choices.push([this.#openBrace, this.#members(plan, 0, 0, 0)]);
    }
    return choices;
  }

  #items(form: ArrayForm, count: number, parts: Map<number, Part>): Part {
    // Beyond the tuple and the limits, all positions are alike.
    const tuple = tupleLength(form);
    const limit = form.max === UNBOUNDED ? Math.max(tuple, form.min, 1) : UNBOUNDED;
    const at = Math.min(count, limit);
    let part = parts.get(at);
    if (part === undefined) {
      part = { choices: () => this.#itemChoices(form, at, parts) };
      parts.set(at, part);
    }
    return part;
  }

  #itemChoices(form: ArrayForm, count: number, parts: Map<number, Part>): readonly (readonly Part[])[] {
    const choices: (readonly Part[])[] = count >= form.min ? [[this.#closeBracket]] : [];
    const values = this.reader.ofItem(form, count);
    if (count < form.max && this.reader.isInhabited(values)) {
      const before: Part[] = count === 0 ? [this.#space] : [this.#comma, this.#space];
      choices.push([...before, this.value(values), this.#items(form, count + 1, parts)]);
    }
    return choices;
  }

  /** Why a grammar cannot hold the items of an array apart; undefined if it can. */
  #unheldUniqueness(form: ArrayForm): string | undefined {
    const rest = tupleLength(form);
    for (let i = 0; i <= Math.min(rest, form.max - 1); i++) {
      const item = this.reader.ofItem(form, i);
      if (!this.reader.isInhabited(item)) continue;
      const scalars = this.#distinctScalars(item, []);
      if (scalars === this.regexes.none) return "of arrays or objects";
      // However the items before are chosen, one is left.
      const needed = i < rest ? Math.min(i + 1, form.min) : form.min;
      try {
        if (!this.regexes.hasTexts(scalars, needed)) return `of ${form.min} items with fewer values`;
      } catch (error) {
        if (!(error instanceof TooComplex)) throw error;
        return "of items that are too complex";
      }
    }
    return undefined;
  }

  /** Scalars of some values that are not among the JSON texts of others, each with one text. */
  #distinctScalars(values: Values, others: readonly string[]): Regex {
    const { regexes, text } = this;
    const shape = this.reader.shape(values);
    const scalars = regexes.any(
      distinctTexts(regexes, shape.string, text.string, text.canonicalString),
      distinctTexts(regexes, shape.number, text.number, text.canonicalNumber),
      shape.boolean,
      shape.null,
    );
    if (others.length === 0) return scalars;
    const left = regexes.without(scalars, regexes.any(...others.map((one) => regexes.text(one))));
    return regexes.hasMatch(left) ? left : regexes.none;
  }

  /**
   * The items of an array without equal ones after some. The text of an item is known only when it was written. So a
   * mask lets the item after it begin if that is any string, and otherwise ends the token at the comma.
   */
  #uniqueItems(
    form: ArrayForm,
    before: readonly string[],
    count: number,
    isKnown: boolean,
  ): readonly (readonly Part[])[] {
    const choices: (readonly Part[])[] = count >= form.min ? [[this.#closeBracket]] : [];
    if (count >= form.max) return choices;
    const item = this.reader.ofItem(form, count);
    const scalars = this.#distinctScalars(item, before);
    if (scalars === this.regexes.none) return choices;
    const separator = [...(count === 0 ? [] : [this.#comma]), this.#space];
    if (isKnown) {
      const after: Part = {
        choicesAfter: (item) =>
          item === undefined
            ? this.#uniqueItems(form, before, count + 1, false)
            : this.#uniqueItems(form, [...before, item], count + 1, true),
      };
      choices.push([...separator, { regex: scalars }, after]);
    } else if (this.#distinctScalars(item, []) === this.text.canonicalString) {
      choices.push([...separator, { regex: scalars }, this.#barrier]);
    } else if (this.regexes.hasTexts(scalars, 2)) {
      choices.push([this.#comma, this.#barrier]);
    }
    return choices;
  }

  /** Undefined if no object has the form. */
  #planOf(form: ObjectForm): ObjectPlan | undefined {
    if (!this.#plans.has(form)) this.#plans.set(form, this.#newPlan(form));
    return this.#plans.get(form);
  }

  #newPlan(form: ObjectForm): ObjectPlan | undefined {
    const names = namesIn(form);
    const properties: Property[] = [];
    for (const name of names) {
      const isRequired = form.required.has(name);
      const values = this.reader.ofProperty(form, name);
      const fits = this.reader.takesKey(form, name) && this.reader.isInhabited(values);
      if (fits) properties.push({ name, values, isRequired });
      else if (isRequired) return undefined;
    }
    const requiredFrom: number[] = new Array(properties.length + 1).fill(0);
    for (let i = properties.length - 1; i >= 0; i--)
      requiredFrom[i] = requiredFrom[i + 1]! + Number(properties[i]!.isRequired);
    this.regexes.budget.hold(200 * properties.length);
    const others = this.reader.othersOf(form).filter(({ values }) => this.reader.isInhabited(values));
    // Other properties may have the same name, so they count as one.
    if (properties.length + (others.length > 0 ? 1 : 0) < form.min || requiredFrom[0]! > form.max)
      return undefined;
    return { properties, others, min: form.min, max: form.max, requiredFrom, parts: new Map() };
  }

  /**
   * The members of an object from a position on.
   *
   * @param count number of members so far, as far as the limits need it
   * @param others number of other members so far, 0 or 1 if there is no limit
   */
  #members(plan: ObjectPlan, position: number, count: number, others: number): Part {
    const key = `${position},${count},${others}`;
    let part = plan.parts.get(key);
    if (part === undefined) {
      part = { choices: () => this.#memberChoices(plan, position, count, others) };
      plan.parts.set(key, part);
    }
    return part;
  }

  #memberChoices(
    plan: ObjectPlan,
    position: number,
    count: number,
    others: number,
  ): readonly (readonly Part[])[] {
    const { properties, min, max } = plan;
    const counted = (n: number) => (max === UNBOUNDED ? Math.min(n, Math.max(min, 1)) : n);
    const choices: (readonly Part[])[] = [];
    const property = properties[position];
    if (property === undefined) {
      const distinct = count - others + Math.min(others, 1);
      if (distinct >= min) choices.push([this.#closeBrace]);
      if (count >= max) return choices;
      for (const { key, values } of plan.others) {
        const more =
          max === UNBOUNDED
            ? this.#members(plan, position, others === 1 ? count : counted(count + 1), 1)
            : this.#members(plan, position, count + 1, others + 1);
        choices.push([this.#key(key, count > 0), this.value(values), more]);
      }
      return choices;
    }
    const requiredLater = plan.requiredFrom[position + 1]!;
    if (count + 1 + requiredLater <= max) {
      const key = this.text.literal(property.name);
      const more = this.#members(plan, position + 1, counted(count + 1), others);
      choices.push([this.#key(key, count > 0), this.value(property.values), more]);
    }
    const reachable = count + (properties.length - position - 1) + (plan.others.length > 0 ? 1 : 0);
    if (!property.isRequired && reachable >= min) {
      choices.push([this.#members(plan, position + 1, count, others)]);
    }
    return choices;
  }

  #key(key: Regex, isLater: boolean): Part {
    const { space } = this.text;
    const colon = this.regexes.text(":");
    const before = isLater ? [space, this.regexes.text(","), space] : [space];
    return { regex: this.regexes.sequence(...before, key, space, colon, space) };
  }
}

/** Texts of which each value has one. */
function distinctTexts(regexes: Regexes, own: Regex, any: Regex, canonical: Regex): Regex {
  if (own === regexes.none || own === any) return own === any ? canonical : own;
  const both = regexes.both(own, canonical);
  return regexes.hasMatch(both) ? both : regexes.none;
}
