import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import fc from "fast-check";
import { rolldown } from "rolldown";
import { describe, expect, it, test } from "vitest";
import { openTriton, serveAndConnect } from "../../../../test/e2e/support/open-triton.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { TREE_KERNEL } from "../../src/trees/kernel-bytes.js";
import { MarginComputer } from "../../src/trees/margins.js";
import { readForest } from "../../src/trees/read-forest.js";
import { Explainer } from "../../src/trees/scorer.js";
import { anyForest, anyRows, type ForestShape, type PlainNode } from "./support/plain-forest.js";
import { treeliteCheckpoint, xgboostDocument } from "./support/write-models.js";

const fixtures = join(repositoryRoot, "packages/backends/test/trees/fixtures");

const fixture = (name: string) => readFile(join(fixtures, name));

interface Case {
  readonly files: readonly string[];
  readonly rows: readonly (number | null)[];
  readonly scores: readonly number[];
  readonly contributions?: readonly number[];
}

const cases: readonly Case[] = JSON.parse(await readFile(join(fixtures, "expected.json"), "utf8"));

const caseOf = (file: string) => cases.find(({ files }) => files.includes(file))!;

const rowsOf = ({ rows }: Case) =>
  Array.from({ length: rows.length / 6 }, (_, i) =>
    rows.slice(6 * i, 6 * i + 6).map((value) => value ?? Number.NaN),
  );

/** A configuration of the backend as it is written for Triton. */
function config(parameters: Readonly<Record<string, string>>, columns = 1, more = ""): string {
  const lines = Object.entries(parameters).map(
    ([key, value]) => `{ key: "${key}" value: { string_value: "${value}" } }`,
  );
  return `backend: "fil"
max_batch_size: 64
input [ { name: "input__0" data_type: TYPE_FP32 dims: [ 6 ] } ]
output [ { name: "output__0" data_type: TYPE_FP32 dims: [ ${columns} ] } ${more} ]
instance_group [ { kind: KIND_AUTO } ]
parameters [ ${lines.join(", ")} ]
dynamic_batching {}`;
}

async function serving(
  files: RepositoryFiles,
  run: (triton: Triton, log: string[]) => Promise<void>,
): Promise<void> {
  await using repository = await RepositoryOnDisk.create(files);
  const log: string[] = [];
  await using triton = new Triton({
    logger: { debug() {}, info() {}, error() {}, warn: (text) => void log.push(text) },
    extensions: [withRepository({ modelRepository: repository.path, exitOnError: false })],
  });
  await triton.ready().catch(() => {});
  await run(triton, log);
}

const classifier = { model_type: "xgboost_json", is_classifier: "true", threshold: "0.5" };

