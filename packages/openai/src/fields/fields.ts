import { hasMoreLevels, MOST_LEVELS } from "@tritonjs/protocol";
import { invalidField, shown, wrongType } from "../errors/openai-error.js";

/** The fields of a JSON object, read with checks. `null` counts as absent, as OpenAI's clients send it. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #path: string;
  readonly #read = new Set<string>();

  /** @param path path of the object in the request, for errors; empty for the request itself */
  constructor(values: Readonly<Record<string, unknown>>, path = "") {
    this.#values = values;
    this.#path = path;
  }

  /** The path of a field in the request. */
  path(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  /** A field of any type. */
  any(name: string): unknown {
    this.#read.add(name);
    return Object.hasOwn(this.#values, name) ? (this.#values[name] ?? undefined) : undefined;
  }

  string(name: string): string | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === "string") return value;
    throw wrongType(this.path(name), "a string", value);
  }

  requiredString(name: string): string {
    const value = this.string(name);
    if (value === undefined || value === "") {
      const path = this.path(name);
      throw invalidField(
        path,
        `you must provide '${path}': expected a string that is not empty`,
        "missing_required_parameter",
      );
    }
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw wrongType(this.path(name), "a boolean", value);
  }

  /** A number from `least` to `most`. */
  number(name: string, least: number, most: number): number | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const path = this.path(name);
    if (typeof value !== "number") throw wrongType(path, "a number", value);
    if (value >= least && value <= most) return value;
    throw invalidField(path, `'${path}': expected a number ${range(least, most)}, got ${value}`);
  }

  /** An integer from `least` to `most`. */
  integer(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const path = this.path(name);
    if (typeof value !== "number") throw wrongType(path, "an integer", value);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw invalidField(path, `'${path}': expected an integer ${range(least, most)}, got ${value}`);
  }

  /** One of some words. */
  choice<const W extends string>(name: string, words: readonly W[]): W | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const known = words.find((word) => word === value);
    if (known !== undefined) return known;
    const path = this.path(name);
    throw invalidField(path, `'${path}': expected one of ${words.join(", ")}, got ${shown(value)}`);
  }

  array(name: string): readonly unknown[] | undefined {
    const value = this.any(name);
    if (value === undefined || Array.isArray(value)) return value;
    throw wrongType(this.path(name), "an array", value);
  }

  object(name: string): Fields | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : objectFields(value, this.path(name));
  }

  /** Names of the fields that nothing has read. */
  unread(): string[] {
    return Object.keys(this.#values).filter((name) => !this.#read.has(name));
  }
}

/** The fields of a value that has to be an object. */
export function objectFields(value: unknown, path: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return new Fields(value as Record<string, unknown>, path);
  }
  throw wrongType(path, "an object", value);
}

/** Checks that all elements are integers, such as tokens. */
export function isIntegers(values: readonly unknown[]): values is readonly number[] {
  return values.every((value) => Number.isSafeInteger(value));
}

/**
 * JSON text of a part of a request. The limit of its nesting is our own: from Node 26 on, `JSON.stringify` writes any
 * depth, while the code that reads the text may be recursive.
 *
 * @throws OpenAiError 400 for more than 100 levels
 */
export function requestJson(value: unknown, path: string): string {
  if (!hasMoreLevels(value, MOST_LEVELS)) return JSON.stringify(value);
  throw invalidField(path, `'${path}': expected at most ${MOST_LEVELS} levels of nesting, got more`);
}

function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
}
