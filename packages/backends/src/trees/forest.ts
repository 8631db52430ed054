import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { ForestMemory } from "./kernel.js";

/** Task of a model, as its file states it. */
export type Task = "binary" | "multiclass" | "regression" | "ranking" | "anomaly";

/** Function between the sum of the leaves and the score. */
export type LinkName =
  | "identity"
  | "signed_square"
  | "hinge"
  | "sigmoid"
  | "exponential"
  | "exponential_standard_ratio"
  | "logarithm_one_plus_exp"
  | "identity_multiclass"
  | "softmax"
  | "multiclass_ova";

export interface Link {
  readonly name: LinkName;
  /** Factor of the sum in `sigmoid` and `multiclass_ova`. @default 1 */
  readonly alpha?: number;
  /** Divisor of the sum in `exponential_standard_ratio`. @default 1 */
  readonly ratio?: number;
}

/** Properties of a model besides its trees. */
export interface ForestHead {
  /** Number of columns of a row. */
  readonly features: number;
  /** Number of scores of a row: the classes of a multi-class model, else 1. */
  readonly groups: number;
  readonly task: Task;
  readonly link: Link;
  /** Starting sum of each group. */
  readonly base: Float64Array;
  /** True if the leaves of a group are averaged rather than added. */
  readonly averages: boolean;
  /** True if the library that wrote the model adds leaves in single precision. */
  readonly single: boolean;
  /** Number of values of a leaf: 1, or one for each group. */
  readonly leafWidth: number;
}

/**
 * A tree ensemble in the memory of its kernel, which threads share.
 *
 * A node is four integers: the offset of its key in a row's keys, the key of the threshold, the address of the child for
 * smaller keys (the other child follows it), and -1. A leaf has the offset of its values instead of -1, and the threshold
 * that no key is below, and its second child is the leaf itself. So a step is the same for all nodes, without branches:
 *
 *     nodes:  [ key offset, threshold, child, -1 ] ... child: [ ... ] [ ... ]
 *
 * Keys are integers in the order of the floats. Each used feature has two: of its value and of the negated value. Missing
 * values have the largest key in both, so that they always go to the second child.
 *
 * A categorical node has the address of a set instead of the threshold, and -1 - size instead of -1. The key is the code of
 * a category: {@link MISSING_CODE}, {@link NO_CODE}, or the category + 2. Rows whose code is in the set go to the first
 * child. The size is the number of the set's bits, or at an odd address that of the codes in a sorted list.
 */
export interface Forest extends ForestHead {
  /** Begins with the {@link Header}. Scorers append their working memory. */
  readonly memory: ForestMemory;
  /** All integers of the memory; the node at an address begins at `address >> 2`. */
  readonly integers: Int32Array<SharedArrayBuffer>;
  /** Addresses of the roots. */
  readonly roots: Int32Array;
  /** Largest number of steps to a leaf. */
  readonly depth: number;
  /** Number of steps of most rows in all trees. */
  readonly usualSteps: number;
  /** Group of each tree; -1 for trees whose leaves have a value for each group. */
  readonly treeGroups: Int32Array;
  readonly leaves: Float64Array;
  /** Feature of each pair of keys. */
  readonly usedFeatures: Int32Array;
  /** Places in `usedFeatures` of pairs of keys in which values around 0 are missing ones. */
  readonly zeroMissingSlots: Int32Array;
  /** Places in `usedFeatures` of features whose first key is the code of a category. */
  readonly categorySlots: Int32Array;
  /** Number of rows whose keys are in memory together: the same key of all of them, then the next. A power of two. */
  readonly blockRows: number;
  readonly treesOfGroup: Int32Array;
  /** Weight of the training rows in each node, for explanations; empty if the file does not have it. */
  readonly covers: Float64Array;
}

/** Places in the integers at the beginning of a forest's memory, which the kernel reads. */
export const Header = {
  /** Addresses of the first and after the last tree: see {@link TREE_BYTES}. */
  treesBegin: 0,
  treesEnd: 1,
  leaves: 2,
  /** Bytes of a row's sums. */
  sumsStride: 3,
  /** 1 if leaves are added in single precision. */
  single: 4,
  /** 1 if there are categorical nodes. */
  categories: 5,
} as const;

/** Address of the first node. */
export const NODES_AT = 64;

export const NODE_BYTES = 16;

/**
 * Bytes of a tree: root, number of steps after which most rows are at a leaf, and after which all rows are, offset of its
 * first sum, number of values of its leaves. The number of trees is a multiple of {@link TREES_AT_ONCE}, and the first one
 * of each group also has the largest numbers of steps of the group.
 */
export const TREE_BYTES = 32;

/** Number of trees that a row is followed in at a time, and of rows that are followed in a tree. */
export const TREES_AT_ONCE = 8;

/** Code of a missing category. */
export const MISSING_CODE = 0;

/** Code of values that no set has. */
export const NO_CODE = 1;

/** Code of category 0. */
export const FIRST_CODE = 2;

/** Categories are exact in 32-bit floats up to here. */
export const MAX_CATEGORY = 2 ** 24;

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** Key of missing values: larger than the key of infinity. */
export const MISSING_KEY = 0x7fffffff;

/** Largest key of a number, that of infinity. */
export const LARGEST_KEY = 0x7f800000;

/** Key of 1e-35, up to which LightGBM takes a value for 0. */
export const ZERO_KEY = floatKey(1e-35);

/** A key that no other key is below. */
export const SMALLEST_KEY = -0x80000000;

/**
 * Integer in the order of 32-bit floats: `a < b` exactly if `floatKey(a) < floatKey(b)`. Both zeros have key 0, and
 * `floatKey(-a) === -floatKey(a)`.
 *
 * @param value a number that is not NaN
 */
function floatKey(value: number): number {
  float[0] = value;
  const magnitude = bits[0]! & 0x7fffffff;
  return bits[0]! < 0 ? -magnitude : magnitude;
}

/** Key `k` for which `floatKey(x) < k` exactly if `x < limit`, for all 32-bit floats `x`. */
export function keyBelow(limit: number): number {
  const key = floatKey(limit);
  return Math.fround(limit) < limit ? key + 1 : key;
}

/** Key `k` for which `floatKey(x) < k` exactly if `x <= limit`, for all 32-bit floats `x`. */
export function keyAtMost(limit: number): number {
  const key = floatKey(limit);
  return Math.fround(limit) > limit ? key : key + 1;
}

/** The error for a file that is not a valid model. */
export function invalidModel(text: string): TritonError {
  return errorFor("INVALID_MODEL", text);
}

/** The error for a valid model that cannot be served. */
export function notSupported(text: string): TritonError {
  return errorFor("MODEL_NOT_SUPPORTED", text);
}