describe("a repository of the backend fil", () => {
  it("serves each format under its usual file name, and answers classes and scores", async () => {
    const files = {
      "legacy/config.pbtxt": config({ is_classifier: "true", threshold: "0.5" }),
      "legacy/1/xgboost.model": await fixture("binary.model"),
      "json/config.pbtxt": config({ ...classifier, predict_proba: "true" }),
      "json/1/xgboost.json": await fixture("binary.json"),
      "ubj/config.pbtxt": config({ model_type: "xgboost_ubj", is_classifier: "false" }),
      "ubj/1/xgboost.ubj": await fixture("binary.ubj"),
      "checkpoint/config.pbtxt": config(
        { model_type: "treelite_checkpoint", is_classifier: "true", predict_proba: "true" },
        3,
      ),
      "checkpoint/1/checkpoint.tl": await fixture("random-forest.tl"),
      "classes/config.pbtxt": config({ model_type: "xgboost_json", is_classifier: "true" }),
      "classes/1/xgboost.json": await fixture("multiclass.json"),
    };
    await serving(files, async (triton) => {
      const [binary, forest, multi] = [
        caseOf("binary.json"),
        caseOf("random-forest.tl"),
        caseOf("multiclass.json"),
      ];
      const answer = async (name: string, one: Case) => {
        const { output__0 } = await triton.infer(name, { input__0: rowsOf(one) });
        return { shape: output__0!.shape, data: [...(output__0!.data as Float32Array)] };
      };
      const scores = binary.scores.map((score) => expect.closeTo(score, 6));
      // Triton leaves out dimensions of 1.
      expect(await answer("json", binary)).toEqual({ shape: [16], data: scores });
      expect(await answer("ubj", binary)).toEqual({ shape: [16], data: scores });
      expect(await answer("legacy", binary)).toEqual({
        shape: [16],
        data: binary.scores.map((score) => (score > 0.5 ? 1 : 0)),
      });
      expect(await answer("checkpoint", forest)).toEqual({
        shape: [16, 3],
        data: forest.scores.map((score) => expect.closeTo(score, 6)),
      });
      const best = Array.from({ length: 16 }, (_, i) => {
        const row = multi.scores.slice(3 * i, 3 * i + 3);
        return row.indexOf(Math.max(...row));
      });
      expect(await answer("classes", multi)).toEqual({ shape: [16], data: best });
    });
  });

  it("answers both classes of a binary model when its output has two columns, and moves the threshold", async () => {
    const files = {
      "both/config.pbtxt": config({ ...classifier, predict_proba: "true" }, 2),
      "both/1/xgboost.json": await fixture("binary.json"),
      "strict/config.pbtxt": config({ ...classifier, threshold: "0.8" }),
      "strict/1/xgboost.json": await fixture("binary.json"),
    };
    await serving(files, async (triton) => {
      const one = caseOf("binary.json");
      const both = (await triton.infer("both", { input__0: rowsOf(one) })).output__0!;
      expect(both.shape).toEqual([16, 2]);
      for (const [i, score] of one.scores.entries()) {
        expect(both.get(i, 0)).toBeCloseTo(1 - score, 6);
        expect(both.get(i, 1)).toBeCloseTo(score, 6);
      }
      const strict = (await triton.infer("strict", { input__0: rowsOf(one) })).output__0!;
      expect([...(strict.data as Float32Array)]).toEqual(one.scores.map((score) => (score > 0.8 ? 1 : 0)));
    });
  });

  it("explains rows in the output treeshap_output", async () => {
    const explanation = `, { name: "treeshap_output" data_type: TYPE_FP32 dims: [ 3, 7 ] reshape: { shape: [ 21 ] } }`;
    const files = {
      "m/config.pbtxt": config(
        { model_type: "xgboost_json", is_classifier: "true", predict_proba: "true" },
        3,
        explanation,
      ),
      "m/1/xgboost.json": await fixture("multiclass.json"),
    };
    await serving(files, async (triton) => {
      const one = caseOf("multiclass.json");
      const { treeshap_output: parts } = await triton.infer("m", { input__0: rowsOf(one) });
      expect(parts!.shape).toEqual([16, 3, 7]);
      for (const [i, value] of [...(parts!.data as Float32Array)].entries())
        expect(value).toBeCloseTo(one.contributions![i]!, 4);
    });
  });

  it("completes a configuration from the file, which Triton's backend does not", async () => {
    const parameters = config(classifier).slice(config(classifier).indexOf("parameters"));
    const files = {
      "m/config.pbtxt": `backend: "fil" max_batch_size: 8 ${parameters}`,
      "m/1/xgboost.json": await fixture("binary.json"),
    };
    await serving(files, async (triton) => {
      expect(await serviceOf(triton).modelConfig("m", "")).toMatchObject({
        input: [{ name: "input__0", dataType: "TYPE_FP32", dims: [6] }],
        output: [{ name: "output__0", dataType: "TYPE_FP32", dims: [1] }],
      });
    });
  });

  it("warns of parameters that Triton has removed, and still reads output_class", async () => {
    const files = {
      "m/config.pbtxt": config({
        model_type: "xgboost_json",
        output_class: "true",
        algo: "ALGO_AUTO",
        storage_type: "AUTO",
      }),
      "m/1/xgboost.json": await fixture("binary.json"),
    };
    await serving(files, async (triton, log) => {
      const one = caseOf("binary.json");
      const { output__0 } = await triton.infer("m", { input__0: rowsOf(one) });
      expect([...(output__0!.data as Float32Array)]).toEqual(
        one.scores.map((score) => (score > 0.5 ? 1 : 0)),
      );
      expect(log.filter((line) => line.includes("25.09"))).toEqual([
        "model 'm': The `algo` parameter has been removed in 25.09 release. Use `layout` instead.",
        "model 'm': The `output_class` parameter has been removed in 25.09 release. Use `is_classifier` instead.",
        "model 'm': The `storage_type` parameter has been removed in 25.09 release.",
      ]);
    });
  });

  it("runs in worker threads with the parameter isolation, and refuses processes", async () => {
    const files = {
      "m/config.pbtxt": config({ model_type: "xgboost_json", is_classifier: "false", isolation: "worker" }),
      "m/1/xgboost.json": await fixture("binary.json"),
      "p/config.pbtxt": config({ ...classifier, isolation: "process" }),
      "p/1/xgboost.json": await fixture("binary.json"),
    };
    await serving(files, async (triton) => {
      const one = caseOf("binary.json");
      const { output__0 } = await triton.infer("m", { input__0: rowsOf(one) });
      expect(output__0!.shape).toEqual([16]);
      expect([...(output__0!.data as Float32Array)]).toEqual(
        one.scores.map((score) => expect.closeTo(score, 6)),
      );
      const diagnosis = await serviceOf(triton).repositoryIndex(false);
      expect(diagnosis.find(({ name }) => name === "p")).toMatchObject({
        state: "UNAVAILABLE",
        reason: expect.stringContaining(
          "model 'p'.isolation: expected inline or worker, which this model can run in, got 'process'",
        ),
      });
    });
  });

  it("is a step of an ensemble, before another model", async () => {
    const files = {
      "scores/config.pbtxt": config({ model_type: "xgboost_json", is_classifier: "false" }),
      "scores/1/xgboost.json": await fixture("binary.json"),
      "percent/config.pbtxt": `backend: "javascript" max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
      "percent/1/model.mjs": `export default (requests) =>
  requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => 100 * value) }));`,
      "rated/1/": "",
      "rated/config.pbtxt": `platform: "ensemble" max_batch_size: 64

input [ { name: "row" data_type: TYPE_FP32 dims: [ 6 ] } ]

output [ { name: "rating" data_type: TYPE_FP32 dims: [ 1 ] } ]

ensemble_scheduling { step [
  { model_name: "scores" model_version: -1
    input_map { key: "input__0" value: "row" } output_map { key: "output__0" value: "score" } },
  { model_name: "percent" model_version: -1
    input_map { key: "x" value: "score" } output_map { key: "y" value: "rating" } }
] }`,
    };
    await serving(files, async (triton) => {
      const one = caseOf("binary.json");
      const { rating } = await triton.infer("rated", { row: rowsOf(one) });
      expect([...(rating!.data as Float32Array)]).toEqual(
        one.scores.map((score) => expect.closeTo(100 * score, 4)),
      );
    });
  });

  it("answers clients of both protocols, in binary and in JSON", async () => {
    await using repository = await RepositoryOnDisk.create({
      "m/config.pbtxt": config({ ...classifier, predict_proba: "true" }, 3),
      "m/1/xgboost.json": await fixture("multiclass.json"),
    });
    const triton = openTriton({ modelRepository: repository.path });
    const clients = await serveAndConnect(triton);
    const one = caseOf("multiclass.json");
    const complete = rowsOf(one).findIndex((row) => row.every((value) => !Number.isNaN(value)));
    const expected = one.scores.slice(3 * complete, 3 * complete + 3);
    for (const client of clients) {
      const elements = rowsOf(one)[complete]!;
      const input = { name: "input__0", datatype: "FP32", shape: [1, 6], elements } as const;
      const { outputs } = await client.infer({ model: "m", inputs: [input] });
      expect([client.way, outputs]).toEqual([
        client.way,
        [
          {
            name: "output__0",
            datatype: "FP32",
            shape: [1, 3],
            elements: expected.map((score) => expect.closeTo(score, 6)),
          },
        ],
      ]);
    }
  });

  it.each([
    [
      { model_type: "onnx", is_classifier: "true" },
      {},
      /onnx not recognized as a valid serialization format\./,
    ],
    [{ model_type: "xgboost_json" }, {}, /Required parameter is_classifier not found in config/],
    [{ is_classifier: "yes" }, {}, /Expected 'true' or 'false' for parameter 'is_classifier', got: 'yes'/],
    [{ ...classifier, threshold: "high" }, {}, /Bad input for parameter threshold/],
    [
      { is_classifier: "true" },
      { dropped: true },
      /unable to find '.*xgboost\.model' for model instance 'm'/,
    ],
    [
      classifier,
      { content: "{}" },
      /cannot load .*xgboost\.json: XGBoost model: expected the field 'learner', got none/,
    ],
    [classifier, { columns: 3 }, /tensor 'output__0'.*\[-1,1\]/],
    [{ ...classifier, predict_proba: "true" }, { columns: 3 }, /tensor 'output__0'/],
  ])(
    "says why a model with %j does not load",
    async (parameters, {
      dropped,
      content,
      columns,
    }: { dropped?: boolean; content?: string; columns?: number }, reason) => {
      const files = {
        "m/config.pbtxt": config(parameters, columns),
        ...(dropped
          ? { "m/1/other": "" }
          : { "m/1/xgboost.json": content ?? (await fixture("binary.json")) }),
      };
      await serving(files, async (triton) => {
        expect(await outcomeOf(triton.infer("m", { input__0: [[0, 0, 0, 0, 0, 0]] }))).not.toBe("done");
        const [row] = await serviceOf(triton).repositoryIndex(false);
        expect(row).toMatchObject({ state: "UNAVAILABLE", reason: expect.stringMatching(reason) });
      });
    },
  );
});

describe("the file of the kernel", () => {
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
});

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

describe("explanations", () => {
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
});
