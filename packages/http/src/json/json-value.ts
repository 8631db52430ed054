import { errorFor, type TritonError } from "@tritonjs/protocol";
import { decodeText } from "./text.js";

/** A number with a fraction or an exponent, an integer beyond 64 bits, `NaN` or `Infinity`. */
export class JsonDouble {
  constructor(readonly value: number) {}
}

/**
 * An array that holds only numbers or only booleans, nested or not: its values in a row. Tensors arrive in this form.
 * `values` is a view of memory that the next document overwrites. Booleans are 0 and 1.
 */
export class PackedNumbers {
  constructor(
    readonly values: Float64Array,
    /** Number of elements of the outermost array. */
    readonly length: number,
    readonly booleans: boolean,
    /** Index of the first number with a fraction or an exponent; -1 if all are integers of at most 64 bits. */
    readonly fractionAt: number,
    readonly minuses: boolean,
    /** Integers beyond 2^53 in 64 bits, at their indices; undefined when there is none. It may be shorter or longer. */
    readonly exact: BigInt64Array | undefined,
    readonly nested: boolean,
    /** The source text, and the offset of the opening bracket in it. */
    readonly source: Uint8Array,
    readonly start: number,
  ) {}

  /** True when no token had a fraction or an exponent. */
  get integers(): boolean {
    return this.fractionAt < 0;
  }
}

/** An array of a long document that holds only strings, nested or not, in the wire form of a BYTES tensor. */
export class PackedStrings {
  constructor(
    /** Each string behind its length in four bytes. */
    readonly bytes: Uint8Array,
    /** Number of elements of the outermost array. */
    readonly length: number,
    /** The source text, and the offset of the opening bracket in it. */
    readonly source: Uint8Array,
    readonly start: number,
  ) {}
}

/** Members up to which a search is faster than a table. */
const MAX_SEARCHED = 8;
const NO_NAMES: string[] = [];
const NO_VALUES: JsonValue[] = [];

/** Members by name. If several have the same name, the first is kept. */
export class JsonObject {
  #names = NO_NAMES;
  #values = NO_VALUES;
  /** Places of the members by the keys of their names, from the first search in an object of many members on. */
  #places: Map<string, number> | undefined;

  get size(): number {
    return this.#names.length;
  }

  get(name: string): JsonValue | undefined {
    const at = this.#names.length > MAX_SEARCHED ? this.#table().get(keyOf(name)) : this.#names.indexOf(name);
    return at === undefined || at < 0 ? undefined : this.#values[at];
  }

  add(name: string, value: JsonValue): void {
    if (this.#names === NO_NAMES) {
      this.#names = [name];
      this.#values = [value];
      return;
    }
    this.#names.push(name);
    this.#values.push(value);
    this.#places = undefined;
  }

  /** The members; the first of those with the same name. */
  *[Symbol.iterator](): Generator<[name: string, value: JsonValue]> {
    if (this.#names.length > MAX_SEARCHED) {
      for (const at of this.#table().values()) yield [this.#names[at]!, this.#values[at]!];
      return;
    }
    for (let at = 0; at < this.#names.length; at++) {
      const name = this.#names[at]!;
      if (this.#names.indexOf(name) === at) yield [name, this.#values[at]!];
    }
  }

  /** The names as written: a name that came twice is listed twice. */
  written(): Iterable<string> {
    return this.#names;
  }

  #table(): ReadonlyMap<string, number> {
    if (this.#places === undefined) {
      this.#places = new Map();
      for (let at = 0; at < this.#names.length; at++) {
        const key = keyOf(this.#names[at]!);
        if (!this.#places.has(key)) this.#places.set(key, at);
      }
    }
    return this.#places;
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

export type JsonArray = JsonValue[] | PackedNumbers | PackedStrings;

/**
 * A JSON value that keeps the details that tensors need. Strings are bytes. Integers (`number`, or `bigint` beyond
 * 2^53) differ from {@link JsonDouble | doubles}.
 */
export type JsonValue = null | boolean | number | bigint | JsonDouble | Uint8Array | JsonArray | JsonObject;

/* Typed access with Triton's texts. `context` is Triton's prefix of the text: "Unable to parse 'shape'". */

const MAX_INT64 = 2n ** 63n - 1n;

/** A member of a value that may not be an object. */
export function find(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return value instanceof JsonObject ? value.get(name) : undefined;
}

export function member(value: JsonValue, name: string, context = ""): JsonValue {
  const found = find(value, name);
  if (found === undefined) throw fault(context, `attempt to access non-existing object member '${name}'`);
  return found;
}

export function members(value: JsonValue, context = ""): JsonObject {
  if (!(value instanceof JsonObject)) throw fault(context, "attempt to get members for non-object");
  return value;
}

export function isArray(value: JsonValue | undefined): value is JsonArray {
  return Array.isArray(value) || value instanceof PackedNumbers || value instanceof PackedStrings;
}

export function asArray(value: JsonValue, context = ""): JsonArray {
  if (!isArray(value)) throw fault(context, "attempt to access JSON non-array as array");
  return value;
}

export function asBytes(value: JsonValue, context = ""): Uint8Array {
  if (!(value instanceof Uint8Array)) throw fault(context, "attempt to access JSON non-string as string");
  return value;
}

/** The value as a string. Like all of Triton's names, it ends at a NUL. */
export function asText(value: JsonValue, context = ""): string {
  const bytes = asBytes(value, context);
  const end = bytes.indexOf(0);
  return decodeText(end < 0 ? bytes : bytes.subarray(0, end));
}

export function asBoolean(value: JsonValue, context = ""): boolean {
  if (typeof value !== "boolean") throw fault(context, "attempt to access JSON non-boolean as boolean");
  return value;
}

export function isInteger(value: JsonValue): value is number | bigint {
  return typeof value === "number" || (typeof value === "bigint" && value <= MAX_INT64);
}

export function isUnsigned(value: JsonValue): value is number | bigint {
  return (typeof value === "number" || typeof value === "bigint") && value >= 0;
}

export function asInteger(value: JsonValue, context = ""): number | bigint {
  if (!isInteger(value)) throw fault(context, "attempt to access JSON non-signed-integer as signed-integer");
  return value;
}

export function asUnsigned(value: JsonValue, context = ""): number | bigint {
  if (!isUnsigned(value)) {
    throw fault(context, "attempt to access JSON non-unsigned-integer as unsigned-integer");
  }
  return value;
}

export function asDouble(value: JsonValue, context = ""): number {
  if (value instanceof JsonDouble) return value.value;
  if (typeof value === "number" || typeof value === "bigint") return Number(value);
  throw fault(context, "attempt to access JSON non-number as double");
}

function fault(context: string, message: string): TritonError {
  return errorFor("MALFORMED_JSON", context === "" ? message : `${context}: ${message}`);
}
