import { closestName, TritonError } from "@tritonjs/protocol";

/**
 * Lists the keys of a type, in the order of `keys`. The compiler reports a key that is missing in `keys`, and a key
 * that the type lacks.
 *
 * @example `const OPTION_KEYS = keyList<Options>({ rate: true, count: true })`
 */
export function keyList<T extends object>(
  keys: {
    readonly [Key in keyof T & string]-?: true;
  },
): readonly (keyof T & string)[] {
  return Object.keys(keys) as (keyof T & string)[];
}

/** Options of other objects, by the words for the object: `new Triton()`, `config.batcher`. */
export type OptionsElsewhere = Readonly<Record<string, readonly string[]>>;

/**
 * One line for each key of `value` that is not in `known`. It names the object that has such an option, or proposes the
 * key that the user most likely meant, or lists all of them.
 *
 * @param where the object in the text, such as `config.batcher`
 */
export function unknownKeys(
  where: string,
  value: object,
  known: readonly string[],
  elsewhere: OptionsElsewhere = {},
): string[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => `${where} has an unknown option '${key}': ${adviceFor(key, known, elsewhere)}`);
}

function adviceFor(key: string, known: readonly string[], elsewhere: OptionsElsewhere): string {
  const owner = Object.entries(elsewhere).find(([, keys]) => keys.includes(key));
  if (owner !== undefined) return `it is an option of ${owner[0]}`;
  const meant = closestName(key, known);
  return meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean '${meant}'?`;
}

/**
 * Checks that an object has known options only, for callers without TypeScript.
 *
 * @param where the object in the text, such as `http()`
 * @param elsewhere options of other objects, which users may confuse with this one
 * @throws TritonError INVALID_ARG with a line for each unknown option, which proposes the one that is likely meant.
 * @example `checkOptionNames("http()", { prot: 8000 }, ["port"]) // http() has an unknown option 'prot': did you mean 'port'?`
 */
export function checkOptionNames(
  where: string,
  options: object,
  known: readonly string[],
  elsewhere?: OptionsElsewhere,
): void {
  throwProblems(unknownKeys(where, options, known, elsewhere), "INVALID_OPTION");
}

/** @throws TritonError INVALID_ARG with all problems, one on each line, if there are any */
export function throwProblems(
  problems: readonly string[],
  reason: "INVALID_CONFIG" | "INVALID_OPTION" = "INVALID_CONFIG",
): void {
  if (problems.length > 0) throw new TritonError("INVALID_ARG", problems.join("\n"), { reason });
}
