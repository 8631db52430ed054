import { errorFor, type TritonError } from "@tritonjs/protocol";

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
 * A tree ensemble in flat arrays, which threads can share.
 *
 * A node is four integers of `nodes`: the position in a row's keys, the key of the threshold, the place of the child
 * for smaller keys (the other child follows it), and -1. A leaf has its number instead of -1, and the threshold that no
 * key is below, and its second child is the leaf itself. So a step is the same for all nodes, without branches:
 *
 *     nodes:  [ position, key, child, -1 ] ... child: [ ... ] [ ... ]
 *
 * Keys are integers in the order of the floats. Each used feature has two: of its value and of the negated value.
 * Missing values have the largest key in both, so that they always go to the second child.
 */
export interface Forest extends ForestHead {
  readonly nodes: Int32Array;
  /** Places of the roots in `nodes`. */
  readonly roots: Int32Array;
  /** Number of steps in each tree after which most rows are at a leaf, and after which all rows are. */
  readonly usualSteps: Int32Array;
  readonly depths: Int32Array;
  /** Group of each tree; -1 for trees whose leaves have a value for each group. */
  readonly treeGroups: Int32Array;
  readonly leaves: Float64Array;
  /** Feature of each pair of keys. */
  readonly usedFeatures: Int32Array;
  /** Places in `usedFeatures` of pairs of keys in which values around 0 are missing ones. */
  readonly zeroMissingSlots: Int32Array;
  /**
   * Categorical nodes, which have `-1 - index` as position: feature, first and last place (exclusive) in `categories`,
   * and 1 if missing values match.
   */
  readonly categoryNodes: Int32Array;
  /** Sorted categories of each categorical node, which go to the first child. */
  readonly categories: Int32Array;
  readonly treesOfGroup: Int32Array;
  /** Weight of the training rows in each node, for explanations; empty if the file does not have it. */
  readonly covers: Float64Array;
}

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
