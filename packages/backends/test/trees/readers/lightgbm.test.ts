import { describe, expect, test } from "vitest";
import { TreeModel } from "../../../src/trees/index.js";

/**
 * A model as LightGBM writes it: a numerical split that treats missing values as zero, one that knows them, and a
 * categorical one whose categories 1, 3 and 33 go left.
 */
const text = (objective: string, more = "") => `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=${objective}
${more}feature_names=age kind size
feature_infos=[0:90] none [0:1]
tree_sizes=500

Tree=0
num_leaves=4
num_cat=1
split_feature=0 1 2
split_gain=10 5 2
threshold=40.500000000000007 0 0.25
decision_type=2 9 10
left_child=1 -1 -3
right_child=2 -2 -4
leaf_value=0.5 -0.25 1.5 -2
leaf_weight=10 20 30 40
leaf_count=10 20 30 40
internal_value=0 0.1 0.2
internal_weight=0 30 70
internal_count=100 30 70
cat_boundaries=0 2
cat_threshold=10 2
is_linear=0
shrinkage=1


end of trees

feature_importances:
age=1

parameters:
[boosting: gbdt]
end of parameters

pandas_categorical:null
`;

const margin = (row: readonly number[], objective = "regression") =>
  new TreeModel({ model: Buffer.from(text(objective)) }).predict(Float32Array.from(row))[0]!;

describe("a LightGBM model", () => {
  test("compares with doubles, so that the nearest float of a threshold goes left", () => {
    expect(margin([40.5, 1, 0])).toBe(0.5);
    expect(margin([Math.fround(40.500004), 1, 0])).toBe(1.5);
  });

  test("sends its categories left, and other, missing and negative ones right", () => {
    for (const category of [1, 3, 33, 3.9]) expect(margin([10, category, 0])).toBe(0.5);
    for (const category of [0, 2, 32, 64, -1, Number.NaN, 1e9]) expect(margin([10, category, 0])).toBe(-0.25);
  });

  test("treats a missing value as zero unless the split knows missing values", () => {
    expect(margin([Number.NaN, 1, 0])).toBe(0.5);
    expect(margin([50, 0, Number.NaN])).toBe(1.5);
    expect(margin([50, 0, 0.3])).toBe(-2);
  });

  test.each([
    ["binary sigmoid:2", 1 / (1 + Math.exp(-1))],
    ["cross_entropy", 1 / (1 + Math.exp(-0.5))],
    ["xentlambda", Math.log1p(Math.exp(0.5))],
    ["poisson", Math.exp(0.5)],
    ["regression sqrt", 0.25],
    ["lambdarank", 0.5],
    ["mae", 0.5],
  ])("answers the score of objective %s", (objective, score) => {
    expect(margin([10, 1, 0], objective)).toBeCloseTo(score, 6);
  });

  test("explains rows by the counts of its leaves", () => {
    const model = new TreeModel({ model: Buffer.from(text("regression")), treeShap: true });
    const parts = model.explain(Float32Array.of(50, 0, 0.3));
    expect(parts[3]).toBeCloseTo((0.5 * 10 - 0.25 * 20 + 1.5 * 30 - 2 * 40) / 100, 6);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(-2, 6);
  });

  test("averages the trees of a random forest", () => {
    const one = text("regression", "average_output\n");
    const second = one
      .slice(one.indexOf("Tree=0"), one.indexOf("end of trees"))
      .replace("leaf_value=0.5", "leaf_value=1.5");
    const model = new TreeModel({ model: Buffer.from(one.replace("end of trees", `${second}end of trees`)) });
    expect(model.predict(Float32Array.of(10, 1, 0))[0]).toBe(1);
  });

  test("of an old release ends with the heading of its feature importances", () => {
    const old = text("regression")
      .replace("end of trees\n", "")
      .replace("feature_importances", "feature importances");
    expect(new TreeModel({ model: Buffer.from(old) }).predict(Float32Array.of(10, 1, 0))[0]).toBe(0.5);
  });

  test("of an old random forest has converted leaves, whose average is the answer", () => {
    const forest = text("binary sigmoid:1", "average_output\n");
    const answer = (model: string) =>
      new TreeModel({ model: Buffer.from(model) }).predict(Float32Array.of(10, 1, 0))[0];
    expect(answer(forest.replace("version=v4", "version=v2"))).toBe(0.5);
    expect(answer(forest)).toBeCloseTo(1 / (1 + Math.exp(-0.5)), 6);
  });

  test.each([
    ["objective=regression", "objective=fancy", 'UNSUPPORTED Unknown objective name: "fancy"'],
    ["objective=regression", "objective=binary", /not a valid binary objective: expected sigmoid above 0/],
    ["num_leaves=4", "num_leaves=1000000000", /leaf_value: expected 1000000000 numbers, got 4/],
    ["left_child=1 -1 -3", "left_child=0 -1 -3", /has another parent, so this is not a tree/],
    ["left_child=1 -1 -3", "left_child=1 -1 -5", /child of split 2: expected -4 to 2, got -5/],
    [
      "threshold=40.500000000000007",
      "threshold=nan",
      /tree 0, node 0: threshold: expected a number, got NaN/,
    ],
    ["threshold=40.500000000000007 0", "threshold=40.5 7", /expected a categorical split from 0 to 0, got 7/],
    ["split_feature=0", "split_feature=3", /expected a feature from 0 to 2, got 3/],
    ["max_feature_idx=2", "max_feature_idx=-1", /number of features: expected at least 1, got 0/],
    ["is_linear=0", "is_linear=1", /UNSUPPORTED LightGBM: tree 0 has linear models/],
    [/end of trees[\s\S]*/, "", /the file is cut off/],
    ["cat_boundaries=0 2", "cat_boundaries=0 9", /cat_threshold: expected 9 numbers, got 2/],
    ["leaf_value=0.5", "leaf_value=0.5x", /leaf_value: expected a number, got "0.5x"/],
    ["num_class=1", "num_class=999999999", /number of classes: expected one for each tree at most/],
  ])("is refused with %s as %s", (from, to, expected) => {
    const model = Buffer.from(text("regression").replace(from, to));
    let found = "nothing";
    try {
      new TreeModel({ model });
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      found = `${code} ${message}`;
    }
    expect(found).toMatch(expected);
  });
});
