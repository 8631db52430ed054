import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { compiled } from "../support/compiled.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const program = `import { Triton } from "@tritonjs/core";
const triton = new Triton({ modelRepository: "models" });
const { probabilities } = await triton.infer("classifier", { features: new Float32Array(4) });
const data: Float32Array = probabilities.data;
// @ts-expect-error: an input that the model does not have
await triton.infer("classifier", { picture: new Float32Array(4) });
export { data };
`;

it("the types command types triton.infer() for the models of a repository", async () => {
  await using folder = await TemporaryFolder.create({ "classifier/1/model.onnx": sampleModel() });
  const terminal = new TestTerminal();
  expect(await run(["types", folder.path], terminal)).toBe(0);
  expect(await compiled({ "models.d.ts": terminal.output, "program.mts": program })).toBe("");
});

const bindingProgram = `import { Triton } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { tensorflow } from "@tritonjs/backends/tensorflow";
const triton = new Triton();
const classifier = triton.bind({ modelName: "classifier", inferFunc: onnxruntime({ model: "classifier.onnx" }) });
const { probabilities } = await classifier.inferSample({ features: new Float32Array(4) });
const data: Float32Array = probabilities.data;
// @ts-expect-error: an input that the model does not have
await classifier.inferSample({ picture: new Float32Array(4) });
// @ts-expect-error: an output that the model does not have
(await classifier.inferSample({ features: new Float32Array(4) })).picture;
const ids = triton.bind({ modelName: "token-ids", inferFunc: onnxruntime({ model: "token-ids.onnx" }) });
const { y: id } = await ids.infer({ x: [[1n, 2]] });
const bigints: BigInt64Array = id.data;
// @ts-expect-error: INT64 is a BigInt64Array
await ids.infer({ x: new Int32Array(2) });
const words = triton.bind({ modelName: "words", inferFunc: onnxruntime({ model: "b.onnx" }) });
const text: string = (await words.inferSample({ x: "hi" })).y.text();
const flowers = triton.bind({ modelName: "flowers-graph", inferFunc: tensorflow({ model: "model.json" }) });
// @ts-expect-error: an input that the model does not have
await flowers.inferSample({ picture: new Float32Array(4) });
export { data, bigints, text };
`;

it("the types command types triton.bind() for model files", async () => {
  await using folder = await TemporaryFolder.create({
    "classifier.onnx": sampleModel(),
    "token-ids/1/model.onnx": identityOnnx("INT64", ["batch", -1]),
    "b.onnx": identityOnnx("STRING", ["batch", 1]),
  });
  const terminal = new TestTerminal();
  const paths = ["classifier.onnx", "token-ids/1/model.onnx"].map((name) => join(folder.path, name));
  const named = `words=${join(folder.path, "b.onnx")}`;
  const graphModel = join(repositoryRoot, "examples/tfjs-model/models/flowers-graph/1/model.json");
  expect([await run(["types", ...paths, named, graphModel], terminal), terminal.errors]).toEqual([0, ""]);
  expect(terminal.output).toContain(
    '{ readonly name: "x"; readonly dtype: "INT64"; readonly shape: readonly [-1] }',
  );
  expect(await compiled({ "models.d.ts": terminal.output, "program.mts": bindingProgram })).toBe("");
});

/** A model of LightGBM with a single leaf. */
const lightgbmLeaf = `tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=5
objective=regression

Tree=0
num_leaves=1
num_cat=0
leaf_value=0.5

end of trees
`;

it("the types command types tree models, whose files have the number of features and of scores", async () => {
  const fixtures = join(repositoryRoot, "packages/backends/test/trees/fixtures");
  const names = ["binary.json", "multiclass.ubj", "forest.model", "random-forest.tl"];
  await using folder = await TemporaryFolder.create({ "leaf.txt": lightgbmLeaf });
  const terminal = new TestTerminal();
  expect([
    await run(
      ["types", ...names.map((name) => join(fixtures, name)), join(folder.path, "leaf.txt")],
      terminal,
    ),
    terminal.errors,
  ]).toEqual([0, ""]);
  const input = '{ readonly name: "input__0"; readonly dtype: "FP32"; readonly shape: readonly [6] }';
  const output = (columns: number) =>
    `{ readonly name: "output__0"; readonly dtype: "FP32"; readonly shape: readonly [${columns}] }`;
  for (const [model, columns] of [
    ["binary", 1],
    ["multiclass", 3],
    ["forest", 1],
    ["random-forest", 3],
    ["leaf", 1],
  ] as const) {
    const start = terminal.output.indexOf(`"${model}": {`);
    const typed = terminal.output.slice(start, terminal.output.indexOf("};", start));
    expect([model, typed.includes(input), typed.includes(output(columns))]).toEqual([model, true, true]);
  }
});

it("the types command reports files that it cannot read and names that are taken", async () => {
  await using folder = await TemporaryFolder.create({
    "a/m.onnx": sampleModel(),
    "b/m.onnx": sampleModel(),
    "none.onnx": "not a model",
    "my model.onnx": sampleModel(),
    "weights.pt": "other",
  });
  const at = (name: string) => join(folder.path, name);
  const terminal = new TestTerminal();
  const files = ["a/m.onnx", "b/m.onnx", "none.onnx", "my model.onnx"].map(at);
  expect(await run(["types", ...files], terminal)).toBe(1);
  expect(terminal.output.match(/^ {2}".*": .*$/gm)).toEqual([
    '  "m": {',
    '  "none": unknown;',
    '  "my model": unknown;',
  ]);
  expect(terminal.errors).toContain(
    `${at("b/m.onnx")}: error: two models have the name 'm': name one with <name>=<file>`,
  );
  expect(terminal.errors).toMatch(/none\.onnx: error: .*none\.onnx/);
  expect(terminal.errors).toMatch(/my model\.onnx: error: .*Model name can only contain/);
  const expected =
    "expected a model repository, an .onnx file, a model.json of TensorFlow.js, the directory of a SavedModel, or a tree " +
    "model (.json, .ubj or .model of XGBoost, .txt of LightGBM, .tl of Treelite)";
  for (const [name, got] of [
    ["weights.pt", "another file"],
    ["nowhere.onnx", "a path that does not exist"],
  ] as const) {
    const other = new TestTerminal();
    expect(await run(["types", at(name)], other)).toBe(1);
    expect(other.errors).toContain(`cannot read models of '${at(name)}': ${expected}, got ${got}`);
  }
});

it("the types command writes types of the models that it can read and reports the others", async () => {
  await using folder = await TemporaryFolder.create({
    "classifier/1/model.onnx": sampleModel(),
    "broken/config.pbtxt": "no config",
  });
  const terminal = new TestTerminal();
  expect(await run(["types", folder.path], terminal)).toBe(1);
  expect(terminal.output).toContain('"classifier": {');
  expect(terminal.output).toMatch(/Nothing is known of this model: .*\n {2}"broken": unknown;/);
  expect(terminal.errors).toMatch(/broken\/config\.pbtxt:1:\d+: error: /);
  const out = join(folder.path, "models.d.ts");
  await run(["types", folder.path, "--out", out], terminal);
  expect(terminal.output).toBe(await readFile(out, "utf8"));
});
