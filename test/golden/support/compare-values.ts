import type { JsonValue } from "./json-value.js";

/** Marks a time-dependent value in a recording. */
export const ANY = "<ANY>";

/** Shortens a value for a message. */
export function show(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, printable);
  return text === undefined ? "nothing" : text.length > 600 ? `${text.slice(0, 600)}…` : text;
}

function printable(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return value instanceof Map ? Object.fromEntries(value) : value;
}

/**
 * Lists how `got` differs from `expected`, each difference with its place. Members of objects have no order; {@link
 * ANY} equals everything. An integer differs from a real number of the same value, since clients read them as
 * different types.
 */
export function compareValues(expected: JsonValue, got: JsonValue, path = "$"): string[] {
  if (expected === ANY) return [];
  if (Array.isArray(expected) && Array.isArray(got)) return compareArrays(expected, got, path);
  if (expected instanceof Map && got instanceof Map) return compareObjects(expected, got, path);
  if (typeof expected === typeof got && Object.is(expected, got)) return [];
  return [`${path}: expected ${show(expected)}, got ${show(got)}${kinds(expected, got)}`];
}

function kinds(expected: JsonValue, got: JsonValue): string {
  if (typeof expected === typeof got || Number(expected) !== Number(got)) return "";
  return ` (${typeof expected === "bigint" ? "an integer" : "a real number"})`;
}

function compareArrays(expected: JsonValue[], got: JsonValue[], path: string): string[] {
  if (expected.length !== got.length) return [`${path}: expected ${show(expected)}, got ${show(got)}`];
  return expected
    .flatMap((value, i) => compareValues(value, got[i] as JsonValue, `${path}[${i}]`))
    .slice(0, 5);
}

function compareObjects(
  expected: Map<string, JsonValue>,
  got: Map<string, JsonValue>,
  path: string,
): string[] {
  const differences: string[] = [];
  for (const [key, value] of expected) {
    const other = got.get(key);
    if (other === undefined) differences.push(`${path}.${key}: expected ${show(value)}, got nothing`);
    else differences.push(...compareValues(value, other, `${path}.${key}`));
  }
  for (const [key, value] of got) {
    if (!expected.has(key)) differences.push(`${path}.${key}: expected nothing, got ${show(value)}`);
  }
  return differences;
}
