/** A number written with a fraction or an exponent, one beyond 64 bits, or one of `NaN` and `Infinity`. */
export class JsonDouble {
  constructor(readonly value: number) {}
}

/**
 * An array of nothing but numbers, however nested, none of them an integer beyond 2^53: its numbers in a row.
 * Tensors arrive in this form. `integers` and `minuses` say what the tokens were, so that integer tensors can
 * be checked without looking at each element again. `values` is a view of memory that the next document overwrites.
 */
export class PackedNumbers {
  constructor(
    readonly values: Float64Array,
    /** No token had a fraction or an exponent. */
    readonly integers: boolean,
    /** Some number has a minus. */
    readonly minuses: boolean,
    /** There were arrays inside. */
    readonly nested: boolean,
    /** The text that the array was read from, and where in it the array opens. */
    readonly source: Uint8Array,
    readonly start: number,
  ) {}
}

/** Members by name; of several with one name the first is kept. */
export class JsonObject extends Map<string, JsonValue> {
  /** The names as they were written; undefined while none has come twice. */
  #written: string[] | undefined;

  /** Adds a member behind the others. */
  add(name: string, value: JsonValue): void {
    if (this.has(name)) this.#written ??= [...this.keys()];
    else this.set(name, value);
    this.#written?.push(name);
  }

  /** The names as they were written: one that came twice is in it twice. */
  written(): Iterable<string> {
    return this.#written ?? this.keys();
  }
}

/** An array in either of its forms. */
export type JsonArray = JsonValue[] | PackedNumbers;

/**
 * A JSON value that keeps what tensors need: strings are their bytes, integers (`number` or, beyond 2^53, `bigint`)
 * differ from {@link JsonDouble | doubles}.
 */
export type JsonValue = null | boolean | number | bigint | JsonDouble | Uint8Array | JsonArray | JsonObject;
