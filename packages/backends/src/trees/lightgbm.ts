import { FileMemory } from "@tritonjs/protocol";
import {
  type Forest,
  type ForestHead,
  invalidModel,
  type Link,
  type LinkName,
  notSupported,
  type Task,
} from "./forest.js";
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
 * Reads the text of `Booster.save_model("model.txt")` of LightGBM: lines `key=value`, first of the model, then of each
 * tree.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for linear trees and objectives that cannot be served
 */
export function readLightgbm(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const [head, ...trees] = sections(new TextDecoder().decode(bytes));
  const classes = head!.integer("num_class");
  const perRound = head!.has("num_tree_per_iteration") ? head!.integer("num_tree_per_iteration") : classes;
  assertGroupCount(classes, trees.length, 1);
  if (perRound !== classes)
    throw invalidModel(
      `LightGBM: num_tree_per_iteration: expected ${classes}, the number of classes, got ${perRound}`,
    );
  const { link, task } = lightgbmObjective(head!.text("objective", ""), classes);
  const averages = head!.has("average_output");
  // The leaves of a random forest of an old release are converted already.
  const isConverted = averages && head!.text("version", "") === "v2";
  const builder = new ForestBuilder({
    features: head!.integer("max_feature_idx") + 1,
    groups: classes,
    task,
    link: isConverted ? { name: "identity" } : link,
    base: new Float64Array(classes),
    averages,
    single: false,
    leafWidth: 1,
  });
  const used = roundCount(trees.length, classes, options.rounds, () => undefined);
  for (let i = 0; i < used; i++) {
    const fields = trees[i]!;
    if (fields.has("is_linear") && fields.integer("is_linear") !== 0)
      throw notSupported(
        `LightGBM: tree ${i} has linear models in its leaves: expected constants (linear_tree=false)`,
      );
    builder.add(lightgbmTree(fields, i % classes));
  }
  return builder.build();
}

/** The line after the trees. Releases before 2.2 write only the heading of what follows. */
const END_OF_TREES = /^(end of trees|feature[ _]importances:)$/;

/** The lines before the first tree, and those of each tree. */
function sections(text: string): LineFields[] {
  const memory = new FileMemory("LightGBM");
  const found = [new LineFields("LightGBM")];
  for (const line of linesOf(text)) {
    memory.countParts();
    if (END_OF_TREES.test(line)) return found;
    if (line.startsWith("Tree=")) {
      assertTreeCount(found.length);
      found.push(new LineFields(`LightGBM tree ${found.length - 1}`));
    } else if (line !== "") found.at(-1)!.add(line);
  }
  throw invalidModel("LightGBM: the file is cut off: expected the line 'end of trees', got none");
}

