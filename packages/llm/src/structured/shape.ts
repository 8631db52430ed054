import { type Regex, UNBOUNDED } from "./byte-regex.js";

/** A schema at its place in the document. */
export interface SchemaNode {
  readonly id: number;
  readonly schema: unknown;
  /** Names and positions from the root, such as `properties.age`. */
  readonly path: string;
}

/** The values that fit some schemas and none of others. Equal ones of a {@link SchemaReader} are the same object. */
export interface Values {
  readonly id: number;
  readonly fit: readonly SchemaNode[];
  readonly none: readonly SchemaNode[];
}

/** Rules of one schema for the properties of an object. */
interface PropertyRule {
  readonly named: ReadonlyMap<string, Values>;
  readonly patterns: readonly { readonly key: Regex; readonly values: Values }[];
  /** Values of other properties; undefined if the schema does not mention them. */
  readonly others: Values | undefined;
}

/** Objects that follow all rules. */
export interface ObjectForm {
  readonly rules: readonly PropertyRule[];
  readonly required: ReadonlySet<string>;
  /** Each key, with its quotation marks, matches all of them. */
  readonly keys: readonly Regex[];
  readonly min: number;
  readonly max: number;
}

/** Rules of one schema for the items of an array. */
interface ItemRule {
  readonly first: readonly Values[];
  readonly rest: Values | undefined;
}

/** Arrays that follow all rules. */
export interface ArrayForm {
  readonly rules: readonly ItemRule[];
  readonly min: number;
  readonly max: number;
  readonly isUnique: boolean;
}

/** A set of JSON values by kind: texts of the scalars, and forms of which an array or object has one. */
export interface ValueShape {
  readonly string: Regex;
  readonly number: Regex;
  readonly boolean: Regex;
  readonly null: Regex;
  readonly arrays: readonly ArrayForm[];
  readonly objects: readonly ObjectForm[];
}

export const SCALARS = ["string", "number", "boolean", "null"] as const;

/** Number of the first items that a form tells apart. */
export function tupleLength({ rules }: ArrayForm): number {
  return Math.max(0, ...rules.map(({ first }) => first.length));
}

/** True for the form that all arrays or all objects have. */
export function isEverything(form: ArrayForm | ObjectForm): boolean {
  const isOpen = "required" in form ? form.required.size === 0 && form.keys.length === 0 : !form.isUnique;
  return isOpen && form.rules.length === 0 && form.min === 0 && form.max === UNBOUNDED;
}

/** The objects of a form in which a property has some values. */
export function withProperty(
  form: ObjectForm,
  name: string,
  values: Values,
  isRequired: boolean,
): ObjectForm {
  const rule = { named: new Map([[name, values]]), patterns: [], others: undefined };
  return {
    ...form,
    rules: [...form.rules, rule],
    required: isRequired ? new Set([...form.required, name]) : form.required,
  };
}

/** The arrays of two forms. */
export function joinedArrays(a: ArrayForm, b: ArrayForm): ArrayForm {
  return {
    rules: distinct([...a.rules, ...b.rules]),
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    isUnique: a.isUnique || b.isUnique,
  };
}

/** The objects of two forms. */
export function joinedObjects(a: ObjectForm, b: ObjectForm): ObjectForm {
  return {
    rules: distinct([...a.rules, ...b.rules]),
    required: new Set([...a.required, ...b.required]),
    keys: distinct([...a.keys, ...b.keys]),
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
  };
}

/** Each value once. */
export function distinct<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** A name with its quotation marks, as the expressions of keys have it. */
export function keyBytes(name: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(name));
}
