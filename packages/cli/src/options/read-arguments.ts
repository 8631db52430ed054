import { readFileSync } from "node:fs";
import { closestName } from "@tritonjs/protocol";
import { checkOptions } from "./check-options.js";
import { cloudEnvironment } from "./cloud-environment.js";
import { expandNames } from "./expand-names.js";
import { OptionError } from "./option-error.js";
import { findOption, type GivenOptions, type ReadOptions, readOptions } from "./option-values.js";
import { allOptions } from "./options.js";

/**
 * Reads the options of `tritonjs serve`: those of the command line, then those of the environment, then those of
 * configuration files.
 *
 * @throws OptionError for an invalid command line.
 */
export function readArguments(args: readonly string[], environment: NodeJS.ProcessEnv): ReadOptions {
  const needsValue = (name: string) => findOption(name)?.argument !== undefined;
  const given = expandNames(args, Object.keys(allOptions), needsValue).map(splitArgument);
  const variables = readEnvironment(environment);
  const files = given.some(isConfig) ? given.filter(isConfig) : variables.filter(isConfig);
  const sources = [...files.map(([, path]) => readConfigFile(path)), variables, given];
  const hasRepository = sources
    .flat()
    .some(([name]) => name === "model-repository" || name === "model-store");
  const platform = cloudEnvironment(environment, hasRepository).map(known);
  const read = readOptions([platform, ...sources]);
  checkOptions(read);
  return read;
}

/** @throws OptionError for an option that does not exist. */
function known(option: GivenOptions[number]): GivenOptions[number] {
  const [name] = option;
  if (findOption(name) !== undefined) return option;
  throw new OptionError(`SAGEMAKER_TRITON_ADDITIONAL_ARGS: unrecognized option '--${name}'`, "alone");
}

function splitArgument(argument: string): GivenOptions[number] {
  const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument);
  if (match === null) throw new OptionError(`Unexpected argument: ${argument}`);
  return [match[1]!, match[2] ?? ""];
}

function isConfig([name]: GivenOptions[number]): boolean {
  return name === "config";
}

/**
 * Reads the options of a JSON file: an object of values by option name, with a list for an option that may be given
 * several times.
 *
 * @throws OptionError for a file that cannot be read, and for unknown options.
 */
function readConfigFile(path: string): GivenOptions {
  const fail = (reason: string) => new OptionError(`configuration file '${path}': ${reason}`, "alone");
  const content = parse(path, fail);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw fail("expected an object of options");
  }
  return Object.entries(content).flatMap(([name, value]) => {
    if (findOption(name) === undefined || name === "config") {
      const meant = closestName(name, Object.keys(allOptions));
      throw fail(`unknown option '${name}'${meant === undefined ? "" : `; did you mean '${meant}'?`}`);
    }
    return (Array.isArray(value) ? value : [value]).map((each): [string, string] => {
      if (["string", "number", "boolean"].includes(typeof each)) return [name, String(each)];
      throw fail(`option '${name}': expected text, a number or a boolean`);
    });
  });
}

function parse(path: string, fail: (reason: string) => OptionError): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw fail((error as Error).message);
  }
}

/**
 * Reads the options of the environment: TRITONJS_HTTP_PORT for --http-port. Several values are on separate lines. An
 * empty variable is ignored.
 */
function readEnvironment(environment: NodeJS.ProcessEnv): GivenOptions {
  return Object.keys(allOptions).flatMap((name) => {
    const value = environment[`TRITONJS_${name.toUpperCase().replaceAll("-", "_")}`];
    return value === undefined || value === ""
      ? []
      : value.split("\n").map((line): [string, string] => [name, line]);
  });
}
