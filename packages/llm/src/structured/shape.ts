import type { Regex } from "./byte-regex.js";

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

/** What one schema says of the properties of an object. */
export interface PropertyRule {
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

/** What one schema says of the items of an array. */
export interface ItemRule {
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
