import fc from "fast-check";

/** A node as nested objects, for the evaluator of the tests. */
export type PlainNode =
  | { readonly leaf: readonly number[]; readonly cover: number }
  | {
      readonly feature: number;
      readonly threshold: number;
      /** Categories that go left; undefined for a numerical node. */
      readonly categories?: readonly number[];
      readonly missingGoLeft: boolean;
      readonly left: PlainNode;
      readonly right: PlainNode;
      readonly cover: number;
    };

/** A tree ensemble as nested objects. */
export interface PlainForest {
  readonly features: number;
  readonly groups: number;
  readonly trees: readonly PlainNode[];
}

/** Leaf of a row, found one node after another. @param goesLeft compares a value with a threshold */
export function leafOf(
  node: PlainNode,
  row: ArrayLike<number>,
  goesLeft: (value: number, threshold: number) => boolean,
): readonly number[] {
  if ("leaf" in node) return node.leaf;
  const value = row[node.feature]!;
  let left: boolean;
  if (Number.isNaN(value)) left = node.missingGoLeft;
  else if (node.categories !== undefined) left = value >= 0 && node.categories.includes(Math.floor(value));
  else left = goesLeft(value, node.threshold);
  return leafOf(left ? node.left : node.right, row, goesLeft);
}

/** Sums of the leaves of each group. @param add how the library adds */
export function sumsOf(
  { trees, groups }: PlainForest,
  row: ArrayLike<number>,
  goesLeft: (value: number, threshold: number) => boolean,
  add: (sum: number, leaf: number) => number,
): number[] {
  const sums = new Array<number>(groups).fill(0);
  for (const [i, tree] of trees.entries()) {
    const leaf = leafOf(tree, row, goesLeft);
    if (leaf.length === 1) sums[i % groups] = add(sums[i % groups]!, leaf[0]!);
    else for (const [group, value] of leaf.entries()) sums[group] = add(sums[group]!, value);
  }
  return sums;
}

/** Categories that are too far apart for a set of bits. */
const FAR_CATEGORIES = [9000, 9001, 20_000];
const category = fc.oneof({ weight: 5, arbitrary: fc.nat(70) }, fc.constantFrom(...FAR_CATEGORIES));

/** Values that rows and thresholds share, so that they are often equal, with the ends of their range. */
const special = fc.constantFrom(
  0,
  -0,
  1,
  -1,
  0.5,
  3,
  Math.fround(0.1),
  2 ** -149,
  -(2 ** -149),
  3.4028234663852886e38,
  -3.4028234663852886e38,
);
const single = fc.oneof(
  special,
  fc.float({ noNaN: true, noDefaultInfinity: true }),
  fc.integer({ min: -4, max: 20 }),
  fc.constantFrom(...FAR_CATEGORIES),
);
const double = fc.oneof(single, fc.double({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 }));

export const cell = fc.oneof(
  { weight: 6, arbitrary: single },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY) },
);

/** What the forests of a format may have. */
export interface ForestShape {
  readonly precision: "single" | "double";
  readonly categories: boolean;
  /** True for leaves with a value for each group. */
  readonly vectors: boolean;
}

/** Any forest of a shape. */
export function anyForest({ precision, categories, vectors }: ForestShape): fc.Arbitrary<PlainForest> {
  const value = precision === "single" ? single : double;
  const leafValue =
    precision === "single"
      ? fc.float({ noNaN: true, min: -100, max: 100 })
      : fc.double({ noNaN: true, min: -100, max: 100 });
  return fc
    .record({ features: fc.integer({ min: 1, max: 5 }), groups: fc.constantFrom(1, 3) })
    .chain(({ features, groups }) => {
      const width = vectors ? groups : 1;
      const cover = fc.integer({ min: 1, max: 50 });
      const { node } = fc.letrec<{ node: PlainNode; leaf: PlainNode; split: PlainNode }>((tie) => ({
        node: fc.oneof({ maxDepth: 7, depthSize: "large" }, tie("leaf"), tie("split"), tie("split")),
        leaf: fc.record({ leaf: fc.array(leafValue, { minLength: width, maxLength: width }), cover }),
        split: fc
          .record({
            feature: fc.nat(features - 1),
            threshold: value,
            categories: categories
              ? fc.option(fc.uniqueArray(category, { minLength: 1, maxLength: 6 }), { nil: undefined })
              : fc.constant(undefined),
            missingGoLeft: fc.boolean(),
            left: tie("node"),
            right: tie("node"),
            cover,
          })
          .map(({ categories, ...split }) => (categories === undefined ? split : { ...split, categories })),
      }));
      return fc.record({
        features: fc.constant(features),
        groups: fc.constant(groups),
        trees: fc.array(node, { minLength: 1, maxLength: 10 }).map((trees) => {
          // Whole rounds: one tree for each group.
          const count = vectors ? trees.length : Math.ceil(trees.length / groups) * groups;
          return Array.from({ length: count }, (_, i) => trees[i % trees.length]!);
        }),
      });
    });
}

/** Rows of a forest, some of them with missing values. */
export function anyRows(features: number): fc.Arbitrary<Float32Array> {
  return fc
    .array(fc.array(cell, { minLength: features, maxLength: features }), { minLength: 1, maxLength: 19 })
    .map((rows) => Float32Array.from(rows.flat()));
}
