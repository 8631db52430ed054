import type { Forest } from "./forest.js";

/**
 * Follows a row through a tree that may have categorical nodes. Returns the number of its leaf.
 *
 * @param keys keys of rows
 * @param keysAt place of the row's keys
 * @param values values of rows
 * @param valuesAt place of the row's values
 */
export function reachLeaf(
  forest: Forest,
  root: number,
  keys: Int32Array,
  keysAt: number,
  values: Float32Array,
  valuesAt: number,
): number {
  const { nodes } = forest;
  let place = root;
  while (nodes[place + 3]! < 0) {
    const goesFirst = firstChildTakes(forest, place, keys, keysAt, values, valuesAt);
    place = nodes[place + 2]! + (goesFirst ? 0 : 4);
  }
  return nodes[place + 3]!;
}

/** True if a row goes from a node to its first child. */
export function firstChildTakes(
  { nodes, categoryNodes, categories }: Forest,
  place: number,
  keys: Int32Array,
  keysAt: number,
  values: Float32Array,
  valuesAt: number,
): boolean {
  const position = nodes[place]!;
  if (position >= 0) return keys[keysAt + position]! < nodes[place + 1]!;
  const node = 4 * (-1 - position);
  const value = values[valuesAt + categoryNodes[node]!]!;
  if (Number.isNaN(value)) return categoryNodes[node + 3] === 1;
  return isAmong(categories, categoryNodes[node + 1]!, categoryNodes[node + 2]!, value);
}

/** True if the whole part of a value is in a sorted part of a list. Negative values never are. */
function isAmong(categories: Int32Array, begin: number, end: number, value: number): boolean {
  if (value < 0) return false;
  const category = Math.trunc(value);
  let [low, high] = [begin, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = categories[middle]!;
    if (there === category) return true;
    if (there < category) low = middle + 1;
    else high = middle;
  }
  return false;
}
