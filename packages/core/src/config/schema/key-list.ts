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
