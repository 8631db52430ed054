import { closestName } from "@tritonjs/protocol";

/**
 * One line for each key of `value` that is not in `known`. It proposes the key that the user most likely meant, or lists
 * all of them.
 *
 * @param where the object in the text, such as `config.batcher`
 */
export function unknownKeys(where: string, value: object, known: readonly string[]): string[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const meant = closestName(key, known);
      const expected =
        meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean '${meant}'?`;
      return `${where} has an unknown option '${key}': ${expected}`;
    });
}
