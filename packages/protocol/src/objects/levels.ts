/** Most levels of objects and arrays in JSON that is passed on to a model. Schemas have about ten. */
export const MOST_LEVELS = 100;

/** Whether JSON data have more levels of objects and arrays than `levels`. Recurses at most that deep. */
export function hasMoreLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => hasMoreLevels(inner, levels - 1));
}
