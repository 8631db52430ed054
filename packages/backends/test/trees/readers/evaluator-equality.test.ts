import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Forest } from "../../../src/trees/forest.js";
import { MarginComputer } from "../../../src/trees/margins.js";
import type { ModelType } from "../../../src/trees/read-forest.js";
import { detectModelType, readForest } from "../../../src/trees/read-forest.js";
import { anyForest, anyRows, type ForestShape, type PlainForest, sumsOf } from "../support/plain-forest.js";
import { lightgbmText, treeliteCheckpoint, ubjson, xgboostDocument } from "../support/write-models.js";

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
