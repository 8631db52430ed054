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
  /** Whether missing values go left. */
  readonly missingGoLeft: (node: number) => boolean;
  /** Whether a numerical node treats values around 0 as missing. */
  readonly zeroIsMissing?: (node: number) => boolean;
  /** The categories of a categorical node; undefined for a numerical one. */
  readonly categorical?: (node: number) => CategoricalSplit | undefined;
  /** Value `index` of a leaf. */
  readonly leaf: (node: number, index: number) => number;
  /** Weight of the training rows of each node. */
  readonly cover?: ((node: number) => number) | undefined;
  /** The group that the tree adds to; -1 for a tree whose leaves have a value for each group. */
  readonly group: number;
}
