import { invalidModel } from "../forest/invalid-model.js";
import type { CategoricalSplit, SourceTree } from "../forest/source-tree.js";
import { DocumentFields } from "../formats/document-fields.js";
import { assertKnownFields } from "./known-fields.js";
import type { TreeFileOptions } from "./tree-file-options.js";

/** Properties of a tree that the model states outside the tree. */
export interface XgboostTreePlace {
  /** Class that the tree adds to; -1 for leaves with a value for each class. */
  readonly group: number;
  /** Number of values of a leaf. */
  readonly width: number;
  /** Factor of the leaves. */
  readonly weight: number;
}

/** Reads a tree of an XGBoost document. @throws TritonError INVALID_ARG for lists that do not fit together */
export function xgboostTree(
  value: unknown,
  path: string,
  { group, width, weight }: XgboostTreePlace,
  options: TreeFileOptions,
): SourceTree {
  const tree = new DocumentFields(value, path);
  if (!options.allowUnknownFields) assertKnownFields({ tree });
  const parameters = tree.object("tree_param");
  const size = parameters.integer("num_nodes");
  if (Math.max(1, parameters.integer("size_leaf_vector", 1)) !== width)
    throw invalidModel(`${path}: expected leaves of ${width} values, as in the first tree`);
  const right = tree.numbers("right_children", size);
  const defaultLeft = tree.numbers("default_left", size);
  const conditions = singles(tree.numbers("split_conditions", size));
  const leafOf = width === 1 ? (node: number) => conditions[node]! : vectorLeaf(tree, width, size, right);
  return {
    size,
    left: tree.numbers("left_children", size),
    right,
    feature: tree.numbers("split_indices", size),
    threshold: conditions,
    comparison: "<",
    missingGoLeft: (node) => Boolean(defaultLeft[node]),
    categorical: categoricalOf(tree, size),
    leaf: (node, index) => Math.fround(leafOf(node, index) * weight),
    cover: coverOf(tree, size),
    group,
  };
}

/** Numbers in XGBoost's precision; anything else is NaN. */
function singles(numbers: ArrayLike<unknown>): Float32Array {
  if (numbers instanceof Float32Array) return numbers;
  return Float32Array.from(numbers, (one) => (typeof one === "number" ? one : Number.NaN));
}

/** Vectors are the weights of all nodes, or since XGBoost 3.1 those of the leaves, which say their places. */
function vectorLeaf(
  tree: DocumentFields,
  width: number,
  size: number,
  right: ArrayLike<number>,
): (node: number, index: number) => number {
  if (tree.has("leaf_weights")) {
    const weights = singles(tree.numbers("leaf_weights"));
    return (node, index) => weights[right[node]! * width + index] ?? Number.NaN;
  }
  const weights = singles(tree.numbers("base_weights", size * width));
  return (node, index) => weights[node * width + index]!;
}

function coverOf(tree: DocumentFields, size: number): ((node: number) => number) | undefined {
  if (!tree.has("sum_hessian")) return undefined;
  const sums = singles(tree.numbers("sum_hessian", size));
  // XGBoost writes statistics that are not finite; they matter for explanations alone.
  return sums.every((sum) => sum >= 0 && sum < Number.POSITIVE_INFINITY) ? (node) => sums[node]! : undefined;
}

/** Categories of a node go right. */
function categoricalOf(tree: DocumentFields, size: number): (node: number) => CategoricalSplit | undefined {
  if (!tree.has("split_type")) return () => undefined;
  const types = tree.numbers("split_type");
  if (types.length === 0) return () => undefined;
  if (types.length !== size)
    throw invalidModel(`${tree.path}.split_type: expected ${size} elements, got ${types.length}`);
  const places = new Map<number, number>();
  let lists: { begins: ArrayLike<number>; sizes: ArrayLike<number>; all: ArrayLike<number> } | undefined;
  return (node) => {
    if (types[node] === 0) return undefined;
    if (types[node] !== 1)
      throw invalidModel(`${tree.path}.split_type[${node}]: expected 0 or 1, got ${types[node]}`);
    if (lists === undefined) {
      const nodes = tree.numbers("categories_nodes");
      for (let i = 0; i < nodes.length; i++) places.set(nodes[i]!, i);
      lists = {
        begins: tree.numbers("categories_segments", nodes.length),
        sizes: tree.numbers("categories_sizes", nodes.length),
        all: tree.numbers("categories"),
      };
    }
    const place = places.get(node);
    if (place === undefined)
      throw invalidModel(`${tree.path}: Could not find record for the categorical split in node ${node}`);
    const [begin, count] = [lists.begins[place]!, lists.sizes[place]!];
    if (!(begin >= 0 && count >= 0 && begin + count <= lists.all.length))
      throw invalidModel(
        `${tree.path}: categories of node ${node}: expected a part of ${lists.all.length}, got ${count} from ${begin}`,
      );
    const categories = Array.prototype.slice.call(lists.all, begin, begin + count);
    return { categories, matchesGoRight: true };
  };
}
