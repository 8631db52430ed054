import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Forest } from "../../../src/trees/forest.js";
import { TreeModel } from "../../../src/trees/index.js";
import { MarginComputer } from "../../../src/trees/margins.js";
import { detectModelType, type ModelType, readForest } from "../../../src/trees/read-forest.js";
import { openForest } from "../../../src/trees/tree-model.js";
import { outcomeOfDamage } from "../support/damage.js";
import { anyForest, anyRows, type ForestShape, type PlainForest, sumsOf } from "../support/plain-forest.js";
import { lightgbmText, treeliteCheckpoint, ubjson, xgboostDocument } from "../support/write-models.js";

const files = ["binary.json", "binary.ubj", "binary.model", "random-forest.tl", "categorical.ubj"];

const bytesOf = (file: string) =>
  new Uint8Array(readFileSync(new URL(`../fixtures/${file}`, import.meta.url)));

describe.each(files)("the file %s", (file) => {
  const bytes = bytesOf(file);
  const type = detectModelType(bytes);

  test("is refused when it is cut anywhere", () => {
    const lengths = Array.from({ length: 25 }, (_, i) => Math.floor((i * bytes.length) / 25));
    for (const length of [...lengths, bytes.length - 1]) {
      expect(outcomeOfDamage(bytes.subarray(0, length), type), `${length} bytes`).not.toBe("read");
    }
  });

  test("is refused or still a model when bits are flipped", () => {
    const flips = fc.array(fc.nat(8 * bytes.length - 1), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(flips, (bits) => {
        const damaged = bytes.slice();
        for (const bit of bits) damaged[bit >> 3]! ^= 1 << (bit & 7);
        outcomeOfDamage(damaged, type);
      }),
      { numRuns: 25 },
    );
  });

  test("is refused when it is read as another format", () => {
    for (const other of [
      "xgboost",
      "xgboost_json",
      "xgboost_ubj",
      "lightgbm",
      "treelite_checkpoint",
    ] as const) {
      if (other !== type) expect(outcomeOfDamage(bytes, other)).not.toBe("read");
    }
  });
});

const leaf = (value: number) => ({ leaf: [value], cover: 1 });

const split = { feature: 0, threshold: 1, missingGoLeft: true, left: leaf(1), right: leaf(2), cover: 2 };

const plain = { features: 2, groups: 1, trees: [split] };

/** The reason why a document of XGBoost is refused after a change. */
function reasonOf(
  change: (document: ReturnType<typeof xgboostDocument>, tree: Record<string, unknown[]>) => void,
): string {
  const document = xgboostDocument(plain);
  change(document, document.learner.gradient_booster.model.trees[0] as unknown as Record<string, unknown[]>);
  return reasonOfFile(Buffer.from(JSON.stringify(document)));
}

