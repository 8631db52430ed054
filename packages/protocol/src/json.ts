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

/** A JSON value; integers beyond 2^53 are bigints. */
export type AnswerJson = null | boolean | number | bigint | string | AnswerJson[] | AnswerJsonObject;

/** Members by name. */
export interface AnswerJsonObject {
  [name: string]: AnswerJson;
}

/** Matches texts that `JSON.parse` rejects or rounds: `NaN`, `Infinity`, and integers that a double may not hold. */
const NEEDS_READER = /NaN|Inf|(?<![\d.])\d{16}/;

/** Deepest nesting that the reader follows: its recursion must not exhaust the stack. */
const MAX_DEPTH = 200;

/**
 * Reads JSON as Triton writes it: with `NaN` and `Infinity`, and with 64-bit integers, which become bigints if a number
 * cannot hold them.
 *
 * @param words the dialect: the words that stand for a value
 * @throws SyntaxError for invalid JSON.
 */
export function parseAnswerJson(text: string, words = ANSWER_WORDS): AnswerJson {
  return NEEDS_READER.test(text) ? new Reader(text, words).document() : (JSON.parse(text) as AnswerJson);
}

/** True for objects that are not arrays. */
export function isJsonObject(value: AnswerJson | undefined): value is AnswerJsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const whitespace = /[ \t\r\n]*/y;
const number = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const word = /-?[a-zA-Z]+/y;

/** The words of JSON, and the numbers beyond it that Triton writes. */
export const ANSWER_WORDS: Readonly<Record<string, AnswerJson>> = {
  null: null,
  true: true,
  false: false,
  NaN: Number.NaN,
  Inf: Number.POSITIVE_INFINITY,
  Infinity: Number.POSITIVE_INFINITY,
  "-Inf": Number.NEGATIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** Reads one text from its start to its end. */
class Reader {
  readonly #text: string;
  readonly #words: Readonly<Record<string, AnswerJson>>;
  #at = 0;

  constructor(text: string, words: Readonly<Record<string, AnswerJson>>) {
    this.#text = text;
    this.#words = words;
  }

  document(): AnswerJson {
    const value = this.#value(0);
    if (this.#next() !== undefined) throw this.#fault();
    return value;
  }

  #value(depth: number): AnswerJson {
    const next = this.#next();
    if (depth > MAX_DEPTH) throw this.#fault();
    if (next === "{") return this.#object(depth);
    if (next === "[") return this.#array(depth);
    if (next === '"') return this.#string();
    return this.#number() ?? this.#word();
  }

  #object(depth: number): AnswerJsonObject {
    const object: AnswerJsonObject = {};
    this.#at++;
    if (this.#take("}")) return object;
    do {
      if (this.#next() !== '"') throw this.#fault();
      const name = this.#string();
      if (!this.#take(":")) throw this.#fault();
      const value = this.#value(depth + 1);
      // An assignment to `__proto__` would not create a member.
      Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#fault();
    return object;
  }

  #array(depth: number): AnswerJson[] {
    const array: AnswerJson[] = [];
    this.#at++;
    if (this.#take("]")) return array;
    do array.push(this.#value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw this.#fault();
    return array;
  }

  #string(): string {
    const start = this.#at;
    let end = start;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) throw this.#fault();
    } while (this.#isEscaped(end));
    this.#at = end + 1;
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #isEscaped(at: number): boolean {
    let backslashes = 0;
    while (this.#text[at - 1 - backslashes] === "\\") backslashes++;
    return backslashes % 2 === 1;
  }

  #number(): number | bigint | undefined {
    const match = this.#match(number);
    if (match === null) return undefined;
    const [text, fraction, exponent] = match;
    const value = Number(text);
    return fraction === undefined && exponent === undefined && !Number.isSafeInteger(value)
      ? BigInt(text)
      : value;
  }

  #word(): AnswerJson {
    const text = this.#match(word)?.[0] ?? "";
    if (!Object.hasOwn(this.#words, text)) throw this.#fault();
    return this.#words[text]!;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }

  #next(): string | undefined {
    this.#match(whitespace);
    return this.#text[this.#at];
  }

  #take(character: string): boolean {
    if (this.#next() !== character) return false;
    this.#at++;
    return true;
  }

  #fault(): SyntaxError {
    return new SyntaxError(`unexpected token in JSON at position ${this.#at}`);
  }
}

/** A value that can be written as JSON. Undefined members are left out; typed arrays become arrays. */
export type JsonSource =
  | string
  | number
  | bigint
  | boolean
  | null
  | ArrayBufferView
  | readonly JsonSource[]
  | { readonly [name: string]: JsonSource | undefined };

/** Writes a value as JSON in Triton's spelling: bigints are integers, `NaN` and `Infinity` are literals. */
export function toJson(value: JsonSource): string {
  if (typeof value === "number" || typeof value === "bigint") return numberText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (ArrayBuffer.isView(value)) {
    return toJson(Array.from(value as unknown as ArrayLike<number | bigint>));
  }
  const members = Object.entries(value).filter(
    (entry): entry is [string, JsonSource] => entry[1] !== undefined,
  );
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join(",")}}`;
}

function isArray(value: object): value is readonly JsonSource[] {
  return Array.isArray(value);
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
