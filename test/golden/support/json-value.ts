/* JSON as the v2 protocol uses it: with the bare tokens NaN, Infinity and -Infinity, and with exact integers beyond 2^53. */

/** A number as it is in the text: integers stay exact, and `1.0` differs from `1`. */
export type JsonNumber = bigint | number;

/** Any JSON value; objects are maps, so that a key may be called `__proto__`. */
export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | Map<string, JsonValue>;

const token =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\]|\\[\s\S])*")|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(true|false|null|NaN|-?Infinity))/y;

const words: Readonly<Record<string, JsonValue>> = {
  true: true,
  false: false,
  null: null,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/**
 * Parses a JSON text: integers become bigints, other numbers doubles.
 * @throws SyntaxError when the text is not JSON, or when a key is duplicated
 */
export function parseJson(text: string): JsonValue {
  const parser = new Parser(text);
  const value = parser.value();
  parser.end();
  return value;
}

class Parser {
  #at = 0;
  constructor(readonly text: string) {}

  #next(): RegExpExecArray {
    token.lastIndex = this.#at;
    const match = token.exec(this.text);
    if (match === null)
      throw new SyntaxError(`no JSON at ${this.#at}: ${this.text.slice(this.#at, this.#at + 20)}`);
    this.#at = token.lastIndex;
    return match;
  }

  #skip(mark: string): boolean {
    const before = this.#at;
    if (this.#next()[1] === mark) return true;
    this.#at = before;
    return false;
  }

  #expect(mark: string): void {
    if (!this.#skip(mark)) throw new SyntaxError(`expected '${mark}' at ${this.#at}`);
  }

  end(): void {
    const rest = this.text.slice(this.#at).trim();
    if (rest !== "") throw new SyntaxError(`text after the JSON value: ${rest.slice(0, 20)}`);
  }

  value(): JsonValue {
    const [, mark, string, number, word] = this.#next();
    if (string !== undefined) return JSON.parse(string) as string;
    if (number !== undefined) return /^-?\d+$/.test(number) ? integer(number) : Number(number);
    if (word !== undefined) return words[word] as JsonValue;
    if (mark === "[") return this.#array();
    if (mark === "{") return this.#object();
    throw new SyntaxError(`unexpected '${mark}' at ${this.#at}`);
  }

  #array(): JsonValue[] {
    const values: JsonValue[] = [];
    if (this.#skip("]")) return values;
    do values.push(this.value());
    while (this.#skip(","));
    this.#expect("]");
    return values;
  }

  #object(): Map<string, JsonValue> {
    const entries = new Map<string, JsonValue>();
    if (this.#skip("}")) return entries;
    do {
      const key = this.value();
      if (typeof key !== "string" || entries.has(key))
        throw new SyntaxError(`bad or repeated key ${String(key)}`);
      this.#expect(":");
      entries.set(key, this.value());
    } while (this.#skip(","));
    this.#expect("}");
    return entries;
  }
}

function integer(text: string): JsonNumber {
  return text === "-0" ? -0 : BigInt(text);
}

/** Turns the result of `JSON.parse` into the values of {@link parseJson}; whole numbers become integers. */
export function toJsonValue(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map(toJsonValue);
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([key, entry]) => [key, toJsonValue(entry)]));
  }
  return value as JsonValue;
}
