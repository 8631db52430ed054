import { invalidModel } from "../forest/invalid-model.js";
import type { DocumentFields } from "../formats/document-fields.js";

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
export function assertKnownFields(levels: Readonly<Record<string, DocumentFields>>): void {
  for (const [level, fields] of Object.entries(levels)) {
    const unknown = fields.keys.find((key) => !KNOWN[level]!.includes(key));
    if (unknown === undefined) continue;
    throw invalidModel(
      `${fields.path}: key "${unknown}" is not recognized! To ignore it, set xgboost_allow_unknown_field ` +
        "(allowUnknownFields) to true",
    );
  }
}