/** Lines one after another: a list of them may take many times the memory of the text. */
function* linesOf(text: string): Generator<string> {
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    if (end > start) yield text.slice(start, end).trimEnd();
    start = end + 1;
  }
}

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
function lightgbmTree(fields: LineFields, group: number): SourceTree {
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
  const shares = new CategoryShares(fields.path, total);
  return (index) => {
    const [begin, end] = [bounds[index], bounds[index + 1]];
    if (begin === undefined || end === undefined || !(begin >= 0 && begin <= end && end <= total))
      throw invalidModel(`${fields.path}: expected a categorical split from 0 to ${count - 1}, got ${index}`);
    if (end - begin > MAX_CATEGORY_WORDS)
      throw invalidModel(
        `${fields.path}: cat_boundaries: expected at most ${MAX_CATEGORY_WORDS} words a split, got ${end - begin}`,
      );
    shares.take(end - begin);
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

/** Aliases of LightGBM's objectives, by the name that is used here. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  regression: [
    "regression_l2",
    "l2",
    "mean_squared_error",
    "mse",
    "l2_root",
    "root_mean_squared_error",
    "rmse",
  ],
  regression_l1: ["l1", "mean_absolute_error", "mae"],
  mape: ["mean_absolute_percentage_error"],
  multiclass: ["softmax"],
  multiclassova: ["multiclass_ova", "ova", "ovr"],
  cross_entropy: ["xentropy"],
  cross_entropy_lambda: ["xentlambda"],
  rank_xendcg: ["xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"],
};

/**
 * @param text the line `objective`: a name and its parameters; undefined for a custom objective
 * @throws TritonError UNSUPPORTED for an objective whose scores are not known; INVALID_ARG for wrong parameters
 */
function lightgbmObjective(text: string | undefined, classes: number): Pick<ForestHead, "link" | "task"> {
  const [given = "custom", ...parameters] = text?.split(" ") ?? [];
  const name = canonical(given);
  if (classes > 1 && name !== "multiclass" && name !== "multiclassova" && name !== "custom")
    throw invalidModel(
      `Objective must be 'multiclass' or 'multiclassova' when num_class > 1. Got: '${name}'`,
    );
  return { link: linkOf(name, parameters), task: taskOf(name, classes) };
}

function canonical(name: string): string {
  const found = Object.entries(ALIASES).find(([main, others]) => main === name || others.includes(name));
  return found?.[0] ?? name;
}

const LINKS: Readonly<Record<string, LinkName>> = {
  multiclass: "softmax",
  multiclassova: "multiclass_ova",
  binary: "sigmoid",
  cross_entropy: "sigmoid",
  cross_entropy_lambda: "logarithm_one_plus_exp",
  poisson: "exponential",
  gamma: "exponential",
  tweedie: "exponential",
  lambdarank: "identity",
  rank_xendcg: "identity",
  custom: "identity",
};

/** Objectives whose parameter `sqrt` is the link function `signed_square`. */
const REGRESSIONS = ["regression", "regression_l1", "huber", "fair", "quantile", "mape"];

function linkOf(name: string, parameters: readonly string[]): Link {
  if (REGRESSIONS.includes(name)) return { name: parameters.includes("sqrt") ? "signed_square" : "identity" };
  const link = Object.hasOwn(LINKS, name) ? LINKS[name] : undefined;
  if (link === undefined) throw notSupported(`Unknown objective name: "${name}"`);
  const hasSigmoid = name === "binary" || name === "multiclassova";
  return hasSigmoid ? { name: link, alpha: sigmoidOf(name, parameters) } : { name: link };
}

function sigmoidOf(name: string, parameters: readonly string[]): number {
  const text = parameters.find((one) => one.startsWith("sigmoid:"))?.slice("sigmoid:".length);
  const alpha = Number(text);
  if (text !== undefined && alpha > 0 && alpha < Number.POSITIVE_INFINITY) return alpha;
  throw invalidModel(
    `Ill-formed LightGBM model file: not a valid ${name} objective: expected sigmoid above 0, got ${text}`,
  );
}

function taskOf(name: string, classes: number): Task {
  if (classes > 1) return "multiclass";
  if (["binary", "cross_entropy", "cross_entropy_lambda"].includes(name)) return "binary";
  return name === "lambdarank" || name === "rank_xendcg" ? "ranking" : "regression";
}

/** Numbers of a list. V8 ends the process when a list has more than 2^27 elements. */
const MOST_NUMBERS = 2 ** 26;

/** Fields of lines `key=value`. Errors name the field. */
class LineFields {
  readonly #fields = new Map<string, string>();

  /** @param path name of the part of the file, for errors */
  constructor(readonly path: string) {}

  add(line: string): void {
    const equals = line.indexOf("=");
    if (equals < 0) this.#fields.set(line, "");
    else this.#fields.set(line.slice(0, equals), line.slice(equals + 1));
  }

  has(key: string): boolean {
    return this.#fields.has(key);
  }

  /** The text of a field, and undefined for one that is absent or empty. */
  text(key: string, empty: string): string | undefined {
    const text = this.#fields.get(key);
    return text === empty ? undefined : text;
  }

  integer(key: string): number {
    const text = this.#need(key);
    const value = Number(text);
    if (text.trim() !== "" && Number.isSafeInteger(value)) return value;
    throw invalidModel(`${this.path}: ${key}: expected an integer, got ${JSON.stringify(text.slice(0, 80))}`);
  }

  /**
   * Numbers between spaces.
   *
   * @throws TritonError INVALID_ARG for another number of them, and for text that is not a number
   */
  numbers(key: string, length: number): Float64Array {
    const text = this.#need(key).trim();
    const words = text === "" ? [] : text.split(/\s+/, Math.min(length, MOST_NUMBERS) + 1);
    if (words.length !== length) {
      const got = words.length > length ? "more" : words.length;
      throw invalidModel(`${this.path}: ${key}: expected ${length} numbers, got ${got}`);
    }
    return Float64Array.from(words, (word) => {
      const value = numberOf(word);
      if (value === undefined)
        throw invalidModel(
          `${this.path}: ${key}: expected a number, got ${JSON.stringify(word.slice(0, 80))}`,
        );
      return value;
    });
  }

  #need(key: string): string {
    const text = this.#fields.get(key);
    if (text === undefined) throw invalidModel(`${this.path}: Ill-formed LightGBM model file: need ${key}`);
    return text;
  }
}

/** Reads a number as C does. NaN is one, and the builder of the forest refuses it where it matters. */
function numberOf(word: string): number | undefined {
  if (/^[-+]?nan$/i.test(word)) return Number.NaN;
  const infinite = /^([-+]?)inf(inity)?$/i.exec(word);
  if (infinite !== null) return infinite[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(word) ? Number(word) : undefined;
}
