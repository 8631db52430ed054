import { shapeToString, Tensor, TritonError } from "@tritonjs/protocol";
import { Explainer } from "./explainer.js";
import type { Forest, Link } from "./forest.js";
import { MarginComputer } from "./margins.js";

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
interface AnswerSettings {
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

export const INPUT = "input__0";
export const OUTPUT = "output__0";
export const EXPLANATION = "treeshap_output";

/** How outputs are shaped. */
export interface OutputShapes {
  /** True if dimensions of 1 are left out, as Triton's backend does: [rows] rather than [rows,1]. */
  readonly squeezed: boolean;
}

/**
 * Scores the rows of a request. More rows than `scorer.rowsPerSlice` are scored in slices of about a millisecond if
 * there is a `pause`.
 *
 * @param explains whether the request wants `treeshap_output`
 * @param pause called between two slices
 * @returns the outputs, or a promise of them if there is a pause between slices
 * @throws TritonError INVALID_ARG for rows with another number of columns
 */
export function scoreTensors(
  scorer: Scorer,
  inputs: ReadonlyMap<string, Tensor>,
  rows: number,
  { squeezed }: OutputShapes,
  explains: boolean,
  pause: (() => Promise<void>) | undefined,
): Map<string, Tensor> | Promise<Map<string, Tensor>> {
  const values = valuesOf(scorer, inputs.get(INPUT), rows);
  const answers = outputOf(rows, scorer.plan.columns, squeezed);
  const explanations = explains ? outputOf(rows, scorer.explanationColumns, squeezed) : undefined;
  const score = (row: number, count: number) => {
    scorer.score(values, row, count, answers.values);
    if (explanations !== undefined) scorer.explain(values, row, count, explanations.values);
  };
  const outputs = new Map([[OUTPUT, answers.tensor]]);
  if (explanations !== undefined) outputs.set(EXPLANATION, explanations.tensor);
  if (pause !== undefined && rows > scorer.rowsPerSlice)
    return inSlices(rows, scorer.rowsPerSlice, score, pause).then(() => outputs);
  score(0, rows);
  return outputs;
}

async function inSlices(
  rows: number,
  step: number,
  score: (row: number, count: number) => void,
  pause: () => Promise<void>,
): Promise<void> {
  for (let row = 0; row < rows; row += step) {
    if (row > 0) await pause();
    score(row, Math.min(step, rows - row));
  }
}

/** An output tensor, and its elements to write to. */
function outputOf(rows: number, width: number, squeezed: boolean) {
  const values = new Float32Array(rows * width);
  const shape = !squeezed ? [rows, width] : width === 1 ? [rows] : [rows, width];
  return { values, tensor: Tensor.fromElements("FP32", shape, values) };
}

function valuesOf(scorer: Scorer, tensor: Tensor | undefined, rows: number): Float32Array {
  const { features } = scorer.forest;
  const values = tensor?.elements;
  if (values instanceof Float32Array && values.length === rows * features) return values;
  throw new TritonError(
    "INVALID_ARG",
    `input '${INPUT}': expected shape ${shapeToString([rows, features])}, got ${shapeToString(tensor?.shape ?? [])}`,
    { reason: "INVALID_INPUT" },
  );
}

/** Applies a link function to the sums of rows, in place. */
function applyLink(
  { name, alpha = 1, ratio = 1 }: Link,
  sums: Float64Array,
  rows: number,
  groups: number,
): void {
  const count = rows * groups;
  switch (name) {
    case "identity":
    case "identity_multiclass":
      return;
    case "softmax":
      for (let row = 0; row < rows; row++) softmax(sums, row * groups, groups);
      return;
    case "sigmoid":
    case "multiclass_ova":
      for (let i = 0; i < count; i++) sums[i] = 1 / (1 + Math.exp(-alpha * sums[i]!));
      return;
    case "exponential":
      for (let i = 0; i < count; i++) sums[i] = Math.exp(sums[i]!);
      return;
    case "hinge":
      for (let i = 0; i < count; i++) sums[i] = sums[i]! > 0 ? 1 : 0;
      return;
    case "signed_square":
      for (let i = 0; i < count; i++) sums[i] = sums[i]! * Math.abs(sums[i]!);
      return;
    case "exponential_standard_ratio":
      for (let i = 0; i < count; i++) sums[i] = 2 ** (-sums[i]! / ratio);
      return;
    case "logarithm_one_plus_exp":
      for (let i = 0; i < count; i++) sums[i] = logOnePlusExp(sums[i]!);
      return;
  }
}

function softmax(sums: Float64Array, start: number, groups: number): void {
  let largest = sums[start]!;
  for (let i = 1; i < groups; i++) largest = Math.max(largest, sums[start + i]!);
  let total = 0;
  for (let i = 0; i < groups; i++) {
    const share = Math.exp(sums[start + i]! - largest);
    sums[start + i] = share;
    total += share;
  }
  for (let i = 0; i < groups; i++) sums[start + i]! /= total;
}

/** ln(1 + e^x), which does not overflow. */
function logOnePlusExp(x: number): number {
  return x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x));
}
