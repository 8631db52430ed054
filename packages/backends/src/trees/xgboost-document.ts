import { assertJsonFits } from "@tritonjs/protocol";
import { decodeUbjson } from "./byte-reader.js";
import { type Forest, invalidModel, type Link, notSupported, type Task } from "./forest.js";
import {
  assertGroupCount,
  assertTreeCount,
  type CategoricalSplit,
  CategoryShares,
  ForestBuilder,
  roundCount,
  type SourceTree,
  type TreeFileOptions,
} from "./forest-builder.js";

/**
 * Makes a forest of the document in `model.json` or `model.ubj`.
 *
 * @param isBinary true for `model.ubj`
 * @throws TritonError INVALID_ARG for a document that is not a model of trees; UNSUPPORTED for boosters and objectives
 * that cannot be served
 */
export function readXgboostDocument(bytes: Uint8Array, isBinary: boolean, options: TreeFileOptions): Forest {
  const document = isBinary ? decodeUbjson(bytes) : parseXgboostJson(bytes);
  const top = new DocumentFields(document, "XGBoost model");
  // A pickled booster has its model one level deeper.
  const root = top.has("Model") ? top.object("Model") : top;
  const learner = root.object("learner");
  const parameters = learner.object("learner_model_param");
  const outer = learner.object("gradient_booster");
  const booster = outer.text("name");
  if (booster !== "gbtree" && booster !== "dart")
    throw notSupported(`Only GBTree or DART boosters are currently supported. Got: ${booster}`);
  const gbtree = booster === "dart" ? outer.object("gbtree") : outer;
  const model = gbtree.object("model");
  if (!options.allowUnknownFields)
    assertKnownFields({ top, root, learner, parameters, outer, gbtree, model });

  const classes = Math.max(1, parameters.integer("num_class", 0));
  const targets = parameters.integer("num_target", 1);
  if (targets > 1) throw notSupported(`Multi-target model not supported: num_target is ${targets}`);
  const trees = model.list("trees");
  const groupsOfTrees = model.numbers("tree_info", trees.length);
  const weights = weightsOf(outer, gbtree, trees.length);
  assertTreeCount(trees.length);
  const width = trees.length === 0 ? 1 : leafWidthOf(trees[0], classes);
  assertGroupCount(classes, trees.length, width);
  const builder = xgboostBuilder(
    learner.object("objective").text("name"),
    parameters.integer("num_feature"),
    classes,
    width,
    (toSum) => baseOf(parameters, classes, isTransformed(root) ? (score) => score : toSum),
  );
  const perRound = width > 1 ? 1 : classes;
  const parallel = model.has("gbtree_model_param")
    ? Math.max(1, model.object("gbtree_model_param").integer("num_parallel_tree", 1))
    : 1;
  const used = roundCount(trees.length, perRound * parallel, options.rounds, () => bestRound(learner));
  for (let i = 0; i < used; i++) {
    const group = width > 1 ? -1 : groupsOfTrees[i]!;
    builder.add(xgboostTree(trees[i], i, group, width, weights?.[i] ?? 1, options));
  }
  return builder.build();
}

/** Whether the base score is a sum already, as it was before XGBoost 1.0. */
function isTransformed(root: DocumentFields): boolean {
  return root.has("version") && root.numbers("version")[0] === 0;
}

/** Base score of each class: a number in a string, or a list of them since XGBoost 3.1. */
function baseOf(parameters: DocumentFields, classes: number, toSum: (score: number) => number): Float64Array {
  const text = parameters.text("base_score").trim();
  const scores = text
    .replace(/^\[|\]$/g, "")
    .split(",")
    .map((one) => Math.fround(Number(one.trim() || "NaN")));
  if (scores.some(Number.isNaN))
    throw invalidModel(`base_score: expected a number, got ${JSON.stringify(text)}`);
  if (scores.length !== 1 && scores.length !== classes)
    throw invalidModel(`base_score: expected 1 or ${classes} numbers, got ${scores.length}`);
  return Float64Array.from({ length: classes }, (_, i) => toSum(scores[scores.length === 1 ? 0 : i]!));
}

function leafWidthOf(tree: unknown, classes: number): number {
  const fields = new DocumentFields(tree, "XGBoost model.trees[0]");
  const width = fields.object("tree_param").integer("size_leaf_vector", 1);
  if (width <= 1) return 1;
  const weights = fields.numbers(fields.has("leaf_weights") ? "leaf_weights" : "base_weights").length;
  if (width > weights) throw invalidModel(`size_leaf_vector: expected at most ${weights}, got ${width}`);
  if (width !== classes)
    throw invalidModel(`size_leaf_vector: expected ${classes}, the number of classes, got ${width}`);
  return width;
}