function reasonOfFile(model: Uint8Array): string {
  try {
    new TreeModel({ model });
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
  return "nothing";
}

describe("a model that is not a forest of trees is refused, and the reason says where:", () => {
  test("a cycle", () => {
    expect(reasonOf((_, tree) => tree.left_children!.splice(0, 1, 0))).toBe(
      "INVALID_ARG tree 0, node 0: its child 0 has another parent, so this is not a tree",
    );
  });

  test("a node with two parents", () => {
    expect(reasonOf((_, tree) => tree.left_children!.splice(0, 1, 2))).toMatch(
      /its child 2 has another parent/,
    );
  });

  test("a child beyond the tree", () => {
    expect(reasonOf((_, tree) => tree.right_children!.splice(0, 1, 9))).toBe(
      "INVALID_ARG tree 0, node 0: expected a child from 0 to 2, got 9",
    );
  });

  test.each([Number.NaN, null, "1"])("the threshold %s", (threshold) => {
    expect(reasonOf((_, tree) => tree.split_conditions!.splice(0, 1, threshold))).toBe(
      "INVALID_ARG tree 0, node 0: threshold: expected a number, got NaN",
    );
  });

  test("a leaf that is not a number", () => {
    expect(reasonOf((_, tree) => tree.split_conditions!.splice(1, 1, null))).toBe(
      "INVALID_ARG tree 0, node 1: leaf: expected a number, got NaN",
    );
  });

  test("a feature that the model does not have", () => {
    expect(reasonOf((_, tree) => tree.split_indices!.splice(0, 1, 2))).toBe(
      "INVALID_ARG tree 0, node 0: expected a feature from 0 to 1, got 2",
    );
  });

  test("lists of different lengths", () => {
    expect(reasonOf((_, tree) => tree.default_left!.pop())).toBe(
      "INVALID_ARG XGBoost model.trees[0].default_left: expected 3 elements, got 2",
    );
  });

  test("counts that the file does not have", () => {
    const classes = (document: ReturnType<typeof xgboostDocument>) => document.learner.learner_model_param;
    expect(reasonOf((document) => Object.assign(classes(document), { num_class: "9000000" }))).toBe(
      "INVALID_ARG number of classes: expected one for each tree at most, got 9000000",
    );
    expect(reasonOf((document) => Object.assign(classes(document), { num_class: "900000000000" }))).toMatch(
      /^INVALID_ARG number of classes: /,
    );
    expect(reasonOf((document) => Object.assign(classes(document), { num_feature: "0" }))).toBe(
      "INVALID_ARG number of features: expected at least 1, got 0",
    );
    const huge = Buffer.concat([
      Buffer.from("{L"),
      Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]),
      Buffer.from("a[$d#L"),
      Buffer.alloc(8, 0x7f),
    ]);
    expect(reasonOfFile(huge)).toMatch(/^INVALID_ARG XGBoost UBJSON: /);
  });

  test("a document that nests without end", () => {
    expect(reasonOfFile(Buffer.from(`{"learner":${"[".repeat(200_000)}`))).toMatch(/^INVALID_ARG /);
    const deep = Buffer.concat([Buffer.from("{i"), Buffer.from([1]), Buffer.from(`a${"[".repeat(200_000)}`)]);
    expect(reasonOfFile(deep)).toMatch(/expected at most 64 levels, got more/);
  });

  test("a booster that is not made of trees", () => {
    expect(
      reasonOf((document) => Object.assign(document.learner.gradient_booster, { name: "gblinear" })),
    ).toBe("UNSUPPORTED Only GBTree or DART boosters are currently supported. Got: gblinear");
  });

  test("an objective and several targets", () => {
    expect(reasonOf((document) => Object.assign(document.learner.objective, { name: "reg:mine" }))).toBe(
      "UNSUPPORTED Unrecognized XGBoost objective: reg:mine",
    );
    expect(
      reasonOf((document) => Object.assign(document.learner.learner_model_param, { num_target: "2" })),
    ).toBe("UNSUPPORTED Multi-target model not supported: num_target is 2");
  });

  test("a field that may change predictions", () => {
    const document = { ...xgboostDocument(plain), twist: 1 };
    const model = Buffer.from(JSON.stringify(document));
    expect(reasonOfFile(model)).toMatch(
      /^INVALID_ARG XGBoost model: key "twist" is not recognized! To ignore it, /,
    );
    expect(new TreeModel({ model, allowUnknownFields: true }).predict(Float32Array.of(0, 0))).toEqual(
      Float32Array.of(1),
    );
  });

  test("another version of Treelite", () => {
    const bytes = treeliteCheckpoint(plain);
    expect(reasonOfFile(Uint8Array.from(bytes, (byte, i) => (i === 0 ? 3 : byte)))).toMatch(
      /^UNSUPPORTED Cannot load model from a different major Treelite version\. Expected: 4\.x, got: 3\.1\.2\./,
    );
  });

  test("something else altogether", () => {
    expect(reasonOfFile(new Uint8Array())).toMatch(
      /^INVALID_ARG expected a model of XGBoost, LightGBM or Treelite/,
    );
    expect(reasonOfFile(Buffer.from("[]"))).toMatch(/^INVALID_ARG expected a model/);
    expect(reasonOfFile(ubjson({ a: "b" }))).toBe(
      "INVALID_ARG XGBoost model: expected the field 'learner', got none",
    );
    expect(reasonOfFile(Buffer.alloc(1000, "x"))).toMatch(/^INVALID_ARG XGBoost binary: the file is cut off/);
  });
});

test("a leaf at the end of a chain as deep as the file allows is reached", () => {
  const depth = 5_000;
  let node: Parameters<typeof treeliteCheckpoint>[0]["trees"][number] = leaf(7);
  for (let i = 0; i < depth; i++) node = { ...split, threshold: 1, left: node, right: leaf(i) };
  const document = xgboostDocument({ ...plain, trees: [node] });
  const model = new TreeModel({ model: Buffer.from(JSON.stringify(document)) });
  expect(model.predict(Float32Array.of(0, 0))).toEqual(Float32Array.of(7));
});

