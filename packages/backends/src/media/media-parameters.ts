import type { AutoCompleteConfig } from "@tritonjs/core/config";
import { completeStep, wrongParameter } from "@tritonjs/core/internal";
import {
  errorFor,
  type ModelConfig,
  type Tensor,
  type TensorSpec,
  type TritonError,
} from "@tritonjs/protocol";

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
  /** The library itself adds the parameter `substitute`. */
  readonly #known = new Set<string>(["substitute"]);

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
    const known = [...this.#known]
      .filter((key) => key !== "substitute")
      .sort()
      .join(", ");
    throw errorFor(
      "INVALID_CONFIG",
      `model '${name}': expected only the parameters ${known}, got '${other}'`,
    );
  }

  #invalid(option: string, expected: string, text: string): TritonError {
    return wrongParameter(this.config.name, snakeCase(option), expected, text);
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

function optionText(value: unknown): string {
  return typeof value === "string"
    ? `'${value}'`
    : Array.isArray(value)
      ? `[${value.join(", ")}]`
      : String(value);
}

/** Creates the error of an invalid option. */
export function mediaOptionError(name: string, expected: string, got: unknown): TritonError {
  return errorFor("INVALID_OPTION", `${name}: expected ${expected}, got ${optionText(got)}`);
}

/** @throws TritonError INVALID_ARG unless the value is an integer in the range */
export function assertInteger(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw mediaOptionError(name, `an integer from ${least} to ${most}`, value);
}

/** @throws TritonError INVALID_ARG unless the value is one of the words */
export function assertOneOf(name: string, value: string, words: readonly string[]): void {
  if (words.includes(value)) return;
  throw mediaOptionError(name, `one of ${words.join(", ")}`, value);
}

/**
 * The elements of an input that has one file for each row.
 *
 * @throws TritonError INVALID_ARG unless there is exactly one
 */
export function filesOf(input: Tensor | undefined, name: string, hasRows: boolean): readonly Uint8Array[] {
  const files = input === undefined ? [] : (input.elements as readonly Uint8Array[]);
  if (hasRows || files.length === 1) return files;
  throw badFile(name, undefined, `expected one file, got ${files.length}`);
}

/**
 * The error for a file of a request.
 *
 * @param row index of the row; undefined for a request with a single row
 */
export function badFile(name: string, row: number | undefined, text: string, cause?: unknown): TritonError {
  const place = row === undefined ? "" : `, row ${row}`;
  return errorFor("INVALID_INPUT", `input '${name}'${place}: ${text}`, { cause });
}

/** True if the tensors of a configuration have an axis of rows: the batch axis, or one that is written in the dims. */
export function hasRows({ maxBatchSize, input }: ModelConfig, name: string): boolean {
  return maxBatchSize > 0 || (input.find((one) => one.name === name)?.dims.length ?? 1) > 1;
}

/** Names of the state of a step that goes on from request to request: as input, and as output. */
export const PAST = "past";
export const PRESENT = "present";

/** Like {@link completeStep}, for a step that may have a state. A state is written as such, not as a tensor. */
export function completeTensors(
  config: AutoCompleteConfig,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): void {
  completeStep(
    config,
    inputs.filter(({ name }) => name !== PAST),
    outputs.filter(({ name }) => name !== PRESENT),
  );
}