function weightsOf(
  outer: DocumentFields,
  gbtree: DocumentFields,
  trees: number,
): ArrayLike<number> | undefined {
  const holder = [outer, gbtree].find((one) => one.has("weight_drop"));
  if (holder === undefined || holder.numbers("weight_drop").length === 0) return undefined;
  return holder.numbers("weight_drop", trees);
}

function bestRound(learner: DocumentFields): number | undefined {
  const attributes = learner.has("attributes") ? learner.object("attributes") : undefined;
  return attributes?.has("best_iteration") ? attributes.integer("best_iteration") + 1 : undefined;
}

/**
 * Reads a tree of an XGBoost document.
 *
 * @param group class that the tree adds to; -1 for leaves with a value for each class
 * @param width number of values of a leaf
 * @param weight factor of the leaves
 * @throws TritonError INVALID_ARG for lists that do not fit together
 */
function xgboostTree(
  value: unknown,
  index: number,
  group: number,
  width: number,
  weight: number,
  options: TreeFileOptions,
): SourceTree {
  const path = `XGBoost model.trees[${index}]`;
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
  let lists:
    | {
        begins: ArrayLike<number>;
        sizes: ArrayLike<number>;
        all: ArrayLike<number>;
        shares: CategoryShares;
      }
    | undefined;
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
        shares: new CategoryShares(tree.path, tree.numbers("categories").length),
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
    lists.shares.take(count);
    const categories = Array.prototype.slice.call(lists.all, begin, begin + count);
    return { categories, matchesGoRight: true };
  };
}

/** Fields of each level of an XGBoost document, up to XGBoost 3.4. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  top: ["version", "learner", "Config", "Model"],
  root: ["version", "learner", "Config"],
  learner: [
    "learner_model_param",
    "gradient_booster",
    "objective",
    "attributes",
    "feature_names",
    "feature_types",
  ],
  parameters: ["num_target", "base_score", "num_class", "num_feature", "boost_from_average"],
  outer: ["name", "model", "gbtree", "weight_drop"],
  gbtree: ["name", "model", "weight_drop"],
  model: ["trees", "tree_info", "gbtree_model_param", "iteration_indptr", "cats"],
  tree: [
    "loss_changes",
    "sum_hessian",
    "base_weights",
    "leaf_weights",
    "categories_segments",
    "categories_sizes",
    "categories_nodes",
    "categories",
    "leaf_child_counts",
    "left_children",
    "right_children",
    "parents",
    "split_indices",
    "split_type",
    "split_conditions",
    "default_left",
    "tree_param",
    "id",
  ],
};

/**
 * Refuses fields that are not known, because they may change predictions.
 *
 * @throws TritonError INVALID_ARG that names the first one
 */
function assertKnownFields(levels: Readonly<Record<string, DocumentFields>>): void {
  for (const [level, fields] of Object.entries(levels)) {
    const unknown = fields.keys.find((key) => !KNOWN[level]!.includes(key));
    if (unknown === undefined) continue;
    throw invalidModel(
      `${fields.path}: key "${unknown}" is not recognized! To ignore it, set xgboost_allow_unknown_field ` +
        "(allowUnknownFields) to true",
    );
  }
}

const EXPONENTIAL = new Set(["count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"]);
const IDENTITY = new Set([
  "reg:squarederror",
  "reg:linear",
  "reg:squaredlogerror",
  "reg:pseudohubererror",
  "reg:absoluteerror",
  "reg:quantileerror",
  "binary:logitraw",
  "rank:pairwise",
  "rank:ndcg",
  "rank:map",
]);
const SIGMOID = new Set(["binary:logistic", "reg:logistic"]);
const SOFTMAX = new Set(["multi:softmax", "multi:softprob"]);

/**
 * Makes the builder of an XGBoost model.
 *
 * @param baseOf makes the starting sum of each class, with a function that turns a base score of the file into a sum
 * @throws TritonError UNSUPPORTED for an objective whose scores are not known
 */
export function xgboostBuilder(
  objective: string,
  features: number,
  classes: number,
  leafWidth: number,
  baseOf: (toSum: (score: number) => number) => Float64Array,
): ForestBuilder {
  return new ForestBuilder({
    features,
    groups: classes,
    task: taskOf(objective, classes),
    link: linkOf(objective),
    base: baseOf(sumOf(objective)),
    averages: false,
    single: true,
    leafWidth,
  });
}

function linkOf(name: string): Link {
  if (SOFTMAX.has(name)) return { name: "softmax" };
  if (SIGMOID.has(name)) return { name: "sigmoid" };
  if (EXPONENTIAL.has(name)) return { name: "exponential" };
  if (name === "binary:hinge") return { name: "hinge" };
  if (IDENTITY.has(name)) return { name: "identity" };
  throw notSupported(`Unrecognized XGBoost objective: ${name}`);
}

