import { applyLink } from "../forest/apply-link.js";
import { Explainer } from "../forest/explainer.js";
import type { Forest } from "../forest/forest.js";
import { MarginComputer } from "../forest/margins.js";
import type { AnswerPlan } from "./answer-plan.js";

/** Steps through trees that take about a millisecond. */
const STEPS_PER_SLICE = 250_000;

/** Steps that explaining a row costs for each step of scoring it. */
const EXPLAINING_FACTOR = 200;

/** Computes the answers of a model. One for each thread, because it keeps its working memory. */
export class Scorer {
  readonly #margins: MarginComputer;
  readonly #explainer: Explainer | undefined;
  /** Number of rows that take about a millisecond. */
  readonly rowsPerSlice: number;

  /** @throws TritonError UNSUPPORTED for a model that cannot be explained, if the plan asks for that */
  constructor(
    readonly forest: Forest,
    readonly plan: AnswerPlan,
  ) {
    this.#margins = new MarginComputer(forest);
    this.#explainer = plan.explains ? new Explainer(forest) : undefined;
    const steps = forest.usualSteps.reduce((sum, one) => sum + one + 1, forest.usedFeatures.length + 1);
    const cost = steps * (plan.explains ? EXPLAINING_FACTOR : 1);
    this.rowsPerSlice = Math.max(1, Math.floor(STEPS_PER_SLICE / cost));
  }

  /** Number of values of `treeshap_output` in a row. */
  get explanationColumns(): number {
    return this.#explainer?.columns ?? 0;
  }

  /**
   * Writes the answers of rows.
   *
   * @param values rows one after another, each with all features
   * @param answers `columns` of the plan for each row
   */
  score(values: Float32Array, firstRow: number, rows: number, answers: Float32Array): void {
    const { features, groups } = this.forest;
    const { kind, link, threshold, columns } = this.plan;
    const sums = this.#margins.compute(values, features, firstRow, rows);
    applyLink(link, sums, rows, groups);
    const start = firstRow * columns;
    switch (kind) {
      case "scores":
        for (let i = 0; i < rows * groups; i++) answers[start + i] = sums[i]!;
        return;
      case "both classes":
        for (let i = 0; i < rows; i++) {
          const score = Math.fround(sums[i]!);
          answers[start + 2 * i] = 1 - score;
          answers[start + 2 * i + 1] = score;
        }
        return;
      case "class":
        for (let i = 0; i < rows; i++) {
          answers[start + i] =
            groups === 1 ? (Math.fround(sums[i]!) > threshold ? 1 : 0) : largest(sums, i * groups, groups);
        }
    }
  }

  /** Writes the explanations of rows, `explanationColumns` for each. */
  explain(values: Float32Array, firstRow: number, rows: number, explanations: Float32Array): void {
    for (let row = firstRow; row < firstRow + rows; row++) {
      explanations.set(
        this.#explainer!.explain(values, this.forest.features, row),
        row * this.#explainer!.columns,
      );
    }
  }
}

/** The class with the largest score above 0, as in Triton's backend, and class 0 if there is none. */
function largest(scores: Float64Array, start: number, groups: number): number {
  let best = 0;
  let found = 0;
  for (let i = 0; i < groups; i++) {
    const score = Math.fround(scores[start + i]!);
    if (score > best) {
      best = score;
      found = i;
    }
  }
  return found;
}
