/** A number with a fraction or an exponent, an integer beyond 64 bits, `NaN` or `Infinity`. */
export class JsonDouble {
  constructor(readonly value: number) {}
}

/**
 * An array that holds only numbers, nested or not, and no integer beyond 2^53: its numbers in a row. Tensors arrive in
 * this form. `integers` and `minuses` describe the tokens, so integer tensors can be checked without another look at
 * each element. `values` is a view of memory that the next document overwrites.
 */
export class PackedNumbers {
  constructor(
    readonly values: Float64Array,
    /** True when no token had a fraction or an exponent. */
    readonly integers: boolean,
    /** True when a number had a minus. */
    readonly minuses: boolean,
    /** True when there were arrays inside. */
    readonly nested: boolean,
    /** The source text, and the offset of the opening bracket in it. */
    readonly source: Uint8Array,
    readonly start: number,
  ) {}
}

/** Members by name. If several have the same name, the first is kept. */
export class JsonObject {
  /** Undefined for an object without members, so that a document of many of them takes little memory. */
  #members: Map<string, JsonValue> | undefined;
  /** The names as written; undefined while no name has come twice. */
  #written: string[] | undefined;

  get(name: string): JsonValue | undefined {
    return this.#members?.get(keyOf(name));
  }

  /** Adds a member after the others. */
  add(name: string, value: JsonValue): void {
    const key = keyOf(name);
    this.#members ??= new Map();
    if (this.#members.has(key)) this.#written ??= [...this.#names()];
    else this.#members.set(key, value);
    this.#written?.push(name);
  }

  /** The members; the first of those with the same name. */
  *[Symbol.iterator](): Generator<[name: string, value: JsonValue]> {
    for (const [key, value] of this.#members ?? []) yield [nameOf(key), value];
  }

  /** The names as written: a name that came twice is listed twice. */
  written(): Iterable<string> {
    return this.#written ?? this.#names();
  }

  *#names(): Generator<string> {
    for (const key of this.#members?.keys() ?? []) yield nameOf(key);
  }
}

const ZERO = 0x30;
const MARK = ":";
const MARK_CODE = 0x3a;

/**
 * The key of a name. Before Node 20.20.2, 22.22.2 and 24.14.1, V8 hashes a string of digits by its number alone, so a
 * client can send names that all collide. A mark in front gives such names the seeded hash of other strings.
 */
function keyOf(name: string): string {
  const code = name.charCodeAt(0);
  return code >= ZERO && code <= MARK_CODE ? MARK + name : name;
}

function nameOf(key: string): string {
  return key.charCodeAt(0) === MARK_CODE ? key.slice(1) : key;
}

/** An array in either of its forms. */
export type JsonArray = JsonValue[] | PackedNumbers;

/**
 * A JSON value that keeps the details that tensors need. Strings are bytes. Integers (`number`, or `bigint` beyond
 * 2^53) differ from {@link JsonDouble | doubles}.
 */
export type JsonValue = null | boolean | number | bigint | JsonDouble | Uint8Array | JsonArray | JsonObject;
