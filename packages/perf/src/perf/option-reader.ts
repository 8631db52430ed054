import { readFileSync } from "node:fs";
import type { ParameterValue } from "@tritonjs/protocol";
import type { ParsedOptions } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import type { LevelRange } from "../measure/measure-level.js";
import type { ModelName } from "../measure/server-watch.js";

/** Name of an option on the command line: `latencyThreshold` is `--latency-threshold`. */
const flagOf = (name: string) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Reads options by their names in camelCase. Errors give the name on the command line. */
export class OptionReader {
  constructor(private readonly options: ParsedOptions) {}

  has(name: string): boolean {
    return this.options[name] !== undefined && this.options[name] !== false;
  }

  text(name: string): string | undefined {
    const value = this.options[name];
    return typeof value === "string" ? value : undefined;
  }

  texts(name: string): readonly string[] {
    const value = this.options[name];
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

  /** Reads `--input-data`: `random`, `zero`, or files. */
  inputData(): "random" | "zero" | readonly string[] {
    const [first, ...more] = this.texts("inputData");
    if (first === undefined) return "random";
    if (first !== "random" && first !== "zero") return [first, ...more];
    if (more.length === 0) return first;
    throw invalidOption(`--input-data: expected '${first}' alone, or files, got '${more.join("', '")}' too`);
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

export function readOptionNumber(
  option: string,
  text: string,
  { min = 0, max = Number.POSITIVE_INFINITY, whole = false } = {},
): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value) || value < min || value > max || (whole && !Number.isInteger(value))) {
    const kind = whole ? "a whole number" : "a number";
    const range = max === Number.POSITIVE_INFINITY ? `of at least ${min}` : `from ${min} to ${max}`;
    throw invalidOption(`${option}: expected ${kind} ${range}, got '${text}'`);
  }
  return value;
}

/** Reads `start:end:step`. The end is the start, and the step 1, unless given. An end of 0 has no limit. */
export function readLevelRange(option: string, text: string, { whole = false } = {}): LevelRange {
  const parts = text.split(":");
  if (parts.length > 3) throw invalidOption(`${option}: expected start:end:step, got '${text}'`);
  const min = whole ? 1 : Number.MIN_VALUE;
  const start = readOptionNumber(option, parts[0]!, { min, whole });
  const end = parts[1] === undefined ? start : readOptionNumber(option, parts[1], { whole });
  const step = parts[2] === undefined ? 1 : readOptionNumber(option, parts[2], { min, whole });
  if (end !== 0 && end < start) {
    throw invalidOption(
      `${option}: expected an end of at least the start ${start}, or 0 for none, got ${end}`,
    );
  }
  return { start, end, step };
}

const UNITS_MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

/** Reads a time with its unit, `500ms`, `30s` or `2m`, in milliseconds. */
export function readDuration(option: string, text: string): number {
  const [, number = "", unit = ""] = /^([\d.]+)(ms|s|m)$/.exec(text) ?? [];
  const value = Number(number);
  if (number === "" || !(value >= 0)) {
    throw invalidOption(`${option}: expected a time such as 500ms, 30s or 2m, got '${text}'`);
  }
  return value * UNITS_MS[unit]!;
}

/** Reads `from:to:time`. */
export function readRamp(
  option: string,
  text: string,
): { readonly from: number; readonly to: number; readonly durationMs: number } {
  const [from, to, time, ...rest] = text.split(":");
  if (from === undefined || to === undefined || time === undefined || rest.length > 0) {
    throw invalidOption(`${option}: expected from:to:time such as 10:100:30s, got '${text}'`);
  }
  return {
    from: readOptionNumber(option, from),
    to: readOptionNumber(option, to, { min: Number.MIN_VALUE }),
    durationMs: readDuration(option, time),
  };
}

/** Reads `NAME:1,2,3` for each input. */
export function readShapes(texts: readonly string[]): Record<string, number[]> {
  return Object.fromEntries(
    texts.map((text) => {
      // Names may contain colons; dimensions do not.
      const [, name = "", dims = ""] = /^(.+):([\d,]+)$/.exec(text) ?? [];
      if (name === "") throw invalidOption(`--shape: expected NAME:d1,d2, got '${text}'`);
      return [name, dims.split(",").map((dim) => readOptionNumber("--shape", dim, { min: 0, whole: true }))];
    }),
  );
}

/** Reads `name` or `name:version` for each model, separated by commas. */
export function readModelNames(text: string): ModelName[] {
  return text
    .split(",")
    .filter((part) => part !== "")
    .map((part) => {
      const [, name = part, version = ""] = /^(.+):(\d+)$/.exec(part) ?? [];
      return { name, version };
    });
}

/** Reads `Name: value` for each header. */
export function readHeaders(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const colon = text.indexOf(":");
      if (colon <= 0) throw invalidOption(`-H: expected 'Name: value', got '${text}'`);
      return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
    }),
  );
}

/** Reads `name:value:type` for each parameter. */
export function readParameterOptions(texts: readonly string[]): Record<string, ParameterValue> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name = "", value = "", type = ""] = /^([^:]+):(.*):(\w+)$/.exec(text) ?? [];
      if (name === "") throw invalidOption(`--request-parameter: expected name:value:type, got '${text}'`);
      return [name, parameterOf(text, value, type)];
    }),
  );
}

function parameterOf(text: string, value: string, type: string): ParameterValue {
  switch (type) {
    case "string":
      return value;
    case "bool":
      if (value === "true" || value === "false") return value === "true";
      break;
    case "int":
    case "uint":
      if (/^-?\d+$/.test(value))
        return readOptionNumber("--request-parameter", value, { min: -(2 ** 53), whole: true });
      break;
    case "double":
    case "float":
      return readOptionNumber("--request-parameter", value, { min: Number.NEGATIVE_INFINITY });
    default:
      throw invalidOption(
        `--request-parameter: expected a type of int, uint, bool, double or string, got '${type}'`,
      );
  }
  throw invalidOption(`--request-parameter: expected a value of type ${type}, got '${text}'`);
}

/** Reads a file with one gap in microseconds for each line. */
export function readGaps(path: string): number[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw invalidOption(`--request-intervals: cannot read '${path}': ${(error as Error).message}`, error);
  }
  const gaps = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => readOptionNumber("--request-intervals", line.trim()));
  if (gaps.length === 0 || gaps.every((gap) => gap === 0)) {
    throw invalidOption(
      `--request-intervals: expected gaps in microseconds, one for each line, in '${path}'`,
    );
  }
  return gaps;
}

export function readWord<const Word extends string>(
  option: string,
  text: string,
  words: readonly Word[],
): Word {
  const found = words.find((word) => word === text);
  if (found === undefined) throw invalidOption(`${option}: expected ${words.join(" or ")}, got '${text}'`);
  return found;
}
