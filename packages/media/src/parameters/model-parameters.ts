import { type ModelConfig, TritonError } from "@tritonjs/protocol";

/**
 * Reads options from the parameters of a configuration, whose names are those of the options in snake case.
 *
 * @example
 * ```ts
 * const read = new ParameterReader(source.config);
 * const width = read.number("width");
 * read.assertNoOthers();
 * ```
 */
export class ParameterReader {
  readonly #known = new Set<string>();

  constructor(private readonly config: Pick<ModelConfig, "name" | "parameters">) {}

  /** Undefined if the configuration lacks the parameter. */
  text(option: string): string | undefined {
    const key = snakeCase(option);
    this.#known.add(key);
    return this.config.parameters[key]?.stringValue.trim();
  }

  /** @throws TritonError INVALID_ARG for other text than a number */
  number(option: string): number | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    const value = numberOf(text);
    if (value === undefined) throw this.#invalid(option, "a number, or a quotient such as 1/255", text);
    return value;
  }

  /** Numbers that are separated by commas, perhaps in brackets. @throws TritonError INVALID_ARG for other text */
  numbers(option: string): number[] | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    const values = text
      .replace(/^\[|\]$/g, "")
      .split(",")
      .map(numberOf);
    if (values.includes(undefined)) throw this.#invalid(option, "numbers separated by commas", text);
    return values as number[];
  }

  /** Words that are separated by commas. */
  words(option: string): string[] | undefined {
    return this.text(option)
      ?.split(",")
      .map((word) => word.trim());
  }

  /** @throws TritonError INVALID_ARG for other text than `true` and `false` */
  flag(option: string): boolean | undefined {
    const text = this.text(option);
    if (text === undefined || text === "true" || text === "false")
      return text === undefined ? undefined : text === "true";
    throw this.#invalid(option, "true or false", text);
  }

  /** @throws TritonError INVALID_ARG for a parameter that was not read: it may be misspelled */
  assertNoOthers(): void {
    const { name, parameters } = this.config;
    const other = Object.keys(parameters).find((key) => !this.#known.has(key));
    if (other === undefined) return;
    const known = [...this.#known].sort().join(", ");
    throw new TritonError(
      "INVALID_ARG",
      `model '${name}': expected only the parameters ${known}, got '${other}'`,
      { reason: "INVALID_CONFIG" },
    );
  }

  #invalid(option: string, expected: string, text: string): TritonError {
    return new TritonError(
      "INVALID_ARG",
      `parameter '${snakeCase(option)}' of model '${this.config.name}': expected ${expected}, got '${text}'`,
      { reason: "INVALID_CONFIG" },
    );
  }
}

function numberOf(text: string): number | undefined {
  const [whole, divisor = "1", ...rest] = text.split("/").map((part) => part.trim());
  if (whole === "" || divisor === "" || rest.length > 0) return undefined;
  const value = Number(whole) / Number(divisor);
  return Number.isFinite(value) ? value : undefined;
}

function snakeCase(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
