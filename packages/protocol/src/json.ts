/**
 * Formats a double as Triton does: whole numbers end in `.0`, the exponent has no plus, and `NaN`, `Infinity` and
 * `-Infinity` are written as such.
 */
export function doubleText(value: number): string {
  if (Number.isInteger(value)) {
    if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
    const text = String(value);
    return text.includes("e") ? text.replace("+", "") : `${text}.0`;
  }
  const text = String(value);
  return text.includes("+") ? text.replace("+", "") : text;
}

/** Formats a number without a known type: whole numbers are integers. */
export function numberText(value: number | bigint): string {
  return typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : doubleText(value);
}

/** Most levels of objects and arrays in JSON that is passed on to a model. Schemas have about ten. */
export const MOST_LEVELS = 100;

/** Whether JSON data have more levels of objects and arrays than `levels`. Recurses at most that deep. */
export function hasMoreLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => hasMoreLevels(inner, levels - 1));
}

/** The members of an object, without those that are undefined. */
export type DefinedMembers<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Copies an object without its undefined members, so that defaults apply in their place. */
export function definedMembers<T extends object>(object: T): DefinedMembers<T> {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as DefinedMembers<T>;
}
