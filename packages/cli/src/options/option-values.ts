import type { Option } from "./option.js";
import { OptionError } from "./option-error.js";
import { allOptions, type OptionName, type OptionValues } from "./options.js";

/** The options that were read, and warnings for the user. */
export interface ReadOptions {
  readonly values: OptionValues;
  /** Warnings about options without effect and about old names. */
  readonly warnings: readonly string[];
  /** Options that were given explicitly, rather than with their initial value. */
  readonly given: ReadonlySet<string>;
}

/** Values of options as texts, in the given order. */
export type GivenOptions = readonly (readonly [name: string, text: string])[];

/** Looks an option up. */
export function findOption(name: string): Option<unknown> | undefined {
  return Object.hasOwn(allOptions, name) ? (allOptions[name as OptionName] as Option<unknown>) : undefined;
}

/**
 * Reads the texts of options.
 *
 * @param sources in ascending precedence: an option in a later source replaces the same option of earlier ones
 * @throws OptionError for the first value that cannot be read.
 */
export function readOptions(sources: readonly GivenOptions[]): ReadOptions {
  const values = new Map<string, unknown>(
    Object.entries(allOptions).map(([name, option]) => [name, option.initial]),
  );
  const warnings: string[] = [];
  const given = new Set<string>();
  for (const source of [...sources].reverse()) {
    const before = new Set(given);
    for (const [name, text] of source) {
      if (before.has(name)) continue;
      const option = findOption(name)!;
      if (option.deprecated !== undefined) warnings.push(option.deprecated(text));
      values.set(name, readOne(name, option, text, values.get(name)));
      given.add(name);
    }
  }
  for (const name of given) {
    const { noEffect, noEffectHere } = findOption(name)!;
    const reason = noEffect ?? noEffectHere;
    if (reason !== undefined) warnings.push(`Warning: '--${name}' has no effect: ${reason}.`);
  }
  return { values: Object.fromEntries(values) as OptionValues, warnings, given };
}

function readOne(name: string, option: Option<unknown>, text: string, previous: unknown): unknown {
  try {
    return option.read(text, previous);
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    throw new OptionError(`Bad option: "--${name}".\n${error.message}`);
  }
}
