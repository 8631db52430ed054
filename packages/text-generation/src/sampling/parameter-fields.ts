import { TritonError } from "@tritonjs/protocol";

/** The values of a request's parameters by name, and where they come from. */
export interface ParameterSource {
  readonly values: Readonly<Record<string, unknown>>;
  /** True for request parameters, which cannot hold fractions or lists: a string with their JSON is taken too. */
  readonly textValues: boolean;
}

/** Bounds of a number. */
export interface Bounds {
  readonly min?: number;
  readonly max?: number;
  /** Numbers must be greater than this. */
  readonly above?: number;
}

/** Reads typed fields, and names the field in each error. Absent and null fields are undefined. */
export class ParameterFields {
  readonly #source: ParameterSource;

  constructor(source: ParameterSource) {
    this.#source = source;
  }

  /** The value of the first of the names that has one. */
  raw(...names: readonly string[]): { readonly name: string; readonly value: unknown } | undefined {
    for (const name of names) {
      const value = Object.hasOwn(this.#source.values, name) ? this.#source.values[name] : undefined;
      if (value !== undefined && value !== null) return { name, value: this.#parsed(value) };
    }
    return undefined;
  }

  number(name: string, bounds: Bounds): number | undefined {
    const value = this.raw(name)?.value;
    if (value === undefined) return undefined;
    const expected = `a number${describe(bounds)}`;
    if (typeof value !== "number" || !fits(value, bounds)) throw invalidParameter(name, expected, value);
    return value;
  }

  integer(names: readonly string[], bounds: Bounds): number | undefined {
    const found = this.raw(...names);
    if (found === undefined) return undefined;
    const { name, value } = found;
    const expected = `an integer${describe(bounds)}`;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || !fits(value, bounds)) {
      throw invalidParameter(name, expected, value);
    }
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.raw(name)?.value;
    if (value === undefined) return undefined;
    if (typeof value !== "boolean") throw invalidParameter(name, "true or false", value);
    return value;
  }

  #parsed(value: unknown): unknown {
    if (typeof value === "bigint") {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    if (!this.#source.textValues || typeof value !== "string") return value;
    try {
      const parsed: unknown = JSON.parse(value);
      return typeof parsed === "string" ? value : (parsed ?? value);
    } catch {
      return value;
    }
  }
}

/**
 * The error for a parameter that does not hold the expected value.
 *
 * @param shown text for `got`
 */
export function invalidParameter(
  name: string,
  expected: string,
  got: unknown,
  shown: string = show(got),
): TritonError {
  return new TritonError("INVALID_ARG", `sampling parameter '${name}': expected ${expected}, got ${shown}`, {
    reason: "INVALID_INPUT",
  });
}

function fits(value: number, { min = -Infinity, max = Infinity, above = -Infinity }: Bounds): boolean {
  return Number.isFinite(value) && value >= min && value <= max && value > above;
}

function describe({ min, max, above }: Bounds): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (above !== undefined) return ` above ${above}${max === undefined ? "" : ` and at most ${max}`}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? "" : ` of at most ${max}`;
}

function show(value: unknown): string {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}