const less = (value: number, threshold: number) => value < threshold;

const atMost = (value: number, threshold: number) => value <= threshold;

const single = (sum: number, leaf: number) => Math.fround(sum + leaf);

const double = (sum: number, leaf: number) => sum + leaf;

interface Format extends ForestShape {
  readonly name: string;
  readonly type: ModelType;
  readonly write: (forest: PlainForest) => Uint8Array;
  readonly goesLeft: typeof less;
}

const text = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));

const formats: readonly Format[] = [
  {
    name: "XGBoost JSON",
    type: "xgboost_json",
    precision: "single",
    categories: true,
    vectors: false,
    write: (forest) => text(xgboostDocument(forest)),
    goesLeft: less,
  },
  {
    name: "XGBoost UBJSON",
    type: "xgboost_ubj",
    precision: "single",
    categories: true,
    vectors: false,
    write: (forest) => ubjson(xgboostDocument(forest)),
    goesLeft: less,
  },
  {
    name: "LightGBM",
    type: "lightgbm",
    precision: "double",
    categories: false,
    vectors: false,
    write: (forest) => text(lightgbmText(forest)),
    goesLeft: atMost,
  },
  {
    name: "Treelite, doubles and <",
    type: "treelite_checkpoint",
    precision: "double",
    categories: true,
    vectors: false,
    write: (forest) => treeliteCheckpoint(forest),
    goesLeft: less,
  },
  {
    name: "Treelite, singles and <=",
    type: "treelite_checkpoint",
    precision: "single",
    categories: true,
    vectors: false,
    write: (forest) => treeliteCheckpoint(forest, { single: true, comparison: "<=" }),
    goesLeft: atMost,
  },
  {
    name: "Treelite, vectors and >",
    type: "treelite_checkpoint",
    precision: "double",
    categories: false,
    vectors: true,
    write: (forest) => treeliteCheckpoint(forest, { comparison: ">" }),
    goesLeft: atMost,
  },
  {
    name: "Treelite, doubles and >=",
    type: "treelite_checkpoint",
    precision: "double",
    categories: false,
    vectors: false,
    write: (forest) => treeliteCheckpoint(forest, { comparison: ">=" }),
    goesLeft: less,
  },
];

function sums(forest: Forest, rows: Float32Array): number[][] {
  const count = rows.length / forest.features;
  const found = new MarginComputer(forest).compute(rows, forest.features, 0, count);
  return Array.from({ length: count }, (_, i) => [
    ...found.subarray(i * forest.groups, (i + 1) * forest.groups),
  ]);
}

describe.each(formats)("a model in the format $name", ({ type, write, goesLeft, ...shape }) => {
  test("gives any row the sums of an evaluator that follows nested nodes", () => {
    const any = anyForest(shape).chain((forest) => fc.tuple(fc.constant(forest), anyRows(forest.features)));
    fc.assert(
      fc.property(any, ([plain, rows]) => {
        const bytes = write(plain);
        expect(detectModelType(bytes)).toBe(type);
        const forest = readForest(bytes, type, { allowUnknownFields: false, rounds: undefined });
        const add = forest.single ? single : double;
        const expected = Array.from({ length: rows.length / plain.features }, (_, i) =>
          sumsOf(plain, rows.subarray(i * plain.features, (i + 1) * plain.features), goesLeft, add),
        );
        // Zeros of both signs are equal.
        expect(sums(forest, rows).flat().map(plus)).toEqual(expected.flat().map(plus));
      }),
      { numRuns: 15 },
    );
  });
});

const plus = (value: number) => value + 0;

