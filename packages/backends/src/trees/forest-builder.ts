import { errorFor } from "@tritonjs/protocol";
import {
  FIRST_CODE,
  type Forest,
  type ForestHead,
  Header,
  invalidModel,
  keyAtMost,
  keyBelow,
  MAX_CATEGORY,
  MISSING_CODE,
  NODE_BYTES,
  NODES_AT,
  notSupported,
  SMALLEST_KEY,
  TREE_BYTES,
  TREES_AT_ONCE,
} from "./forest.js";
import { newMemory } from "./kernel.js";

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

/** Addresses are 31-bit integers. */
const MAX_BYTES = 2 ** 31 - 1;

/** Rows of a block. Its keys and a tree fit into the first cache. */
const BLOCK_ROWS = 64;

/** Bound of the keys of a block, for models of many features. */
const BLOCK_KEYS = 64 * 1024;

/** Bits for each category that a set may take, so that memory stays proportional to the file; larger sets are lists. */
const BITS_OF_CATEGORY = 64;

/** Bits that any set may take. */
const BITS_OF_SET = 4096;

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
  /** Sets of categorical nodes: bits, or sorted lists of codes. */
  readonly #sets = new GrowingArray(Int32Array);
  readonly #covers = new GrowingArray(Float64Array);
  /** Places in `usedFeatures`: three for each feature, one for each {@link KeyKind}. */
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
    if (4 * this.#nodes.length + NODE_BYTES * size > MAX_BYTES) throw tooLarge();
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

  /**
   * @throws TritonError INVALID_ARG for a class without trees whose leaves would be averaged, UNSUPPORTED for a model that
   * is too large
   */
  build(): Forest {
    const { groups, averages, single } = this.head;
    const treeGroups = this.#treeGroups.toArray();
    const slots = [...this.#slots.keys()];
    const slotsOf = (kind: KeyKind) =>
      Int32Array.from(slots.flatMap((key, slot) => (key % KEY_KINDS === kind ? [slot] : [])));
    const treesOfGroup = new Int32Array(groups);
    for (const group of treeGroups) {
      if (group >= 0) treesOfGroup[group]!++;
      else for (let i = 0; i < groups; i++) treesOfGroup[i]!++;
    }
    if (averages && treesOfGroup.includes(0))
      throw invalidModel(
        "expected at least one tree for each class of a model that averages its trees, got none",
      );
    const categorySlots = slotsOf(KeyKind.category);
    let blockRows = BLOCK_ROWS;
    while (blockRows > TREES_AT_ONCE && 2 * slots.length * blockRows > BLOCK_KEYS) blockRows /= 2;
    const trees = this.#roots.length;
    const paddedTrees = Math.max(1, Math.ceil(trees / TREES_AT_ONCE)) * TREES_AT_ONCE;
    const hasCovers = this.#hasCovers && trees > 0;
    const padding = this.#addPaddingLeaf();
    const treesAt = NODES_AT + 4 * this.#nodes.length;
    const leavesAt = treesAt + TREE_BYTES * paddedTrees;
    const coversAt = leavesAt + 8 * this.#leaves.length;
    const setsAt = coversAt + (hasCovers ? 8 * this.#covers.length : 0);
    const end = setsAt + 4 * this.#sets.length;
    if (end > MAX_BYTES) throw tooLarge();
    const memory = newMemory(end);
    const { buffer } = memory;
    const integers = new Int32Array(buffer);
    integers.set(
      [treesAt, treesAt + TREE_BYTES * paddedTrees, leavesAt, 8 * groups, single ? 1 : 0].concat(
        categorySlots.length > 0 ? 1 : 0,
      ),
      Header.treesBegin,
    );
    this.#writeNodes(integers, blockRows, setsAt);
    this.#writeTrees(integers.subarray(treesAt >> 2), paddedTrees, NODES_AT + 4 * padding);
    const leaves = new Float64Array(buffer, leavesAt, this.#leaves.length);
    leaves.set(this.#leaves.items);
    const covers = new Float64Array(buffer, coversAt, hasCovers ? this.#covers.length : 0);
    if (hasCovers) covers.set(this.#covers.items);
    integers.set(this.#sets.items, setsAt >> 2);
    return {
      ...this.head,
      memory,
      integers,
      roots: this.#roots.toArray().map((place) => NODES_AT + 4 * place),
      depth: this.#depths.items.reduce((one, other) => Math.max(one, other), 0),
      usualSteps: this.#usualSteps.items.reduce((one, other) => one + other, 0),
      treeGroups,
      leaves,
      usedFeatures: Int32Array.from(slots, (key) => Math.floor(key / KEY_KINDS)),
      zeroMissingSlots: slotsOf(KeyKind.zeroMissing),
      categorySlots,
      blockRows,
      treesOfGroup,
      covers,
    };
  }

  /**
   * Adds a leaf for trees that only fill up a group of eight, and returns its place. Adding -0 to any number changes
   * nothing.
   */
  #addPaddingLeaf(): number {
    const place = this.#nodes.length;
    for (let i = 0; i < 4; i++) this.#nodes.push(0);
    this.#setNode(place, 0, SMALLEST_KEY, place - 4, this.#leaves.length);
    for (let i = 0; i < this.head.leafWidth; i++) this.#leaves.push(-0);
    if (this.#hasCovers) this.#covers.push(0);
    return place;
  }

  /**
   * @param count number of trees, with those that only fill up a group of eight
   * @param padding address of the root of those
   */
  #writeTrees(to: Int32Array, count: number, padding: number): void {
    const [steps, depths] = [this.#usualSteps.items, this.#depths.items];
    const most = (list: Int32Array, tree: number) =>
      list.subarray(tree, tree + TREES_AT_ONCE).reduce((one, other) => Math.max(one, other), 0);
    for (let tree = 0; tree < count; tree++) {
      const at = (TREE_BYTES * tree) >> 2;
      if (tree >= this.#roots.length) {
        to.set([padding, 0, 0, 0, 1], at);
        continue;
      }
      const group = this.#treeGroups.get(tree);
      const root = NODES_AT + 4 * this.#roots.get(tree);
      const values = group < 0 ? this.head.groups : 1;
      to.set([root, steps[tree]!, depths[tree]!, 8 * Math.max(0, group), values], at);
      if (tree % TREES_AT_ONCE === 0) to.set([most(steps, tree), most(depths, tree)], at + 5);
    }
  }

  /** Writes the nodes with addresses in place of their numbers. */
  #writeNodes(integers: Int32Array, blockRows: number, setsAt: number): void {
    const nodes = this.#nodes.items;
    let to = NODES_AT >> 2;
    for (let at = 0; at < nodes.length; at += 4, to += 4) {
      const last = nodes[at + 3]!;
      integers[to] = nodes[at]! * 4 * blockRows;
      integers[to + 1] = last < -1 ? setsAt + nodes[at + 1]! : nodes[at + 1]!;
      integers[to + 2] = NODES_AT + 4 * nodes[at + 2]!;
      integers[to + 3] = last < 0 ? last : 8 * last;
    }
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
    this.#setNode(place, 0, SMALLEST_KEY, place - 4, this.#leaves.length);
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
      const set = this.#addSet(split.categories, missing === match, (text) => problem(node, text));
      const position = 2 * this.#slotOf(feature, KeyKind.category);
      this.#setNode(place, position, set.offset, children, -1 - set.size);
      return [match, other];
    }
    const threshold = tree.threshold[node]!;
    if (typeof threshold !== "number" || Number.isNaN(threshold))
      throw problem(node, `threshold: expected a number, got ${threshold}`);
    const comparison = typeof tree.comparison === "string" ? tree.comparison : tree.comparison(node);
    const { key, smallerGoLeft } = limitOf(comparison, threshold);
    const [smaller, larger] = smallerGoLeft ? [left, right] : [right, left];
    const position =
      2 * this.#slotOf(feature, tree.zeroIsMissing?.(node) ? KeyKind.zeroMissing : KeyKind.number);
    if (missing === larger) {
      this.#setNode(place, position, key, children, -1);
      return [smaller, larger];
    }
    // x >= limit exactly if -x < the key after that of -limit.
    this.#setNode(place, position + 1, 1 - key, children, -1);
    return [larger, smaller];
  }

  #setNode(place: number, position: number, limit: number, child: number, last: number): void {
    this.#nodes.set(place, position);
    this.#nodes.set(place + 1, limit);
    this.#nodes.set(place + 2, child);
    this.#nodes.set(place + 3, last);
  }

  /** @returns the size of a set, and its offset among the sets, odd for a list */
  #addSet(
    given: ArrayLike<number>,
    missingMatch: boolean,
    problem: (text: string) => Error,
  ): { offset: number; size: number } {
    let bits = FIRST_CODE;
    for (let i = 0; i < given.length; i++) {
      const category = given[i]!;
      if (!Number.isInteger(category) || category < 0 || category > MAX_CATEGORY)
        throw problem(`expected categories from 0 to ${MAX_CATEGORY}, got ${category}`);
      bits = Math.max(bits, category + FIRST_CODE + 1);
    }
    const codes = new Set(Int32Array.from(given, (category) => category + FIRST_CODE).sort());
    const offset = 4 * this.#sets.length;
    if (bits <= BITS_OF_SET + BITS_OF_CATEGORY * given.length) {
      const words = new Int32Array(Math.ceil(bits / 32));
      if (missingMatch) words[0]! |= 1 << MISSING_CODE;
      for (const code of codes) words[code >> 5]! |= 1 << (code & 31);
      for (const word of words) this.#sets.push(word);
      return { offset, size: bits };
    }
    if (missingMatch) this.#sets.push(MISSING_CODE);
    for (const code of codes) this.#sets.push(code);
    return { offset: offset + 1, size: this.#sets.length - offset / 4 };
  }

  #slotOf(feature: number, kind: KeyKind): number {
    const key = KEY_KINDS * feature + kind;
    const found = this.#slots.get(key);
    if (found !== undefined) return found;
    this.#slots.set(key, this.#slots.size);
    return this.#slots.size - 1;
  }
}

/** Kind of keys of a feature. In those of `zeroMissing`, values around 0 are missing ones. */
const KeyKind = { number: 0, zeroMissing: 1, category: 2 } as const;
type KeyKind = (typeof KeyKind)[keyof typeof KeyKind];
const KEY_KINDS = 3;

function tooLarge(): Error {
  return notSupported("the model has more than 2 GiB of nodes and leaves");
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

  /** The numbers, until the next one is added. */
  get items(): A {
    return this.#items.subarray(0, this.length) as A;
  }

  toArray(): A {
    return this.#items.slice(0, this.length) as A;
  }
}

/**
 * Counts the categories of a tree's nodes. Each of a file belongs to one node: nodes that share them would take the time
 * of all nodes with all categories.
 */
export class CategoryShares {
  #left: number;

  /**
   * @param path the tree, for errors
   * @param count number of categories, or of words with them, in the file
   */
  constructor(
    private readonly path: string,
    private readonly count: number,
  ) {
    this.#left = count;
  }

  /** @throws TritonError INVALID_ARG if the nodes have more than the file */
  take(count: number): void {
    this.#left -= count;
    if (this.#left >= 0) return;
    throw invalidModel(
      `${this.path}: categories: expected ${this.count}, each of one node, got nodes that share them`,
    );
  }
}

/** Trees of a model. The largest ones have some ten thousands. */
const MOST_TREES = 2 ** 20;

/** Checks the number of trees of a file. @throws TritonError INVALID_ARG for too many */
export function assertTreeCount(trees: number): void {
  if (trees > MOST_TREES) throw invalidModel(`expected at most ${MOST_TREES} trees, got more`);
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
