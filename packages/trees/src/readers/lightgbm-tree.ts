import { invalidModel } from "../forest/invalid-model.js";
import type { CategoricalSplit, SourceTree } from "../forest/source-tree.js";
import type { LineFields } from "../formats/line-fields.js";

/** Bits of `decision_type`; above them is how missing values are treated. */
const IS_CATEGORICAL = 1;
const DEFAULT_LEFT = 2;
const MISSING_IS_ZERO = 1;
const MISSING_IS_NAN = 2;

/** Words with the categories of one split. LightGBM's own bound of the value of a category is far below. */
const MAX_CATEGORY_WORDS = 2 ** 20;

/**
 * Reads a LightGBM tree. There, splits and leaves are numbered apart, and a negative child is a leaf. Here, splits come
 * before leaves.
 *
 * @param group class that the tree adds to
 * @throws TritonError INVALID_ARG for lists that do not fit together
 */
export function lightgbmTree(fields: LineFields, group: number): SourceTree {
  const leaves = fields.integer("num_leaves");
  if (leaves < 1) throw invalidModel(`${fields.path}: num_leaves: expected at least 1, got ${leaves}`);
  const values = fields.numbers("leaf_value", leaves);
  const splits = leaves - 1;
  const list = (key: string) => (splits === 0 ? new Float64Array() : fields.numbers(key, splits));
  const types = fields.has("decision_type") ? list("decision_type") : new Float64Array(splits);
  const threshold = list("threshold");
  const missingKind = (node: number) => (types[node]! >> 2) & 3;
  const left = new Int32Array(splits + leaves).fill(-1);
  const right = new Int32Array(splits + leaves).fill(-1);
  place(list("left_child"), left, fields.path, splits, leaves);
  place(list("right_child"), right, fields.path, splits, leaves);
  const categories =
    fields.has("num_cat") && fields.integer("num_cat") > 0 ? categoryLists(fields) : undefined;
  return {
    size: splits + leaves,
    left,
    right,
    feature: list("split_feature"),
    threshold,
    comparison: "<=",
    missingGoLeft: (node) => {
      const type = types[node]!;
      if ((type & IS_CATEGORICAL) !== 0) return false;
      const kind = missingKind(node);
      if (kind === MISSING_IS_NAN || kind === MISSING_IS_ZERO) return (type & DEFAULT_LEFT) !== 0;
      // Without a kind of missing values, they count as 0.
      return 0 <= threshold[node]!;
    },
    zeroIsMissing: (node) => missingKind(node) === MISSING_IS_ZERO,
    categorical: (node) => {
      if ((types[node]! & IS_CATEGORICAL) === 0) return undefined;
      if (categories === undefined)
        throw invalidModel(`${fields.path}: expected num_cat above 0 for its categorical split`);
      return categories(threshold[node]!);
    },
    leaf: (node) => values[node - splits]!,
    cover: coverOf(fields, splits, leaves),
    group,
  };
}

function place(children: Float64Array, to: Int32Array, path: string, splits: number, leaves: number): void {
  for (let i = 0; i < children.length; i++) {
    const child = children[i]!;
    const isValid = Number.isInteger(child) && child < splits && -child <= leaves;
    if (!isValid)
      throw invalidModel(`${path}: child of split ${i}: expected -${leaves} to ${splits - 1}, got ${child}`);
    to[i] = child >= 0 ? child : splits - child - 1;
  }
}

/** Categories of each split, which go left: a set of bits in 32-bit words. */
function categoryLists(fields: LineFields): (index: number) => CategoricalSplit {
  const count = fields.integer("num_cat");
  const bounds = fields.numbers("cat_boundaries", count + 1);
  const total = bounds[count]!;
  const words = fields.numbers("cat_threshold", total);
  return (index) => {
    const [begin, end] = [bounds[index], bounds[index + 1]];
    if (begin === undefined || end === undefined || !(begin >= 0 && begin <= end && end <= total))
      throw invalidModel(`${fields.path}: expected a categorical split from 0 to ${count - 1}, got ${index}`);
    if (end - begin > MAX_CATEGORY_WORDS)
      throw invalidModel(
        `${fields.path}: cat_boundaries: expected at most ${MAX_CATEGORY_WORDS} words a split, got ${end - begin}`,
      );
    const categories: number[] = [];
    for (let bit = 0; bit < 32 * (end - begin); bit++) {
      if ((words[begin + (bit >> 5)]! & (1 << (bit & 31))) !== 0) categories.push(bit);
    }
    return { categories, matchesGoRight: false };
  };
}

function coverOf(fields: LineFields, splits: number, leaves: number): ((node: number) => number) | undefined {
  if (!fields.has("leaf_count") || (splits > 0 && !fields.has("internal_count"))) return undefined;
  if (fields.text("leaf_count", "") === undefined) return undefined;
  const ofLeaves = fields.numbers("leaf_count", leaves);
  const ofSplits = splits === 0 ? new Float64Array() : fields.numbers("internal_count", splits);
  return (node) => (node < splits ? ofSplits[node]! : ofLeaves[node - splits]!);
}
