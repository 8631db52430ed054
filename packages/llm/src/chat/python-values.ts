import { randomUUID } from "node:crypto";
import { countBytes, countSearch, countSteps } from "./render-budget.js";

/**
 * Values of a chat template, with the meaning that Python gives them: null is None, undefined is jinja2's Undefined, a
 * Map is a dict, and an array is a list.
 */
export type Value = unknown;

export type Dict = Map<Value, Value>;

/** A tuple, which is a list that prints differently. */
export class Tuple extends Array<Value> {}

/** Elements that a filter yields one by one: a generator of Python, which has no length and is not JSON. */
export class Lazy extends Array<Value> {}

/** An object with members that a template may read, and assign if it is a namespace. */
export class Members {
  constructor(
    readonly values: Map<string, Value>,
    readonly isNamespace = false,
  ) {}
}

/** A number that Python prints as `text`, and JavaScript differently. */
class ExactNumber {
  constructor(
    readonly value: number,
    readonly text: string,
  ) {}

  valueOf(): number {
    return this.value;
  }
}

/** A function that a template may call. */
export type TemplateFunction = (args: readonly Value[], named: ReadonlyMap<string, Value>) => Value;

/** An error of a template: what it does is wrong in Python, too. */
export class TemplateFault extends Error {}

/** A text that was joined to another type, which fails in Python. */
export class JoinFault extends TemplateFault {}

const STRING_OR_NUMBER = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Parses JSON and keeps the numbers that JavaScript would print differently than Python: `2.0`, `1e16` and whole numbers
 * of more digits than a double has become an {@link ExactNumber}.
 *
 * @throws SyntaxError for a text that is not JSON
 */
export function parseExactly(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  const mark = randomUUID();
  let marked = false;
  const kept = text.replace(STRING_OR_NUMBER, (token) => {
    if (token.startsWith('"') || pythonNumber(token) === String(Number(token))) return token;
    marked = true;
    return `"${mark}${token}"`;
  });
  if (!marked) return parsed;
  return JSON.parse(kept, (_, value: unknown) => {
    if (typeof value !== "string" || !value.startsWith(mark)) return value;
    const token = value.slice(mark.length);
    return new ExactNumber(Number(token), pythonNumber(token));
  });
}

/** How Python prints a number that it reads from JSON. */
function pythonNumber(token: string): string {
  if (/[.eE]/.test(token)) return pythonFloat(Number(token));
  return token === "-0" ? "0" : token;
}

/** Number of values that were read, and of the characters in them. */
export interface ReadSize {
  values: number;
  characters: number;
}

/** Values of JSON as a template sees them, which are added to a size. */
export function templateValue(json: unknown, size: ReadSize): Value {
  size.values++;
  if (typeof json === "string") size.characters += json.length;
  if (Array.isArray(json)) return json.map((one) => templateValue(one, size));
  if (typeof json !== "object" || json === null || json instanceof Map || json instanceof ExactNumber)
    return json;
  const members = new Map<Value, Value>();
  for (const [key, value] of Object.entries(json)) {
    size.characters += key.length;
    members.set(key, templateValue(value, size));
  }
  return members;
}

export function isDict(value: Value): value is Dict {
  return value instanceof Map;
}

export function isCallable(value: Value): value is TemplateFunction {
  return typeof value === "function";
}

export function typeName(value: Value): string {
  if (value === undefined) return "Undefined";
  if (value === null) return "NoneType";
  if (typeof value === "string") return "str";
  if (typeof value === "boolean") return "bool";
  if (isNumber(value)) return isInt(value) ? "int" : "float";
  if (value instanceof Lazy) return "generator";
  if (value instanceof Tuple) return "tuple";
  if (Array.isArray(value)) return "list";
  return isDict(value) ? "dict" : "object";
}

export function isTrue(value: Value): boolean {
  if (value instanceof ExactNumber) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (isDict(value)) return value.size > 0;
  return Boolean(value);
}

/** Text of a value as it is printed: Python's `str`. */
export function printed(value: Value): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : repr(value);
}

/** Python's `repr`. */
function repr(value: Value): string {
  countSteps();
  if (value === undefined) return "Undefined";
  if (value === null) return "None";
  if (typeof value === "string") return reprOfText(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (isNumber(value)) return numberText(value);
  if (value instanceof Tuple) return value.length === 1 ? `(${repr(value[0])},)` : `(${reprOfItems(value)})`;
  if (Array.isArray(value)) return `[${reprOfItems(value)}]`;
  if (isDict(value)) {
    return `{${joinTexts(
      Array.from(value, ([key, one]) => `${repr(key)}: ${repr(one)}`),
      ", ",
    )}}`;
  }
  return "<object>";
}

function reprOfItems(items: readonly Value[]): string {
  return joinTexts(Array.from(items, repr), ", ");
}

/** Joins texts, whose bytes are counted first. */
export function joinTexts(texts: readonly string[], separator: string): string {
  const characters = texts.reduce((sum, { length }) => sum + length, 0);
  countBytes(characters + separator.length * Math.max(0, texts.length - 1) + 8 * texts.length);
  return texts.join(separator);
}

function numberText(value: number | ExactNumber): string {
  if (value instanceof ExactNumber) return value.text;
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : pythonFloat(value);
}

/** Text of a floating-point number in Python: the shortest that reads as the same number. */
function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [digits, exponent] = value.toExponential().split("e") as [string, string];
  // Python writes exponents with two digits.
  if (Number(exponent) < -4 || Number(exponent) >= 16)
    return `${digits}e${exponent.replace(/^([+-])(\d)$/, "$10$2")}`;
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}

