import type { Forest } from "../forest/forest.js";
import { ForestBuilder } from "../forest/forest-builder.js";
import { assertGroupCount } from "../forest/group-count.js";
import { invalidModel, notSupported } from "../forest/invalid-model.js";
import { DocumentFields } from "../formats/document-fields.js";
import { assertKnownFields } from "./known-fields.js";
import { roundCount } from "./round-count.js";
import type { TreeFileOptions } from "./tree-file-options.js";
import { xgboostObjective } from "./xgboost-objective.js";
import { xgboostTree } from "./xgboost-tree.js";

/**
 * Makes a forest of the document in `model.json` or `model.ubj`.
 *
 * @throws TritonError INVALID_ARG for a document that is not a model of trees; UNSUPPORTED for boosters and objectives
 * that cannot be served
 */
export function readXgboostDocument(document: unknown, options: TreeFileOptions): Forest {
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
  const objectiveName = learner.object("objective").text("name");
  const objective = xgboostObjective(objectiveName, classes);
  const trees = model.list("trees");
  const groupsOfTrees = model.numbers("tree_info", trees.length);
  const weights = weightsOf(outer, gbtree, trees.length);
  const width = trees.length === 0 ? 1 : leafWidthOf(trees[0], classes);
  assertGroupCount(classes, trees.length, width);
  const builder = new ForestBuilder({
    features: parameters.integer("num_feature"),
    groups: classes,
    task: objective.task,
    link: objective.link,
    base: baseOf(parameters, classes, isTransformed(root) ? (score) => score : objective.toSum),
    averages: false,
    single: true,
    leafWidth: width,
  });
  const perRound = width > 1 ? 1 : classes;
  const parallel = model.has("gbtree_model_param")
    ? Math.max(1, model.object("gbtree_model_param").integer("num_parallel_tree", 1))
    : 1;
  const used = roundCount(trees.length, perRound * parallel, options.rounds, () => bestRound(learner));
  for (let i = 0; i < used; i++) {
    const group = width > 1 ? -1 : groupsOfTrees[i]!;
    builder.add(
      xgboostTree(
        trees[i],
        `XGBoost model.trees[${i}]`,
        { group, width, weight: weights?.[i] ?? 1 },
        options,
      ),
    );
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
  const width = new DocumentFields(tree, "XGBoost model.trees[0]")
    .object("tree_param")
    .integer("size_leaf_vector", 1);
  if (width <= 1) return 1;
  if (width !== classes)
    throw invalidModel(`size_leaf_vector: expected ${classes}, the number of classes, got ${width}`);
  return width;
}

/** Weights of the trees of a DART model. */
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
