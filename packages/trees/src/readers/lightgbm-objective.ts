import type { Link, Task } from "../forest/forest.js";
import { invalidModel, notSupported } from "../forest/invalid-model.js";

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

/** Effect of an objective of LightGBM on predictions. */
export interface LightgbmObjective {
  readonly link: Link;
  readonly task: Task;
}

/**
 * @param text the line `objective`: a name and its parameters; undefined for a custom objective
 * @throws TritonError UNSUPPORTED for an objective whose scores are not known; INVALID_ARG for wrong parameters
 */
export function lightgbmObjective(text: string | undefined, classes: number): LightgbmObjective {
  const [given = "custom", ...parameters] = text?.split(" ") ?? [];
  const name = canonical(given);
  if (classes > 1 && name !== "multiclass" && name !== "multiclassova" && name !== "custom")
    throw invalidModel(
      `Objective must be 'multiclass' or 'multiclassova' when num_class > 1. Got: '${name}'`,
    );
  const link = linkOf(name, parameters);
  return { link, task: taskOf(name, classes) };
}

function canonical(name: string): string {
  const found = Object.entries(ALIASES).find(([main, others]) => main === name || others.includes(name));
  return found?.[0] ?? name;
}

function linkOf(name: string, parameters: readonly string[]): Link {
  switch (name) {
    case "multiclass":
      return { name: "softmax" };
    case "multiclassova":
      return { name: "multiclass_ova", alpha: sigmoidOf(name, parameters) };
    case "binary":
      return { name: "sigmoid", alpha: sigmoidOf(name, parameters) };
    case "cross_entropy":
      return { name: "sigmoid" };
    case "cross_entropy_lambda":
      return { name: "logarithm_one_plus_exp" };
    case "poisson":
    case "gamma":
    case "tweedie":
      return { name: "exponential" };
    case "regression":
    case "regression_l1":
    case "huber":
    case "fair":
    case "quantile":
    case "mape":
      return { name: parameters.includes("sqrt") ? "signed_square" : "identity" };
    case "lambdarank":
    case "rank_xendcg":
    case "custom":
      return { name: "identity" };
    default:
      throw notSupported(`Unknown objective name: "${name}"`);
  }
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
