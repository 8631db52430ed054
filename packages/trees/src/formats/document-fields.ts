import { invalidModel } from "../forest/invalid-model.js";

/** An object of a decoded document, read with checks. Errors name the path of the field. */
export class DocumentFields {
  readonly #fields: Readonly<Record<string, unknown>>;

  /** @throws TritonError INVALID_ARG for a value that is not an object */
  constructor(
    value: unknown,
    readonly path: string,
  ) {
    const isObject =
      typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
    if (!isObject) throw invalidModel(`${path}: expected an object, got ${nameOf(value)}`);
    this.#fields = value as Record<string, unknown>;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#fields, key);
  }

  get keys(): readonly string[] {
    return Object.keys(this.#fields);
  }

  object(key: string): DocumentFields {
    return new DocumentFields(this.#get(key), this.#pathOf(key));
  }

  list(key: string): ArrayLike<unknown> {
    const value = this.#get(key);
    if (Array.isArray(value)) return value;
    // An empty list may be a typed array.
    if (ArrayBuffer.isView(value) && (value as Uint8Array).length === 0) return [];
    throw invalidModel(`${this.#pathOf(key)}: expected a list, got ${nameOf(value)}`);
  }

  text(key: string): string {
    const value = this.#get(key);
    if (typeof value === "string") return value;
    throw invalidModel(`${this.#pathOf(key)}: expected a string, got ${nameOf(value)}`);
  }

  /** A whole number, which XGBoost writes as a string. @param otherwise value of a field that is absent */
  integer(key: string, otherwise?: number): number {
    if (otherwise !== undefined && !this.has(key)) return otherwise;
    const value = this.#get(key);
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (Number.isSafeInteger(number)) return number as number;
    throw invalidModel(`${this.#pathOf(key)}: expected an integer, got ${nameOf(value)}`);
  }

  /**
   * A list of numbers or booleans. The elements are not checked: the forest's builder checks the numbers that it uses.
   *
   * @param length the length that it must have
   */
  numbers(key: string, length?: number): ArrayLike<number> {
    const value = this.#get(key);
    if (!Array.isArray(value) && !ArrayBuffer.isView(value))
      throw invalidModel(`${this.#pathOf(key)}: expected a list of numbers, got ${nameOf(value)}`);
    const numbers = value as ArrayLike<number>;
    if (length !== undefined && numbers.length !== length)
      throw invalidModel(`${this.#pathOf(key)}: expected ${length} elements, got ${numbers.length}`);
    return numbers;
  }

  #get(key: string): unknown {
    if (!this.has(key)) throw invalidModel(`${this.path}: expected the field '${key}', got none`);
    return this.#fields[key];
  }

  #pathOf(key: string): string {
    return `${this.path}.${key}`;
  }
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return "a list";
  if (typeof value === "object") return "an object";
  return String(JSON.stringify(value)).slice(0, 80);
}
