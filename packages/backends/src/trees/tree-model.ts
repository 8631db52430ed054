import { errorFor, optionTypes } from "@tritonjs/protocol";
import { readModelFile } from "#model-file";
import type { Forest } from "./forest.js";
import { detectModelType, type ModelType, readForest } from "./read-forest.js";
import { planAnswers, Scorer } from "./scorer.js";

/*
 * The part of `@tritonjs/backends/trees` for browsers: bundlers take this file for the condition `browser`.
 */

export type { ModelType } from "./read-forest.js";

/** Reads a model as `trees` does. */
export function openForest(options: TreesOptions): Forest {
  const { model, modelType, rounds, allowUnknownFields = false } = options;
  const bytes = model instanceof Uint8Array ? model : readModelFile(model);
  return readForest(bytes, modelType ?? detectModelType(bytes), { rounds, allowUnknownFields });
}

/** The settings of options, with defaults. @throws TritonError INVALID_ARG for a threshold that is not a number */
export function settingsOf(options: TreesOptions) {
  const {
    isClassifier = false,
    predictProba = false,
    bothClasses = false,
    threshold = 0.5,
    treeShap = false,
  } = options;
  if (typeof threshold !== "number" || Number.isNaN(threshold)) {
    throw errorFor("INVALID_OPTION", `threshold: expected a number, got ${threshold}`);
  }
  return { isClassifier, predictProba, bothClasses, threshold: Math.fround(threshold), explains: treeShap };
}

/** Options of `trees` and of {@link TreeModel}. */
export interface TreesOptions {
  /** Path of the model file, or its bytes. In browsers, its bytes. */
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

export const TREES_OPTION_TYPES = optionTypes<TreesOptions>({
  model: ["object", "string"],
  modelType: "string",
  isClassifier: "boolean",
  predictProba: "boolean",
  bothClasses: "boolean",
  threshold: "any",
  treeShap: "boolean",
  rounds: ["number", "string"],
  allowUnknownFields: "boolean",
});

/**
 * A tree ensemble to call directly, for callbacks, programs without a server, and browsers: synchronous, in microseconds
 * for a row.
 *
 * @example
 * ```ts
 * const fraud = new TreeModel({ model: "fraud.json" });
 * const [probability] = fraud.predict(Float32Array.of(120.5, 3, Number.NaN));
 * ```
 */
export class TreeModel {
  readonly #scorer: Scorer;

  /** @throws TritonError as `trees` */
  constructor(options: TreesOptions) {
    const forest = openForest(options);
    this.#scorer = new Scorer(forest, planAnswers(forest, settingsOf(options)));
  }

  /** Number of values of a row. */
  get features(): number {
    return this.#scorer.forest.features;
  }

  /** Number of answers of a row. */
  get columns(): number {
    return this.#scorer.plan.columns;
  }

  /**
   * Scores rows.
   *
   * @param values one row or several, one after another, `features` values each; NaN for missing values
   * @returns `columns` answers for each row
   * @throws TritonError INVALID_ARG unless `values` are whole rows
   */
  predict(values: Float32Array): Float32Array {
    const rows = this.#rowsOf(values);
    const answers = new Float32Array(rows * this.columns);
    this.#scorer.score(values, 0, rows, answers);
    return answers;
  }

  /**
   * Explains rows; needs the option `treeShap`.
   *
   * @returns for each row and class the part of each feature, then the expected sum
   * @throws TritonError INVALID_ARG unless `values` are whole rows, and without the option
   */
  explain(values: Float32Array): Float32Array {
    const rows = this.#rowsOf(values);
    if (!this.#scorer.plan.explains) {
      throw errorFor("INVALID_OPTION", "explain: expected the option treeShap, got a model without it");
    }
    const explanations = new Float32Array(rows * this.#scorer.explanationColumns);
    this.#scorer.explain(values, 0, rows, explanations);
    return explanations;
  }

  #rowsOf(values: Float32Array): number {
    const rows = values.length / this.features;
    if (values instanceof Float32Array && Number.isInteger(rows)) return rows;
    const text = `rows: expected a Float32Array of a multiple of ${this.features} values, got ${values.length}`;
    throw errorFor("INVALID_INPUT", text);
  }
}
