/** A model of a repository: its name, and the repository where namespaces are on. */
export interface ModelId {
  /** Path of the repository where namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly name: string;
}

/** A model id as the key of a map. */
export type ModelKey = string;

export function keyOf({ namespace, name }: ModelId): ModelKey {
  return `${namespace}\0${name}`;
}

/** Order of the index: by repository, then by name. */
export function compareIds(a: ModelId, b: ModelId): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
