import { type Forest, notSupported } from "./forest.js";
import { firstChildTakes, writeRowKeys } from "./margins.js";

/** Deeper trees have no exact explanation in double precision. */
const MAX_DEPTH = 32;

/**
 * Explains scores: how much each feature adds to the sum of a row, as Shapley values over the paths of the trees
 * (TreeSHAP). The rows of the training weigh the paths.
 *
 * @throws TritonError UNSUPPORTED for a file without the weights of the training rows, and for trees deeper than 31
 */
export class Explainer {
  readonly #forest: Forest;
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
  #values: Float32Array = new Float32Array();
  #valuesAt = 0;
  #sums = new Float64Array();
  #group = 0;

  constructor(forest: Forest) {
    if (forest.covers.length === 0) throw notSupported("Model does not have node statistics.");
    const depth = forest.depths.reduce((one, other) => Math.max(one, other), 0);
    if (depth >= MAX_DEPTH) {
      throw notSupported(
        "Tree depths above 32 not supported. Shap cannot be considered accurate at this depth.",
      );
    }
    this.#forest = forest;
    this.#keys = new Int32Array(Math.max(1, 2 * forest.usedFeatures.length));
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
    return this.#forest.groups * (this.#forest.features + 1);
  }

  /**
   * Explains a row.
   *
   * @param columns number of columns of a row
   * @returns for each group the part of each feature, then the expected sum. Valid until the next call.
   */
  explain(values: Float32Array, columns: number, row: number): Float64Array {
    const { roots, treeGroups, groups, features, averages, treesOfGroup } = this.#forest;
    if (this.#sums.length === 0) this.#sums = new Float64Array(this.columns);
    const sums = this.#sums.fill(0);
    const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
    writeRowKeys(bits, columns, row, 1, this.#forest, this.#keys);
    this.#values = values;
    this.#valuesAt = row * columns;
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
    place: number,
    level: number,
    above: number,
    without: number,
    within: number,
    feature: number,
  ): void {
    const { nodes, categoryNodes, usedFeatures, covers } = this.#forest;
    const base = level * this.#stride;
    if (level > 0) this.#copyPath(base - this.#stride, base, above);
    this.#extend(base, above, without, within, feature);
    let length = above + 1;
    const leaf = nodes[place + 3]!;
    if (leaf >= 0) {
      this.#addLeaf(leaf, base, length);
      return;
    }
    const first = nodes[place + 2]!;
    const goesFirst = firstChildTakes(this.#forest, place, this.#keys, 0, this.#values, this.#valuesAt);
    const [hot, cold] = goesFirst ? [first, first + 4] : [first + 4, first];
    const position = nodes[place]!;
    const split = position >= 0 ? usedFeatures[position >> 1]! : categoryNodes[4 * (-1 - position)]!;
    let [earlierWithout, earlierWithin] = [1, 1];
    for (let i = 1; i < length; i++) {
      if (this.#features[base + i] !== split) continue;
      earlierWithout = this.#without[base + i]!;
      earlierWithin = this.#within[base + i]!;
      this.#unwind(base, length - 1, i);
      length--;
      break;
    }
    const cover = covers[place >> 2]!;
    const share = (child: number) => (cover > 0 ? covers[child >> 2]! / cover : 0);
    this.#follow(hot, level + 1, length, share(hot) * earlierWithout, earlierWithin, split);
    const coldShare = share(cold) * earlierWithout;
    if (coldShare > 0) this.#follow(cold, level + 1, length, coldShare, 0, split);
  }

  #copyPath(from: number, to: number, length: number): void {
    for (const array of [this.#features, this.#without, this.#within, this.#weights])
      array.copyWithin(to, from, from + length);
  }

  #addLeaf(leaf: number, base: number, length: number): void {
    const { leaves, leafWidth, groups, features } = this.#forest;
    for (let i = 1; i < length; i++) {
      const part =
        this.#unwoundSum(base, length - 1, i) * (this.#within[base + i]! - this.#without[base + i]!);
      const feature = this.#features[base + i]!;
      const [from, to] = this.#group < 0 ? [0, groups] : [this.#group, this.#group + 1];
      for (let group = from; group < to; group++) {
        this.#sums[group * (features + 1) + feature]! += part * leaves[leaf * leafWidth + group - from]!;
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

  /** Takes a feature out of a path. */
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

/** Sum of each group that is expected before anything is known of a row. */
function expectedSums(forest: Forest): Float64Array {
  const { nodes, roots, treeGroups, leaves, leafWidth, groups, covers, averages, treesOfGroup, base } =
    forest;
  const sums = new Float64Array(groups);
  for (let tree = 0; tree < roots.length; tree++) {
    const end = roots[tree + 1] ?? nodes.length;
    const total = covers[roots[tree]! >> 2]!;
    const group = treeGroups[tree]!;
    for (let place = roots[tree]!; place < end; place += 4) {
      const leaf = nodes[place + 3]!;
      if (leaf < 0) continue;
      const share = total > 0 ? covers[place >> 2]! / total : place === roots[tree] ? 1 : 0;
      for (let i = 0; i < (group < 0 ? groups : 1); i++)
        sums[group < 0 ? i : group]! += share * leaves[leaf * leafWidth + i]!;
    }
  }
  return sums.map((sum, group) => (averages ? sum / treesOfGroup[group]! : sum) + base[group]!);
}