/** Characters that Python escapes: control and format characters, and all spaces but U+0020. */
const UNPRINTABLE = /[\p{C}\p{Z}]/u;

function reprOfText(text: string): string {
  countSteps(text.length);
  countBytes(8 * text.length);
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = [...text].map((one) => {
    if (one === "\\" || one === quote) return `\\${one}`;
    if (one === "\n") return "\\n";
    if (one === "\r") return "\\r";
    if (one === "\t") return "\\t";
    if (one === " " || !UNPRINTABLE.test(one)) return one;
    const code = one.codePointAt(0)!.toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
  return `${quote}${escaped.join("")}${quote}`;
}

export function isEqual(a: Value, b: Value): boolean {
  countSteps(typeof a === "string" && typeof b === "string" ? 1 + a.length / 64 : 1);
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return (
      a.length === b.length &&
      a instanceof Tuple === b instanceof Tuple &&
      a.every((one, i) => isEqual(one, b[i]))
    );
  }
  if (isDict(a) && isDict(b)) {
    countBytes(8 * a.size);
    return a.size === b.size && [...a].every(([key, one]) => b.has(key) && isEqual(one, b.get(key)));
  }
  return isNumeric(a) && isNumeric(b) && Number(a) === Number(b);
}

/** A number or, as in Python, a boolean, which counts as 0 or 1. */
export function isNumeric(value: Value): value is number | boolean | ExactNumber {
  return isNumber(value) || typeof value === "boolean";
}

export function isNumber(value: Value): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

/** True for numbers that are an `int` in Python. */
export function isInt(value: Value): boolean {
  return value instanceof ExactNumber ? !/[.e]/.test(value.text) : Number.isInteger(value);
}

/** A value as a number; NaN for values that are not one. JavaScript would print a list to find out. */
export function toNumber(value: Value): number {
  return typeof value === "object" && value !== null && !isNumber(value) ? Number.NaN : Number(value);
}

/** Order of two values: negative if `a` comes first. @throws TemplateFault for types without an order */
export function compare(a: Value, b: Value): number {
  countSteps();
  if (isNumeric(a) && isNumeric(b)) return Number(a) - Number(b);
  if (typeof a === "string" && typeof b === "string") {
    countBytes(a.length + b.length);
    return Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    const at = a.findIndex((one, i) => !isEqual(one, b[i]));
    return at < 0 || at >= b.length ? a.length - b.length : compare(a[at], b[at]);
  }
  throw new TemplateFault(`'<' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

/** The elements that a loop goes through. @throws TemplateFault for values without any */
export function iterated(value: Value): readonly Value[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  if (typeof value === "string") {
    countSteps(value.length / 8);
    countBytes(8 * value.length);
    return [...value];
  }
  if (isDict(value)) {
    countBytes(8 * value.size);
    return [...value.keys()];
  }
  throw new TemplateFault(`'${typeName(value)}' object is not iterable`);
}

export function contains(container: Value, value: Value): boolean {
  if (typeof container === "string") {
    if (typeof value === "string") {
      countSearch(container, value);
      return container.includes(value);
    }
    throw new TemplateFault(`'in <string>' requires string as left operand, not ${typeName(value)}`);
  }
  if (isDict(container)) return container.has(value);
  return iterated(container).some((one) => isEqual(one, value));
}

/** How `tojson` writes: the arguments of Python's `json.dumps`. */
interface JsonForm {
  readonly indent: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
  readonly ensureAscii: boolean;
}

/** JSON as Python's `json.dumps` writes it. @throws TemplateFault for values that are not JSON */
export function jsonOf(value: Value, form: JsonForm, depth = 0): string {
  countSteps();
  if (value === null) return "null";
  if (typeof value === "string") return jsonText(value, form);
  if (typeof value === "boolean") return String(value);
  if (isNumber(value)) return numberText(value).replace("nan", "NaN").replace("inf", "Infinity");
  if (Array.isArray(value) && !(value instanceof Lazy)) {
    return bracketed(
      "[",
      value.map((one) => jsonOf(one, form, depth + 1)),
      "]",
      form,
      depth,
    );
  }
  if (isDict(value)) {
    const entries = form.sortKeys ? [...value].sort(([a], [b]) => compare(a, b)) : [...value];
    const members = entries.map(
      ([key, one]) => `${jsonText(jsonKey(key), form)}${form.keySeparator}${jsonOf(one, form, depth + 1)}`,
    );
    return bracketed("{", members, "}", form, depth);
  }
  throw new TemplateFault(`Object of type ${typeName(value)} is not JSON serializable`);
}

function jsonKey(key: Value): string {
  if (typeof key === "string") return key;
  return key === null ? "null" : typeof key === "boolean" ? String(key) : printed(key);
}

function jsonText(text: string, { ensureAscii }: JsonForm): string {
  countBytes(text.length);
  // JSON.stringify escapes halves of characters, and Python does not write DEL differently either.
  const json = JSON.stringify(text);
  countSteps(ensureAscii ? json.length / 8 : 0);
  if (!ensureAscii) return json;
  return json.replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function bracketed(
  open: string,
  items: readonly string[],
  close: string,
  { indent, itemSeparator }: JsonForm,
  depth: number,
): string {
  if (items.length === 0) return open + close;
  if (indent === undefined) return open + joinTexts(items, itemSeparator) + close;
  countBytes(2 * indent.length * (depth + 1));
  const line = `\n${indent.repeat(depth + 1)}`;
  return `${open}${line}${joinTexts(items, itemSeparator.trimEnd() + line)}\n${indent.repeat(depth)}${close}`;
}
