import { readFileSync } from "node:fs";
import { OptionError } from "./option-error.js";
import { findOption, type GivenOptions } from "./option-values.js";

/**
 * Options of a JSON file: an object of values by the names of the options; a list for an option that may be given
 * several times.
 *
 * @throws OptionError for a file that cannot be read, and for unknown options.
 */
export function readConfigFile(path: string): GivenOptions {
  const fail = (reason: string) => new OptionError(`configuration file '${path}': ${reason}`, "alone");
  const content = parse(path, fail);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw fail("expected an object of options");
  }
  return Object.entries(content).flatMap(([name, value]) => {
    if (findOption(name) === undefined || name === "config") throw fail(`unknown option '${name}'`);
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
