import { TritonError } from "@tritonjs/protocol";
import { planAnswers } from "../scoring/answer-plan.js";
import { Scorer } from "../scoring/scorer.js";
import type { TreesOptions } from "./options.js";
import { openForest, settingsOf } from "./trees.js";

/**
 * A tree ensemble to call directly, for callbacks and programs without a server: synchronous, in microseconds for a
 * row.
 *
 * @example
 * ```ts
 * const fraud = new TreeModel({ model: "fraud.json" });
 * const [probability] = fraud.predict(Float32Array.of(120.5, 3, Number.NaN));
 * ```
 */
export class TreeModel {
  readonly #scorer: Scorer;

  /** @throws TritonError as {@link trees} */
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
      throw new TritonError("INVALID_ARG", "explain: expected the option treeShap, got a model without it", {
        reason: "INVALID_OPTION",
      });
    }
    const explanations = new Float32Array(rows * this.#scorer.explanationColumns);
    this.#scorer.explain(values, 0, rows, explanations);
    return explanations;
  }

  #rowsOf(values: Float32Array): number {
    const rows = values.length / this.features;
    if (values instanceof Float32Array && Number.isInteger(rows)) return rows;
    throw new TritonError(
      "INVALID_ARG",
      `rows: expected a Float32Array of a multiple of ${this.features} values, got ${values.length}`,
      { reason: "INVALID_INPUT" },
    );
  }
}
