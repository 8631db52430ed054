import { closestName } from "@tritonjs/protocol";

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
