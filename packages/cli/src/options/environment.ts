import type { GivenOptions } from "./option-values.js";
import { allOptions } from "./options.js";

/**
 * Options of the environment: TRITONJS_HTTP_PORT for --http-port. Several values stand in lines of their own; an empty
 * variable is none.
 */
export function readEnvironment(environment: NodeJS.ProcessEnv): GivenOptions {
  return Object.keys(allOptions).flatMap((name) => {
    const value = environment[`TRITONJS_${name.toUpperCase().replaceAll("-", "_")}`];
    return value === undefined || value === ""
      ? []
      : value.split("\n").map((line): [string, string] => [name, line]);
  });
}
