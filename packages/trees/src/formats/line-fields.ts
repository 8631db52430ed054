import { invalidModel } from "../forest/invalid-model.js";

/** Fields of lines `key=value`. Errors name the field. */
export class LineFields {
  readonly #fields = new Map<string, string>();

  /** @param path name of the part of the file, for errors */
  constructor(readonly path: string) {}

  add(line: string): void {
    const equals = line.indexOf("=");
    if (equals < 0) this.#fields.set(line, "");
    else this.#fields.set(line.slice(0, equals), line.slice(equals + 1));
  }

  has(key: string): boolean {
    return this.#fields.has(key);
  }

  /** The text of a field, and undefined for one that is absent or empty. */
  text(key: string, empty: string): string | undefined {
    const text = this.#fields.get(key);
    return text === empty ? undefined : text;
  }

  integer(key: string): number {
    const text = this.#need(key);
    const value = Number(text);
    if (text.trim() !== "" && Number.isSafeInteger(value)) return value;
    throw invalidModel(`${this.path}: ${key}: expected an integer, got ${JSON.stringify(text.slice(0, 80))}`);
  }

  /**
   * Numbers between spaces.
   *
   * @throws TritonError INVALID_ARG for another number of them, and for text that is not a number
   */
  numbers(key: string, length: number): Float64Array {
    const text = this.#need(key).trim();
    const words = text === "" ? [] : text.split(/\s+/);
    if (words.length !== length)
      throw invalidModel(`${this.path}: ${key}: expected ${length} numbers, got ${words.length}`);
    return Float64Array.from(words, (word) => {
      const value = numberOf(word);
      if (value === undefined)
        throw invalidModel(
          `${this.path}: ${key}: expected a number, got ${JSON.stringify(word.slice(0, 80))}`,
        );
      return value;
    });
  }

  #need(key: string): string {
    const text = this.#fields.get(key);
    if (text === undefined) throw invalidModel(`${this.path}: Ill-formed LightGBM model file: need ${key}`);
    return text;
  }
}

/** Reads a number as C does. NaN is one, and the builder of the forest refuses it where it matters. */
function numberOf(word: string): number | undefined {
  if (/^[-+]?nan$/i.test(word)) return Number.NaN;
  const infinite = /^([-+]?)inf(inity)?$/i.exec(word);
  if (infinite !== null) return infinite[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(word) ? Number(word) : undefined;
}
