import type { Link, Task } from "../forest/forest.js";
import { notSupported } from "../forest/invalid-model.js";

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

/** Effect of an objective of XGBoost on predictions. */
export interface XgboostObjective {
  readonly link: Link;
  readonly task: Task;
  /** Turns a base score of the file into a sum. */
  toSum(score: number): number;
}

/** @throws TritonError UNSUPPORTED for an objective whose scores are not known */
export function xgboostObjective(name: string, classes: number): XgboostObjective {
  return { link: linkOf(name), task: taskOf(name, classes), toSum: sumOf(name) };
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
