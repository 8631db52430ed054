import { errorFor } from "@tritonjs/protocol";
import {
  type Forest,
  type ForestHead,
  invalidModel,
  keyAtMost,
  keyBelow,
  notSupported,
  SMALLEST_KEY,
} from "./forest.js";

/** How a node compares the value `x` of its feature with its threshold `t`: rows with a true comparison go left. */
export type Comparison = "<" | "<=" | ">" | ">=";

/** Node that sends categories to one side. */
export interface CategoricalSplit {
  readonly categories: ArrayLike<number>;
  /** True if rows with one of the categories go to the right. */
  readonly matchesGoRight: boolean;
}

/** A tree as a reader takes it from a file. Node 0 is the root. Nothing of it has been checked. */
export interface SourceTree {
  /** Number of nodes, including unreachable ones. */
  readonly size: number;
  /** Children of each node; the left child of a leaf is -1. */
  readonly left: ArrayLike<number>;
  readonly right: ArrayLike<number>;
  readonly feature: ArrayLike<number>;
  readonly threshold: ArrayLike<number>;
  readonly comparison: Comparison | ((node: number) => Comparison);
  readonly missingGoLeft: (node: number) => boolean;
  /** Whether a numerical node treats values around 0 as missing. */
  readonly zeroIsMissing?: (node: number) => boolean;
  /** The categories of a categorical node; undefined for a numerical one. */
  readonly categorical?: (node: number) => CategoricalSplit | undefined;
  readonly leaf: (node: number, index: number) => number;
  /** Weight of the training rows of each node. */
  readonly cover?: ((node: number) => number) | undefined;
  /** The group that the tree adds to; -1 for a tree whose leaves have a value for each group. */
  readonly group: number;
}

/** Places of nodes are 31-bit integers, and a node takes four. */
const MAX_NODES = 2 ** 29 - 1;

/** Categories are exact in 32-bit floats up to here. */
const MAX_CATEGORY = 2 ** 24;

/**
 * Puts trees into the flat form of a {@link Forest}, and checks them: children exist, no node has two parents, features
 * exist, and thresholds and leaves are numbers. Memory is bounded by the size of the trees.
 */
export class ForestBuilder {
  readonly #nodes = new GrowingArray(Int32Array);
  readonly #roots = new GrowingArray(Int32Array);
  readonly #usualSteps = new GrowingArray(Int32Array);
  readonly #depths = new GrowingArray(Int32Array);
  readonly #treeGroups = new GrowingArray(Int32Array);
  readonly #leaves = new GrowingArray(Float64Array);
  readonly #categoryNodes = new GrowingArray(Int32Array);
  readonly #categories = new GrowingArray(Int32Array);
  readonly #covers = new GrowingArray(Float64Array);
  /** Places in `usedFeatures` by feature, and by `-1 - feature` for nodes that treat values around 0 as missing. */
  readonly #slots = new Map<number, number>();
  #hasCovers = true;

  /** @throws TritonError INVALID_ARG for counts that no model can have */
  constructor(private readonly head: ForestHead) {
    const { features } = head;
    if (!Number.isInteger(features) || features < 1)
      throw invalidModel(`number of features: expected at least 1, got ${features}`);
    for (const score of head.base) {
      if (!Number.isFinite(score)) throw invalidModel(`base score: expected a finite number, got ${score}`);
    }
  }

