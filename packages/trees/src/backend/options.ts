import type { ModelType } from "../readers/model-type.js";

/** Options of {@link trees}. */
export interface TreesOptions {
  /** Path of the model file, or its bytes. */
  readonly model: string | URL | Uint8Array;
  /**
   * Format of the file.
   *
   * @default recognized by the file's first bytes
   */
  readonly modelType?: ModelType;
  /**
   * True to answer the class of each row as a number: the class with the largest score, or for a binary model 1 if its
   * score is above `threshold`. False for the scores themselves, as `predict` of the library gives them.
   *
   * @default false
   */
  readonly isClassifier?: boolean;
  /**
   * True for a classifier that answers the probability of each class, and a binary one that of class 1. Without
   * `isClassifier`, the scores of a multi-class model are still made by softmax.
   *
   * @default false
   */
  readonly predictProba?: boolean;
  /** True for a binary classifier that answers the probabilities of class 0 and class 1. @default false */
  readonly bothClasses?: boolean;
  /** Scores above it are class 1 of a binary classifier. @default 0.5 */
  readonly threshold?: number;
  /**
   * True for a second output `treeshap_output` (FP32, `[rows, classes * (features + 1)]`, 1 class for a regression):
   * for each class, the part of each feature in the sum of a row, then the expected sum. The file must have the weights
   * of its training rows, as those of XGBoost and LightGBM have.
   *
   * @default false
   */
  readonly treeShap?: boolean;
  /**
   * Boosting rounds to use: the first ones, or "best" for those up to `best_iteration` of XGBoost's early stopping.
   *
   * @default all, as `Booster.predict` of XGBoost does
   */
  readonly rounds?: number | "best";
  /**
   * Whether fields of an XGBoost document that are not known are ignored. They may change predictions, so they are
   * refused otherwise.
   *
   * @default false
   */
  readonly allowUnknownFields?: boolean;
}
