import { TritonError } from "@tritonjs/protocol";
import type { Forest, Link } from "../forest/forest.js";

/** Answers of a model, by the rules of Triton's FIL backend. */
export interface AnswerPlan {
  /** Number of values of `output__0` in a row. */
  readonly columns: number;
  /** Scores of all groups, the class, or the probabilities of both classes of a binary model. */
  readonly kind: "scores" | "class" | "both classes";
  readonly link: Link;
  /** A binary model answers class 1 for scores above it. */
  readonly threshold: number;
  /** True for a model with the output `treeshap_output`. */
  readonly explains: boolean;
}

/** The settings that decide on the answers. */
export interface AnswerSettings {
  readonly isClassifier: boolean;
  readonly predictProba: boolean;
  readonly threshold: number;
  readonly bothClasses: boolean;
  readonly explains: boolean;
}

/** @throws TritonError INVALID_ARG for both classes of a model that is not a binary classifier with probabilities */
export function planAnswers(forest: Forest, settings: AnswerSettings): AnswerPlan {
  const { isClassifier, predictProba, threshold, bothClasses, explains } = settings;
  const isBinary = forest.groups === 1;
  if (bothClasses && !(isBinary && isClassifier && predictProba)) {
    throw new TritonError(
      "INVALID_ARG",
      "probabilities of both classes: expected a binary classifier with predict_proba, got another model",
      { reason: "INVALID_CONFIG" },
    );
  }
  const link = linkOf(forest, predictProba);
  if (isClassifier && !predictProba) return { columns: 1, kind: "class", link, threshold, explains };
  if (bothClasses) return { columns: 2, kind: "both classes", link, threshold, explains };
  return { columns: forest.groups, kind: "scores", link, threshold, explains };
}

/** Probabilities of a multi-class model are always made by softmax, unless its leaves have a value for each class. */
function linkOf({ task, leafWidth, link }: Forest, predictProba: boolean): Link {
  return predictProba && task === "multiclass" && leafWidth === 1 ? { name: "softmax" } : link;
}
