import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { TreeModel } from "../../../src/trees/index.js";
import { MarginComputer } from "../../../src/trees/margins.js";
import { openForest } from "../../../src/trees/tree-model.js";

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
