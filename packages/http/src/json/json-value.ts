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
export class JsonObject extends Map<string, JsonValue> {
  /** The names as written; undefined while no name has come twice. */
  #written: string[] | undefined;

  /** Adds a member after the others. */
  add(name: string, value: JsonValue): void {
    if (this.has(name)) this.#written ??= [...this.keys()];
    else this.set(name, value);
    this.#written?.push(name);
  }

  /** The names as written: a name that came twice is listed twice. */
  written(): Iterable<string> {
    return this.#written ?? this.keys();
  }
}

/** An array in either of its forms. */
export type JsonArray = JsonValue[] | PackedNumbers;

/**
 * A JSON value that keeps the details that tensors need. Strings are bytes. Integers (`number`, or `bigint` beyond
 * 2^53) differ from {@link JsonDouble | doubles}.
 */
export type JsonValue = null | boolean | number | bigint | JsonDouble | Uint8Array | JsonArray | JsonObject;
