import type { WorkerModel } from "@tritonjs/core/backend";
import { errorFor, shapeToString, Tensor } from "@tritonjs/protocol";
import { type Forest, type Link, NODE_BYTES, NODES_AT, notSupported } from "./forest.js";
import { firstChildTakes, keyCount, MarginComputer, writeRowKeys } from "./margins.js";

/** Steps through trees that take about a millisecond. */
const STEPS_PER_SLICE = 800_000;

/** Steps that explaining a row costs for each step of scoring it. */
const EXPLAINING_FACTOR = 650;

/** Computes the answers of a model. One for each thread, because it keeps its working memory. */
export class Scorer {
  readonly #margins: MarginComputer;
  readonly #explainer: Explainer | undefined;
  /** Number of rows that take about a millisecond. */
  readonly rowsPerSlice: number;

  /**
   * @param workAt address of working memory that no other thread uses, which is added if it is not given
   * @throws TritonError UNSUPPORTED for a model that cannot be explained, if the plan asks for that
   */
  constructor(
    readonly forest: Forest,
    readonly plan: AnswerPlan,
    workAt?: number,
  ) {
    this.#explainer = plan.explains ? new Explainer(forest) : undefined;
    this.#margins = new MarginComputer(forest, workAt);
    const steps = forest.usualSteps + forest.roots.length + forest.usedFeatures.length + 1;
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
    const text =
      "probabilities of both classes: expected a binary classifier with predict_proba, got another model";
    throw errorFor("INVALID_CONFIG", text);
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
  squeezed: boolean,
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

function outputOf(rows: number, width: number, squeezed: boolean) {
  const values = new Float32Array(rows * width);
  const shape = !squeezed ? [rows, width] : width === 1 ? [rows] : [rows, width];
  return { values, tensor: Tensor.fromElements("FP32", shape, values) };
}

function valuesOf(scorer: Scorer, tensor: Tensor | undefined, rows: number): Float32Array {
  const { features } = scorer.forest;
  const values = tensor?.elements;
  if (values instanceof Float32Array && values.length === rows * features) return values;
  const text = `input '${INPUT}': expected shape ${shapeToString([rows, features])}, got ${shapeToString(tensor?.shape ?? [])}`;
  throw errorFor("INVALID_INPUT", text);
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

/** Deeper trees have no exact explanation in double precision. */
const MAX_DEPTH = 32;

/**
 * Explains scores: how much each feature adds to the sum of a row, as Shapley values over the paths of the trees
 * (TreeSHAP). The rows of the training weigh the paths.
 *
 * @throws TritonError UNSUPPORTED for a file without the weights of the training rows, and for trees deeper than 31
 */
export class Explainer {
  readonly #keys: Int32Array;
  /** One path for each level: features, and the shares of rows that follow the path without and with the feature. */
  readonly #features: Int32Array;
  readonly #without: Float64Array;
  readonly #within: Float64Array;
  readonly #weights: Float64Array;
  /** Length of a path's part of the arrays. */
  readonly #stride: number;
  /** Sum of each group over the training rows. */
  readonly #expected: Float64Array;
  #sums = new Float64Array();
  #group = 0;

  constructor(private readonly forest: Forest) {
    if (forest.covers.length === 0) throw notSupported("Model does not have node statistics.");
    const { depth } = forest;
    if (depth >= MAX_DEPTH) {
      throw notSupported(
        "Tree depths above 32 not supported. Shap cannot be considered accurate at this depth.",
      );
    }
    this.#keys = new Int32Array(keyCount(forest));
    this.#stride = depth + 2;
    const size = this.#stride * (depth + 2);
    this.#features = new Int32Array(size);
    this.#without = new Float64Array(size);
    this.#within = new Float64Array(size);
    this.#weights = new Float64Array(size);
    this.#expected = expectedSums(forest);
  }

  /** Number of values of a row: the features and the expected sum, for each group. */
  get columns(): number {
    return this.forest.groups * (this.forest.features + 1);
  }

  /**
   * Explains a row.
   *
   * @param columns number of columns of a row
   * @returns for each group the part of each feature, then the expected sum. Valid until the next call.
   */
  explain(values: Float32Array, columns: number, row: number): Float64Array {
    const { roots, treeGroups, groups, features, averages, treesOfGroup } = this.forest;
    if (this.#sums.length === 0) this.#sums = new Float64Array(this.columns);
    const sums = this.#sums.fill(0);
    const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
    writeRowKeys(values, bits, columns, row, 1, this.forest, this.#keys);
    for (let tree = 0; tree < roots.length; tree++) {
      this.#group = treeGroups[tree]!;
      this.#follow(roots[tree]!, 0, 0, 1, 1, -1);
    }
    for (let group = 0; group < groups; group++) {
      const start = group * (features + 1);
      if (averages) for (let i = 0; i < features; i++) sums[start + i]! /= treesOfGroup[group]!;
      sums[start + features] = this.#expected[group]!;
    }
    return sums;
  }

  /** @param length number of features of the path above */
  #follow(
    node: number,
    level: number,
    above: number,
    without: number,
    within: number,
    feature: number,
  ): void {
    const { integers, usedFeatures, covers } = this.forest;
    const base = level * this.#stride;
    if (level > 0) this.#copyPath(base - this.#stride, base, above);
    this.#extend(base, above, without, within, feature);
    let length = above + 1;
    const leaf = integers[(node >> 2) + 3]!;
    if (leaf >= 0) {
      this.#addLeaf(leaf >> 3, base, length);
      return;
    }
    const first = integers[(node >> 2) + 2]!;
    const second = first + NODE_BYTES;
    const [hot, cold] = firstChildTakes(this.forest, node, this.#keys) ? [first, second] : [second, first];
    const split = usedFeatures[Math.floor(integers[node >> 2]! / (8 * this.forest.blockRows))]!;
    let [earlierWithout, earlierWithin] = [1, 1];
    for (let i = 1; i < length; i++) {
      if (this.#features[base + i] !== split) continue;
      earlierWithout = this.#without[base + i]!;
      earlierWithin = this.#within[base + i]!;
      this.#unwind(base, length - 1, i);
      length--;
      break;
    }
    const cover = covers[numberOf(node)]!;
    const share = (child: number) => (cover > 0 ? covers[numberOf(child)]! / cover : 0);
    this.#follow(hot, level + 1, length, share(hot) * earlierWithout, earlierWithin, split);
    const coldShare = share(cold) * earlierWithout;
    if (coldShare > 0) this.#follow(cold, level + 1, length, coldShare, 0, split);
  }

  #copyPath(from: number, to: number, length: number): void {
    for (const array of [this.#features, this.#without, this.#within, this.#weights])
      array.copyWithin(to, from, from + length);
  }

  /** @param values place of the leaf's values */
  #addLeaf(values: number, base: number, length: number): void {
    const { leaves, groups, features } = this.forest;
    for (let i = 1; i < length; i++) {
      const part =
        this.#unwoundSum(base, length - 1, i) * (this.#within[base + i]! - this.#without[base + i]!);
      const feature = this.#features[base + i]!;
      const [from, to] = this.#group < 0 ? [0, groups] : [this.#group, this.#group + 1];
      for (let group = from; group < to; group++) {
        this.#sums[group * (features + 1) + feature]! += part * leaves[values + group - from]!;
      }
    }
  }

  #extend(base: number, last: number, without: number, within: number, feature: number): void {
    const weights = this.#weights;
    this.#features[base + last] = feature;
    this.#without[base + last] = without;
    this.#within[base + last] = within;
    weights[base + last] = last === 0 ? 1 : 0;
    for (let i = last - 1; i >= 0; i--) {
      const weight = weights[base + i]!;
      weights[base + i + 1]! += (within * weight * (i + 1)) / (last + 1);
      weights[base + i] = (without * weight * (last - i)) / (last + 1);
    }
  }

  #unwind(base: number, last: number, index: number): void {
    const weights = this.#weights;
    const [within, without] = [this.#within[base + index]!, this.#without[base + index]!];
    let next = weights[base + last]!;
    for (let i = last - 1; i >= 0; i--) {
      const weight = weights[base + i]!;
      if (within !== 0) {
        weights[base + i] = (next * (last + 1)) / ((i + 1) * within);
        next = weight - (weights[base + i]! * without * (last - i)) / (last + 1);
      } else {
        weights[base + i] = (weight * (last + 1)) / (without * (last - i));
      }
    }
    for (const array of [this.#features, this.#without, this.#within])
      array.copyWithin(base + index, base + index + 1, base + last + 1);
  }

  /** Sum of the weights of a path without a feature. */
  #unwoundSum(base: number, last: number, index: number): number {
    const [within, without] = [this.#within[base + index]!, this.#without[base + index]!];
    let next = this.#weights[base + last]!;
    let total = 0;
    for (let i = last - 1; i >= 0; i--) {
      const weight = this.#weights[base + i]!;
      if (within !== 0) {
        const part = (next * (last + 1)) / ((i + 1) * within);
        total += part;
        next = weight - (part * without * (last - i)) / (last + 1);
      } else if (without !== 0) {
        total += (weight * (last + 1)) / (without * (last - i));
      }
    }
    return total;
  }
}

/** Number of a node by its address. */
function numberOf(node: number): number {
  return (node - NODES_AT) / NODE_BYTES;
}

/** Sum of each group that is expected before anything is known of a row. */
function expectedSums(forest: Forest): Float64Array {
  const { integers, roots, treeGroups, leaves, groups, covers, averages, treesOfGroup, base } = forest;
  const sums = new Float64Array(groups);
  const nodesEnd = NODES_AT + NODE_BYTES * covers.length;
  for (let tree = 0; tree < roots.length; tree++) {
    const root = roots[tree]!;
    const end = roots[tree + 1] ?? nodesEnd;
    const total = covers[numberOf(root)]!;
    const group = treeGroups[tree]!;
    for (let node = root; node < end; node += NODE_BYTES) {
      const leaf = integers[(node >> 2) + 3]!;
      if (leaf < 0) continue;
      const share = total > 0 ? covers[numberOf(node)]! / total : node === root ? 1 : 0;
      for (let i = 0; i < (group < 0 ? groups : 1); i++)
        sums[group < 0 ? i : group]! += share * leaves[(leaf >> 3) + i]!;
    }
  }
  return sums.map((sum, group) => (averages ? sum / treesOfGroup[group]! : sum) + base[group]!);
}

/** Data that a worker thread gets. All workers share the memory of the forest. */
export interface ForestData {
  readonly forest: Forest;
  readonly plan: AnswerPlan;
  /** Address of the thread's working memory. */
  readonly workAt: number;
}

/** Entry of worker threads that score rows. */
export async function load(data: unknown): Promise<WorkerModel> {
  const { forest, plan, workAt } = data as ForestData;
  const scorer = new Scorer(forest, plan, workAt);
  return {
    ownsOutputs: true,
    execute: async ({ inputs, rows }) => {
      const total = rows.reduce((sum, one) => sum + one, 0);
      return { merged: await scoreTensors(scorer, inputs, total, false, plan.explains, undefined) };
    },
  };
}