describe("answers of tree models", () => {
  /** What python/make_fixtures.py and python/make_lightgbm_fixtures.py wrote. */
  interface Case {
    readonly files: readonly string[];
    readonly objective: string;
    readonly features: number;
    readonly groups: number;
    readonly rows: readonly (number | null)[];
    readonly margins?: readonly number[];
    readonly scores: readonly number[];
    readonly firstThreeRounds?: readonly number[];
    readonly contributions?: readonly number[];
  }

  const folder = new URL("../fixtures/", import.meta.url);

  const cases = ["expected.json", "lightgbm-expected.json"].flatMap((file): readonly Case[] =>
    JSON.parse(readFileSync(new URL(file, folder), "utf8")),
  );

  const everyFile = cases.flatMap((one) =>
    one.files.map((file) => ({ ...one, file, model: new URL(file, folder) })),
  );

  const withMargins = everyFile.filter(({ margins }) => margins !== undefined);

  const withContributions = everyFile.filter(({ contributions }) => contributions !== undefined);

  const rowsOf = ({ rows }: Case) => Float32Array.from(rows, (value) => value ?? Number.NaN);

  /** Largest difference, relative to numbers above 1. */
  function difference(got: ArrayLike<number>, expected: readonly number[]): number {
    expect(got.length).toBe(expected.length);
    return expected.reduce(
      (most, value, i) => Math.max(most, Math.abs(got[i]! - value) / Math.max(1, Math.abs(value))),
      0,
    );
  }

  /** Sums of leaves as the library has them: LightGBM's have double precision. */
  const sumsOf = ({ file }: { file: string }, sums: readonly number[]) =>
    file.startsWith("lightgbm") ? [...sums] : sums.map(Math.fround);

  describe.each(everyFile)("the model $file ($objective)", (one) => {
    test("scores rows as its library does", () => {
      const model = new TreeModel({ model: one.model });
      expect(model.features).toBe(one.features);
      expect(model.columns).toBe(one.groups);
      expect(difference(model.predict(rowsOf(one)), one.scores)).toBeLessThan(1e-6);
    });

    test("scores single rows as it scores them together", () => {
      const model = new TreeModel({ model: one.model });
      const rows = rowsOf(one);
      const together = model.predict(rows);
      for (let row = 0; row < rows.length / one.features; row++) {
        const alone = model.predict(rows.subarray(row * one.features, (row + 1) * one.features));
        expect([...alone]).toEqual([...together.subarray(row * one.groups, (row + 1) * one.groups)]);
      }
    });
  });

  describe.each(withMargins)("the model $file ($objective), whose library tells its sums", (one) => {
    test("has exactly these sums of leaves", () => {
      const margins = (rounds: number | undefined) => {
        const forest = openForest({ model: one.model, ...(rounds === undefined ? {} : { rounds }) });
        const rows = rowsOf(one);
        const count = rows.length / one.features;
        return new MarginComputer(forest)
          .compute(rows, one.features, 0, count)
          .subarray(0, count * forest.groups);
      };
      if (one.file.startsWith("dart")) {
        // XGBoost adds the trees of DART through an intermediate sum.
        expect(difference(margins(undefined), one.margins!)).toBeLessThan(1e-6);
        expect(difference(margins(3), one.firstThreeRounds!)).toBeLessThan(1e-6);
      } else if (!one.objective.startsWith("multi:") && one.objective !== "binary:hinge") {
        expect([...margins(undefined)]).toEqual(sumsOf(one, one.margins!));
        expect([...margins(3)]).toEqual(sumsOf(one, one.firstThreeRounds!));
      }
    });
  });

  describe.each(withContributions)("the model $file ($objective), whose library explains rows", (one) => {
    test("explains them as its library does", () => {
      const model = new TreeModel({ model: one.model, treeShap: true });
      const explained = model.explain(rowsOf(one));
      expect(difference(explained, one.contributions!)).toBeLessThan(1e-5);
    });
  });

  test("explanations of a forest that averages its trees add up to its scores", () => {
    const one = cases.find(({ files }) => files.includes("random-forest.tl"))!;
    const model = new TreeModel({ model: new URL("random-forest.tl", folder), treeShap: true });
    const explained = model.explain(rowsOf(one));
    const width = one.features + 1;
    const sums = one.scores.map((_, i) =>
      explained.subarray(i * width, (i + 1) * width).reduce((a, b) => a + b, 0),
    );
    expect(difference(sums, one.scores)).toBeLessThan(1e-6);
  });
});

describe("a file of LightGBM", () => {
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
      for (const category of [0, 2, 32, 64, -1, Number.NaN, 1e9])
        expect(margin([10, category, 0])).toBe(-0.25);
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
      const model = new TreeModel({
        model: Buffer.from(one.replace("end of trees", `${second}end of trees`)),
      });
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
      [
        "threshold=40.500000000000007 0",
        "threshold=40.5 7",
        /expected a categorical split from 0 to 0, got 7/,
      ],
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
});
