import { invalidOption } from "../data/invalid-option.js";
import { readOptionNumber, readWord } from "./option-readers.js";
import type { PerfOptions } from "./perf-options.js";

/** Name of an option on the command line: `latencyThreshold` is `--latency-threshold`. */
const flagOf = (name: string) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Reads options by their names in camelCase. Errors give the name on the command line. */
export class OptionReader {
  readonly #options: PerfOptions;

  constructor(options: PerfOptions) {
    this.#options = options;
  }

  has(name: string): boolean {
    return this.#options[name] !== undefined && this.#options[name] !== false;
  }

  text(name: string): string | undefined {
    const value = this.#options[name];
    return typeof value === "string" ? value : undefined;
  }

  texts(name: string): readonly string[] {
    const value = this.#options[name];
    return Array.isArray(value) ? (value as readonly string[]) : [];
  }

  word<const Word extends string>(name: string, words: readonly Word[], { anyCase = false } = {}): Word {
    const text = this.text(name) ?? "";
    return readWord(flagOf(name), anyCase ? text.toLowerCase() : text, words);
  }

  number(name: string, bounds: Parameters<typeof readOptionNumber>[2] = {}): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : readOptionNumber(flagOf(name), text, bounds);
  }

  whole(name: string, min = 0): number | undefined {
    return this.number(name, { min, whole: true });
  }

  /** @throws TritonError INVALID_ARG if more than one of these options is given */
  onlyOne(names: readonly string[]): string | undefined {
    const given = names.filter((name) => this.has(name));
    if (given.length > 1) {
      throw invalidOption(`${given.map(flagOf).join(" and ")} exclude each other: expected one of them`);
    }
    return given[0];
  }

  /** @throws TritonError INVALID_ARG if the first option is given without the second */
  needs(name: string, other: string): void {
    if (this.has(name) && !this.has(other)) throw invalidOption(`${flagOf(name)} needs ${flagOf(other)}`);
  }
}
