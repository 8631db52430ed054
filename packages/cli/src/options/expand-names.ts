import { closestName } from "@tritonjs/protocol";
import { OptionError } from "./option-error.js";

/**
 * Expands abbreviated names of options. Like `getopt_long`, it allows a prefix that belongs to one option only.
 *
 * @param needsValue whether an option takes a value, which may be the next argument
 * @throws OptionError for an unknown or ambiguous name, a missing value, or a value that the option does not take.
 */
export function expandNames(
  args: readonly string[],
  names: readonly string[],
  needsValue: (name: string) => boolean,
): string[] {
  const expanded: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    if (argument === "--") return [...expanded, ...args.slice(index)];
    const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument);
    if (match === null) {
      if (/^-./.test(argument)) throw getopt(`unrecognized option '${argument}'`);
      expanded.push(argument);
      continue;
    }
    const name = fullName(match[1]!, argument, names);
    const given = match[2];
    if (!needsValue(name)) {
      if (given !== undefined) throw getopt(`option '--${name}' doesn't allow an argument`);
      expanded.push(`--${name}`);
      continue;
    }
    const value = given ?? args[++index];
    if (value === undefined) throw getopt(`option '--${name}' requires an argument`);
    expanded.push(`--${name}=${value}`);
  }
  return expanded;
}

function fullName(short: string, argument: string, names: readonly string[]): string {
  if (names.includes(short)) return short;
  const candidates = names.filter((name) => name.startsWith(short));
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length === 0) {
    const text = `tritonjs: unrecognized option '${argument}'`;
    const meant = closestName(short, names);
    // The usage would push the proposal off the screen.
    if (meant !== undefined) throw new OptionError(`${text}\nDid you mean '--${meant}'?`, "alone");
    throw new OptionError(text, "before usage");
  }
  const possibilities = candidates.map((name) => `'--${name}'`).join(" ");
  throw getopt(`option '--${short}' is ambiguous; possibilities: ${possibilities}`);
}

function getopt(text: string): OptionError {
  return new OptionError(`tritonjs: ${text}`, "before usage");
}