function taskOf(name: string, classes: number): Task {
  if (classes > 1) return "multiclass";
  if (name.startsWith("binary:")) return "binary";
  return name.startsWith("rank:") ? "ranking" : "regression";
}

/** In single precision, as XGBoost computes it. */
function sumOf(name: string): (score: number) => number {
  if (SIGMOID.has(name)) {
    return (score) => Math.fround(-Math.log(Math.fround(Math.fround(1 / score) - 1)));
  }
  if (EXPONENTIAL.has(name)) return (score) => Math.fround(Math.log(score));
  return (score) => score;
}

/** An object of a decoded document, read with checks. Errors name the path of the field. */
class DocumentFields {
  readonly #fields: Readonly<Record<string, unknown>>;

  /** @throws TritonError INVALID_ARG for a value that is not an object */
  constructor(
    value: unknown,
    readonly path: string,
  ) {
    const isObject =
      typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
    if (!isObject) throw invalidModel(`${path}: expected an object, got ${nameOf(value)}`);
    this.#fields = value as Record<string, unknown>;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#fields, key);
  }

  get keys(): readonly string[] {
    return Object.keys(this.#fields);
  }

  object(key: string): DocumentFields {
    return new DocumentFields(this.#get(key), this.#pathOf(key));
  }

  list(key: string): ArrayLike<unknown> {
    const value = this.#get(key);
    if (Array.isArray(value)) return value;
    // An empty list may be a typed array.
    if (ArrayBuffer.isView(value) && (value as Uint8Array).length === 0) return [];
    throw invalidModel(`${this.#pathOf(key)}: expected a list, got ${nameOf(value)}`);
  }

  text(key: string): string {
    const value = this.#get(key);
    if (typeof value === "string") return value;
    throw invalidModel(`${this.#pathOf(key)}: expected a string, got ${nameOf(value)}`);
  }

  /** A whole number, which XGBoost writes as a string. @param otherwise value of a field that is absent */
  integer(key: string, otherwise?: number): number {
    if (otherwise !== undefined && !this.has(key)) return otherwise;
    const value = this.#get(key);
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (Number.isSafeInteger(number)) return number as number;
    throw invalidModel(`${this.#pathOf(key)}: expected an integer, got ${nameOf(value)}`);
  }

  /**
   * A list of numbers or booleans. The elements are not checked: the forest's builder checks the numbers that it uses.
   *
   * @param length the length that it must have
   */
  numbers(key: string, length?: number): ArrayLike<number> {
    const value = this.#get(key);
    if (!Array.isArray(value) && !ArrayBuffer.isView(value))
      throw invalidModel(`${this.#pathOf(key)}: expected a list of numbers, got ${nameOf(value)}`);
    const numbers = value as ArrayLike<number>;
    if (length !== undefined && numbers.length !== length)
      throw invalidModel(`${this.#pathOf(key)}: expected ${length} elements, got ${numbers.length}`);
    return numbers;
  }

  #get(key: string): unknown {
    if (!this.has(key)) throw invalidModel(`${this.path}: expected the field '${key}', got none`);
    return this.#fields[key];
  }

  #pathOf(key: string): string {
    return `${this.path}.${key}`;
  }
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return "a list";
  if (typeof value === "object") return "an object";
  return String(JSON.stringify(value)).slice(0, 80);
}

/** Numbers that JSON does not have, and that XGBoost writes for statistics that are not finite. */
const NOT_JSON = /([[,:]\s*)(-?(?:NaN|nan|Infinity|inf))(?=\s*[\],}])/g;

/**
 * Parses the text of `Booster.save_model("model.json")`.
 *
 * @throws TritonError INVALID_ARG for text that is not JSON; UNSUPPORTED for more than V8's longest string
 */
function parseXgboostJson(bytes: Uint8Array): unknown {
  const text = textOf(bytes);
  assertJsonFits(text, "XGBoost JSON");
  try {
    return JSON.parse(text);
  } catch (error) {
    const replaced = text.replace(NOT_JSON, (_, before: string, found: string) => {
      if (/nan/i.test(found)) return `${before}null`;
      return before + (found.startsWith("-") ? "-1e999" : "1e999");
    });
    try {
      return JSON.parse(replaced);
    } catch {
      throw invalidModel(`XGBoost JSON: expected JSON: ${(error as Error).message}`);
    }
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: false }).decode(bytes);
  } catch {
    throw notSupported(
      `XGBoost JSON: expected less than 512 MB, got ${bytes.byteLength} bytes; save the model as model.ubj`,
    );
  }
}