  /** @throws TritonError INVALID_ARG for a tree that is not one, UNSUPPORTED for too many nodes */
  add(tree: SourceTree): void {
    const number = this.#roots.length;
    const problem = (node: number, text: string) => invalidModel(`tree ${number}, node ${node}: ${text}`);
    const { size, group } = tree;
    const isVector = this.head.leafWidth > 1;
    if (!Number.isInteger(group) || group < (isVector ? -1 : 0) || group >= this.head.groups) {
      throw invalidModel(`tree ${number}: expected a class from 0 to ${this.head.groups - 1}, got ${group}`);
    }
    if (!Number.isInteger(size) || size < 1)
      throw invalidModel(`tree ${number}: expected at least one node, got ${size}`);
    if (this.#nodes.length / 4 + size > MAX_NODES)
      throw notSupported(`the model has more than ${MAX_NODES} nodes`);
    const seen = new Uint8Array(size);
    const first = this.#nodes.length;
    // Breadth first: `order` has the nodes of the file in the order of the places here.
    const order = new GrowingArray(Int32Array);
    const levels = new GrowingArray(Int32Array);
    const enter = (node: number, level: number, parent: number) => {
      if (!Number.isInteger(node) || node < 0 || node >= size)
        throw problem(parent, `expected a child from 0 to ${size - 1}, got ${node}`);
      if (seen[node] === 1)
        throw problem(parent, `its child ${node} has another parent, so this is not a tree`);
      seen[node] = 1;
      order.push(node);
      levels.push(level);
      for (let i = 0; i < 4; i++) this.#nodes.push(0);
    };
    enter(0, 0, 0);
    let leafCount = 0;
    let leafLevels = 0;
    let depth = 0;
    for (let i = 0; i < order.length; i++) {
      const node = order.get(i);
      const level = levels.get(i);
      const place = first + 4 * i;
      this.#addCover(tree, node, problem);
      if (tree.left[node] === -1) {
        this.#setLeaf(place, tree, node, problem);
        leafCount++;
        leafLevels += level;
        depth = Math.max(depth, level);
        continue;
      }
      const children = first + 4 * order.length;
      const [one, other] = this.#setSplit(place, children, tree, node, problem);
      enter(one, level + 1, node);
      enter(other, level + 1, node);
    }
    this.#roots.push(first);
    this.#usualSteps.push(Math.ceil(leafLevels / leafCount));
    this.#depths.push(depth);
    this.#treeGroups.push(group);
  }

  /** @throws TritonError INVALID_ARG for a class without trees whose leaves would be averaged */
  build(): Forest {
    const { groups, averages } = this.head;
    const treeGroups = this.#treeGroups.toArray();
    const slots = [...this.#slots.keys()];
    const treesOfGroup = new Int32Array(groups);
    for (const group of treeGroups) {
      if (group >= 0) treesOfGroup[group]!++;
      else for (let i = 0; i < groups; i++) treesOfGroup[i]!++;
    }
    if (averages && treesOfGroup.includes(0))
      throw invalidModel(
        "expected at least one tree for each class of a model that averages its trees, got none",
      );
    return {
      ...this.head,
      nodes: this.#nodes.toArray(),
      roots: this.#roots.toArray(),
      usualSteps: this.#usualSteps.toArray(),
      depths: this.#depths.toArray(),
      treeGroups,
      leaves: this.#leaves.toArray(),
      usedFeatures: Int32Array.from(slots, (key) => (key < 0 ? -1 - key : key)),
      zeroMissingSlots: Int32Array.from(slots.flatMap((key, slot) => (key < 0 ? [slot] : []))),
      categoryNodes: this.#categoryNodes.toArray(),
      categories: this.#categories.toArray(),
      treesOfGroup,
      covers: this.#hasCovers ? this.#covers.toArray() : new Float64Array(),
    };
  }

  #addCover(tree: SourceTree, node: number, problem: Problem): void {
    if (tree.cover === undefined || !this.#hasCovers) {
      this.#hasCovers = false;
      return;
    }
    const cover = tree.cover(node);
    if (!(cover >= 0 && cover < Number.POSITIVE_INFINITY))
      throw problem(node, `weight of its rows: expected a number from 0, got ${cover}`);
    this.#covers.push(cover);
  }

  #setLeaf(place: number, tree: SourceTree, node: number, problem: Problem): void {
    const { leafWidth } = this.head;
    this.#setNode(place, 0, SMALLEST_KEY, place - 4, this.#leaves.length / leafWidth);
    for (let i = 0; i < leafWidth; i++) {
      const value = tree.leaf(node, i);
      if (typeof value !== "number" || Number.isNaN(value))
        throw problem(node, `leaf: expected a number, got ${value}`);
      this.#leaves.push(value);
    }
  }

