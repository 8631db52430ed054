import { checkOptions } from "./check-options.js";
import { readConfigFile } from "./config-file.js";
import { readEnvironment } from "./environment.js";
import { expandNames } from "./expand-names.js";
import { OptionError } from "./option-error.js";
import { findOption, type GivenOptions, type ReadOptions, readOptions } from "./option-values.js";
import { allOptions } from "./options.js";

/**
 * Reads the options of `tritonjs serve`: those of the command line, then those of the environment, then those of
 * configuration files.
 *
 * @throws OptionError for what cannot be run.
 */
export function readArguments(args: readonly string[], environment: NodeJS.ProcessEnv): ReadOptions {
  const needsValue = (name: string) => findOption(name)?.argument !== undefined;
  const given = expandNames(args, Object.keys(allOptions), needsValue).map(splitArgument);
  const variables = readEnvironment(environment);
  const files = given.some(isConfig) ? given.filter(isConfig) : variables.filter(isConfig);
  const read = readOptions([...files.map(([, path]) => readConfigFile(path)), variables, given]);
  checkOptions(read);
  return read;
}

function splitArgument(argument: string): GivenOptions[number] {
  const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument);
  if (match === null) throw new OptionError(`Unexpected argument: ${argument}`);
  return [match[1]!, match[2] ?? ""];
}

function isConfig([name]: GivenOptions[number]): boolean {
  return name === "config";
}
