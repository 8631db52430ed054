/** The members of an object, without those that are undefined. */
export type DefinedMembers<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Copies an object without its undefined members, so that defaults apply in their place. */
export function definedMembers<T extends object>(object: T): DefinedMembers<T> {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as DefinedMembers<T>;
}
