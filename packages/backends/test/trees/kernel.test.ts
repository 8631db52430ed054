import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { describe, expect, test } from "vitest";
import { TREE_KERNEL } from "../../src/trees/kernel-bytes.js";
import { MarginComputer } from "../../src/trees/margins.js";
import { readForest } from "../../src/trees/read-forest.js";
import { xgboostDocument } from "./support/write-models.js";

describe("the kernel", () => {
  test("is what its script assembles", () => {
    const folder = mkdtempSync(join(tmpdir(), "tritonjs-kernel-"));
    try {
      const written = join(folder, "kernel-bytes.ts");
      execFileSync(process.execPath, [
        fileURLToPath(new URL("../../scripts/write-tree-kernel.mjs", import.meta.url)),
        written,
      ]);
      const checkedIn = readFileSync(new URL("../../src/trees/kernel-bytes.ts", import.meta.url), "utf8");
      expect(readFileSync(written, "utf8")).toBe(checkedIn);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("is small enough for browsers to compile it on their main thread", () => {
    expect(Buffer.from(TREE_KERNEL, "base64").length).toBeLessThan(4096);
  });

  test("gives each row of several blocks the sum that it has alone", () => {
    const file = new URL("fixtures/deep.json", import.meta.url);
    const forest = readForest(readFileSync(file), "xgboost_json", {
      allowUnknownFields: false,
      rounds: undefined,
    });
    const { features } = forest;
    const rows = Float32Array.from({ length: 150 * features }, (_, i) => Math.sin(i) * 4);
    const together = new MarginComputer(forest).compute(rows, features, 0, 150).slice(0, 150);
    const alone = new MarginComputer(forest);
    expect([...together]).toEqual(
      Array.from({ length: 150 }, (_, row) => alone.compute(rows, features, row, 1)[0]),
    );
  });

  test("answers the base score of a model without trees", () => {
    const document = xgboostDocument({ features: 2, groups: 1, trees: [] });
    document.learner.learner_model_param.base_score = "5E-1";
    const bytes = Buffer.from(JSON.stringify(document));
    const forest = readForest(bytes, "xgboost_json", { allowUnknownFields: false, rounds: undefined });
    expect([...new MarginComputer(forest).compute(new Float32Array(18), 2, 0, 9).slice(0, 9)]).toEqual(
      new Array(9).fill(0.5),
    );
  });

  test("has few rows in a block for a model of many features, with the same sums", () => {
    const features = 5000;
    const trees = Array.from({ length: features }, (_, feature) => ({
      feature,
      threshold: 0.5,
      missingGoLeft: true,
      left: { leaf: [1], cover: 1 },
      right: { leaf: [0], cover: 1 },
      cover: 2,
    }));
    const bytes = Buffer.from(JSON.stringify(xgboostDocument({ features, groups: 1, trees })));
    const forest = readForest(bytes, "xgboost_json", { allowUnknownFields: false, rounds: undefined });
    expect(forest.blockRows).toBe(8);
    const rows = Float32Array.from({ length: 11 * features }, (_, i) =>
      i % features <= Math.floor(i / features) ? 0 : 1,
    );
    expect([...new MarginComputer(forest).compute(rows, features, 0, 11).slice(0, 11)]).toEqual(
      Array.from({ length: 11 }, (_, row) => row + 1),
    );
  });
});

test("browsers get TreeModel without a module of Node.js", async () => {
  const build = await rolldown({
    input: fileURLToPath(new URL("../../dist/trees/tree-model.js", import.meta.url)),
    platform: "browser",
  });
  const { output } = await build.generate({ format: "iife", name: "trees" });
  await build.close();
  expect(output[0].imports).toEqual([]);
  expect(/["']node:/.test(output[0].code)).toBe(false);
});
