import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  errorFor,
  type InstanceHosting,
  type Isolation,
  type ModelConfig,
  type TritonError,
} from "@tritonjs/protocol";
import { hostingProblems, PAD_INPUTS } from "../config/model-options.js";
import type { ModelFiles, ParameterTable } from "../instance/backend.js";
import { assertInRepository, assertLinksInRepository, isInside } from "../system/files.js";
import { type DeclaredParameters, SHARED_PARAMETERS, SUBSTITUTED, useOf } from "./declared-parameters.js";

/** The fields of a model that locate its file. */
export type ModelLocation = Pick<
  ModelFiles,
  "name" | "directory" | "versionDirectory" | "config" | "settings"
>;

/** A file or a directory of a model. */
export interface ModelFile {
  readonly path: string;
  readonly isDirectory: boolean;
}

/**
 * Finds the file, or directory, that a version of a model is in: `default_model_filename`, or the first of the usual
 * names that exists.
 *
 * @param missing makes the error for a file that does not exist
 * @throws TritonError INVALID_ARG for a file outside the model's directory, and `missing` when there is none.
 */
export async function findModelFile(
  { name, directory, versionDirectory, config, settings }: ModelLocation,
  usual: readonly [string, ...string[]],
  missing: (path: string, name: string) => TritonError = notFound,
): Promise<ModelFile> {
  const { defaultModelFilename } = config;
  const names = defaultModelFilename === "" ? usual : [defaultModelFilename];
  for (const one of names) {
    const path = join(versionDirectory, one);
    if (!isInside(directory, path)) {
      throw errorFor(
        "PATH_NOT_ALLOWED",
        `default_model_filename of model '${name}': expected a path inside the model's directory, got '${one}'`,
      );
    }
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    await assertInRepository(directory, path, settings);
    const isDirectory = found.isDirectory();
    if (isDirectory || found.isFile()) return { path, isDirectory };
    throw errorFor("INVALID_MODEL", `cannot read ${path}: it is not a regular file`);
  }
  throw missing(join(versionDirectory, names[0]!), name);
}

/**
 * Checks the directory of a version for a backend that reads several files of it.
 *
 * @returns the directory
 * @throws TritonError NOT_FOUND for a missing directory, INVALID_ARG for a link in it that leads out of the repository
 */
export async function findModelDirectory({
  name,
  directory,
  versionDirectory,
  settings,
}: ModelLocation): Promise<string> {
  const found = await stat(versionDirectory).catch(() => undefined);
  if (!found?.isDirectory()) throw notFound(versionDirectory, name);
  await assertLinksInRepository(directory, versionDirectory, settings);
  return versionDirectory;
}

/** The error for a missing model file, with the text of most of Triton's backends. */
export function notFound(path: string, name: string): TritonError {
  return errorFor("MODEL_FILE_MISSING", `unable to find '${path}' for model instance '${name}'`);
}

/**
 * Reads where a model of a repository runs and its limits. They are the parameters `isolation` (`worker` or `process`),
 * `heap_limit_mb` and `execution_timeout_ms` of its configuration, or settings of its backend by the same names with
 * hyphens. A backend returns them as its `hosting`.
 *
 * @param possible where the backend can run the model, the default first
 * @param isNative true for native code, which cannot be interrupted in a thread
 * @throws TritonError INVALID_ARG for invalid values
 * @example
 * ```ts
 * const greeting: BackendFactory = (source) => ({
 *   ...backend,
 *   hosting: hostingOf(source, ["worker", "process"], false),
 * });
 * ```
 */
export function hostingOf(
  { config, settings }: Pick<ModelFiles, "config" | "settings">,
  possible: readonly Isolation[],
  isNative: boolean,
): InstanceHosting {
  const source = { config, settings };
  const isolation = SHARED_PARAMETERS.text(source, "isolation");
  const heapLimitMb = SHARED_PARAMETERS.text(source, "heap_limit_mb");
  const executionTimeoutMs = SHARED_PARAMETERS.text(source, "execution_timeout_ms");
  const hosting: InstanceHosting = {
    ...(isolation === undefined ? {} : { isolation: isolation as Isolation }),
    ...(heapLimitMb === undefined ? {} : { heapLimitMb: Number(heapLimitMb) }),
    ...(executionTimeoutMs === undefined ? {} : { executionTimeoutMs: Number(executionTimeoutMs) }),
  };
  const problems = hostingProblems(`model '${config.name}'`, hosting, possible, isNative);
  if (problems.length > 0) throw errorFor("INVALID_CONFIG", problems.join("; "));
  return hosting;
}

/**
 * Milliseconds that an instance may take to load: the parameter `load_timeout_seconds`, or the setting
 * `load-timeout-seconds` of the backend.
 *
 * @throws TritonError INVALID_ARG unless the value is a number above 0
 */
export function loadTimeoutMs(
  { config, settings }: Pick<ModelFiles, "config" | "settings">,
  defaultSeconds: number,
): number {
  const text = SHARED_PARAMETERS.text({ config, settings }, "load_timeout_seconds");
  const seconds = text === undefined ? defaultSeconds : Number(text);
  if (seconds > 0 && seconds < 2 ** 31 / 1000) return seconds * 1000;
  throw wrongParameter(config.name, "load_timeout_seconds", "a number above 0", text);
}

export function wrongParameter(
  model: string,
  key: string,
  expected: string,
  got: string | undefined,
): TritonError {
  return errorFor(
    "INVALID_CONFIG",
    `parameter '${key}' of model '${model}': expected ${expected}, got ${got === undefined ? "nothing" : `'${got}'`}`,
  );
}

/**
 * Reads options from the parameters of a configuration, whose names are those of the options in snake case.
 *
 * @example
 * ```ts
 * const read = new ParameterReader(source, PARAMETERS);
 * const width = read.number("width");
 * read.assertNoOthers();
 * ```
 */
export class ParameterReader {
  readonly config: ModelConfig;
  readonly #others: ParameterTable;

  constructor(
    { config, otherParameters = {} }: Pick<ModelFiles, "config" | "otherParameters">,
    private readonly declared: DeclaredParameters<string>,
  ) {
    this.config = config;
    this.#others = otherParameters;
  }

  /** Undefined if the configuration lacks the parameter. */
  text(option: string): string | undefined {
    return this.declared.text(this, snakeCase(option))?.trim();
  }

  /** @throws TritonError INVALID_ARG for other text than a number */
  number(option: string): number | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (text === "" || !Number.isFinite(value)) throw this.#invalid(option, "a number", text);
    return value;
  }

  /** @throws TritonError INVALID_ARG for other text than a number, or a quotient of numbers */
  quotient(option: string): number | undefined {
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

  /** @throws TritonError INVALID_ARG for a parameter that is not declared: it may be misspelled */
  assertNoOthers(): void {
    const { name, parameters } = this.config;
    const { own } = this.declared;
    // The library itself adds the first parameter. Models of any backend may have the second one.
    const known = { ...this.#others, [SUBSTITUTED]: "value", [PAD_INPUTS]: "value" } as const;
    const isKnown = (key: string) => Object.hasOwn(own, key) || useOf(known, key) !== undefined;
    const other = Object.keys(parameters).find((key) => !isKnown(key));
    if (other === undefined) return;
    const names = Object.keys(own).sort().join(", ");
    throw errorFor(
      "INVALID_CONFIG",
      `model '${name}': expected only the parameters ${names}, got '${other}'`,
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
