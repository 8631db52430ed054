import fc from "fast-check";
import { expect, test } from "vitest";
import { MarginComputer } from "../../../src/trees/margins.js";
import { readForest } from "../../../src/trees/read-forest.js";
import { Explainer } from "../../../src/trees/scorer.js";
import { anyForest, anyRows, type ForestShape, type PlainNode } from "../support/plain-forest.js";
import { treeliteCheckpoint, xgboostDocument } from "../support/write-models.js";

const bytesOf = (document: unknown) => Buffer.from(JSON.stringify(document));

/** A tree whose nodes have the numbers of rows of a training: those of a node's children add up to its own. */
function counted(node: PlainNode): PlainNode {
  if ("leaf" in node) return node;
  const [left, right] = [counted(node.left), counted(node.right)];
  return { ...node, left, right, cover: left.cover + right.cover };
}

const shapes: readonly (readonly [string, ForestShape, "xgboost_json" | "treelite_checkpoint"])[] = [
  ["XGBoost", { precision: "single", categories: true, vectors: false }, "xgboost_json"],
  ["Treelite with vectors", { precision: "double", categories: false, vectors: true }, "treelite_checkpoint"],
];

test.each(shapes)(
  "the parts of each feature and the expected sum add up to the sum of a row: %s",
  (_, shape, type) => {
    const any = anyForest(shape).chain((forest) => fc.tuple(fc.constant(forest), anyRows(forest.features)));
    fc.assert(
      fc.property(any, ([plain, rows]) => {
        const trained = { ...plain, trees: plain.trees.map(counted) };
        const bytes =
          type === "xgboost_json" ? bytesOf(xgboostDocument(trained)) : treeliteCheckpoint(trained);
        const forest = readForest(bytes, type, { allowUnknownFields: false, rounds: undefined });
        const { features, groups } = forest;
        const explainer = new Explainer(forest);
        const count = rows.length / features;
        const sums = [...new MarginComputer(forest).compute(rows, features, 0, count)];
        for (let row = 0; row < count; row++) {
          const parts = explainer.explain(rows, features, row);
          for (let group = 0; group < groups; group++) {
            const own = parts.subarray(group * (features + 1), (group + 1) * (features + 1));
            const total = own.reduce((sum, part) => sum + part, 0);
            // Leaves are between -100 and 100, and there are few trees: single precision adds them to about 1e-4.
            expect(Math.abs(total - sums[row * groups + group]!)).toBeLessThan(2e-4);
          }
        }
      }),
      { numRuns: 40 },
    );
  },
);