  /** @returns the children in the order of their places */
  #setSplit(
    place: number,
    children: number,
    tree: SourceTree,
    node: number,
    problem: Problem,
  ): readonly [number, number] {
    const feature = tree.feature[node]!;
    if (!Number.isInteger(feature) || feature < 0 || feature >= this.head.features)
      throw problem(node, `expected a feature from 0 to ${this.head.features - 1}, got ${feature}`);
    const [left, right] = [tree.left[node]!, tree.right[node]!];
    const missing = tree.missingGoLeft(node) ? left : right;
    const split = tree.categorical?.(node);
    if (split !== undefined) {
      const [match, other] = split.matchesGoRight ? [right, left] : [left, right];
      const index = this.#addCategories(feature, split.categories, missing === match, (text) =>
        problem(node, text),
      );
      this.#setNode(place, -1 - index, 0, children, -1);
      return [match, other];
    }
    const threshold = tree.threshold[node]!;
    if (typeof threshold !== "number" || Number.isNaN(threshold))
      throw problem(node, `threshold: expected a number, got ${threshold}`);
    const comparison = typeof tree.comparison === "string" ? tree.comparison : tree.comparison(node);
    const { key, smallerGoLeft } = limitOf(comparison, threshold);
    const [smaller, larger] = smallerGoLeft ? [left, right] : [right, left];
    const position = 2 * this.#slotOf(feature, tree.zeroIsMissing?.(node) ?? false);
    if (missing === larger) {
      this.#setNode(place, position, key, children, -1);
      return [smaller, larger];
    }
    // x >= limit exactly if -x < the key after that of -limit.
    this.#setNode(place, position + 1, 1 - key, children, -1);
    return [larger, smaller];
  }

  #setNode(place: number, position: number, key: number, child: number, leaf: number): void {
    this.#nodes.set(place, position);
    this.#nodes.set(place + 1, key);
    this.#nodes.set(place + 2, child);
    this.#nodes.set(place + 3, leaf);
  }

  #addCategories(
    feature: number,
    given: ArrayLike<number>,
    missingMatch: boolean,
    problem: (text: string) => Error,
  ): number {
    const begin = this.#categories.length;
    for (let i = 0; i < given.length; i++) {
      const category = given[i]!;
      if (!Number.isInteger(category) || category < 0 || category > MAX_CATEGORY)
        throw problem(`expected categories from 0 to ${MAX_CATEGORY}, got ${category}`);
    }
    for (const category of new Set(Int32Array.from(given).sort())) this.#categories.push(category);
    const index = this.#categoryNodes.length / 4;
    for (const value of [feature, begin, this.#categories.length, missingMatch ? 1 : 0])
      this.#categoryNodes.push(value);
    return index;
  }

  #slotOf(feature: number, zeroIsMissing: boolean): number {
    const key = zeroIsMissing ? -1 - feature : feature;
    const found = this.#slots.get(key);
    if (found !== undefined) return found;
    this.#slots.set(key, this.#slots.size);
    return this.#slots.size - 1;
  }
}

type Problem = (node: number, text: string) => Error;

/** The key that the keys of smaller values are below. */
function limitOf(comparison: Comparison, threshold: number): { key: number; smallerGoLeft: boolean } {
  switch (comparison) {
    case "<":
      return { key: keyBelow(threshold), smallerGoLeft: true };
    case "<=":
      return { key: keyAtMost(threshold), smallerGoLeft: true };
    case ">":
      return { key: keyAtMost(threshold), smallerGoLeft: false };
    case ">=":
      return { key: keyBelow(threshold), smallerGoLeft: false };
  }
}

/** A list of numbers in a typed array that doubles when it is full. */
class GrowingArray<A extends Int32Array | Float64Array> {
  #items: A;
  length = 0;

  constructor(private readonly newArray: new (length: number) => A) {
    this.#items = new newArray(1024);
  }

  push(value: number): void {
    if (this.length === this.#items.length) {
      const larger = new this.newArray(2 * this.length);
      larger.set(this.#items);
      this.#items = larger;
    }
    this.#items[this.length++] = value;
  }

  set(index: number, value: number): void {
    this.#items[index] = value;
  }

  get(index: number): number {
    return this.#items[index]!;
  }

  toArray(): A {
    return this.#items.slice(0, this.length) as A;
  }
}

/** Classes without trees that a model may have. */
const MAX_EMPTY_GROUPS = 4096;

/**
 * Checks the number of classes that a file claims, before memory is made for them.
 *
 * @param trees number of trees of the file
 * @param leafWidth number of values of a leaf
 * @throws TritonError INVALID_ARG for more than the trees can have
 */
export function assertGroupCount(groups: number, trees: number, leafWidth: number): void {
  if (!Number.isInteger(groups) || groups < 1)
    throw invalidModel(`number of classes: expected at least 1, got ${groups}`);
  const most = Math.max(MAX_EMPTY_GROUPS, trees, leafWidth);
  if (groups > most)
    throw invalidModel(`number of classes: expected one for each tree at most, got ${groups}`);
}

export interface TreeFileOptions {
  /** Whether fields of an XGBoost document that are not known are ignored rather than refused. */
  readonly allowUnknownFields: boolean;
  /** Boosting rounds to use; "best" for those up to XGBoost's `best_iteration`; undefined for all. */
  readonly rounds: number | "best" | undefined;
}

/**
 * Number of trees of the rounds that are used.
 *
 * @param perRound number of trees of a round
 * @param best number of rounds up to the best one, if the file has it
 * @throws TritonError INVALID_ARG for rounds that the model does not have
 */
export function roundCount(
  trees: number,
  perRound: number,
  rounds: number | "best" | undefined,
  best: () => number | undefined,
): number {
  if (rounds === undefined) return trees;
  const all = Math.ceil(trees / perRound);
  const count = rounds === "best" ? (best() ?? all) : rounds;
  if (Number.isInteger(count) && count >= 1 && count <= all) return Math.min(trees, count * perRound);
  throw errorFor("INVALID_OPTION", `rounds: expected an integer from 1 to ${all}, got ${count}`);
}
