import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type OnnxAttribute,
  type OnnxNode,
  type OnnxValue,
  onnxModel,
} from "../../../../examples/onnx-writer/onnx-writer.js";
import { identityOnnx, withMetadata } from "../../../../test/support/onnx-models.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { namesOfText } from "../../src/onnxruntime/class-names.js";
import { describeOnnxModel } from "../../src/onnxruntime/describe-onnx-model.js";

const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

const labelsOf = (model: string | Uint8Array) =>
  Object.fromEntries(
    describeOnnxModel(model).outputs.flatMap(({ name, labels }) =>
      labels === undefined ? [] : [[name, labels]],
    ),
  );

const scoring = (classes: number, metadata: Readonly<Record<string, string>>) =>
  withMetadata(identityOnnx("FLOAT", ["batch", classes]), metadata);

describe("class names in the metadata of an ONNX file", () => {
  it.each([
    ["names", `{0: 'tench', 1: "jack-o'-lantern", 2: 'caf\\xe9'}`, ["tench", "jack-o'-lantern", "café"]],
    ["names", "['a', 'b', 'c']", ["a", "b", "c"]],
    ["classes", '["a", "\\ud83d\\udc08", "c\\"d"]', ["a", "🐈", 'c"d']],
    ["id2label", '{"2": "c", "0": "a", "1": "b"}', ["a", "b", "c"]],
    ["labels", "a\nb, with a comma\nc\n", ["a", "b, with a comma", "c"]],
    ["class_names", "a,b , c", ["a", "b", "c"]],
    ["names", "{0: '__proto__', 1: 'constructor', 2: ''}", ["__proto__", "constructor", ""]],
  ])("reads %s = %s", (key, text, names) => {
    expect(labelsOf(scoring(3, { [key]: text }))).toEqual({ y: names });
  });

  it.each([
    "{0: 'a', 2: 'c', 3: 'd'}",
    "{0: 'a', 1: 'b', 'x': 'c'}",
    "{0: 'a', 1: 'b', 4294967295: 'c'}",
    "{0: 'a', 1: 'b', 2: 3}",
    "[['a'], ['b'], ['c']]",
    "['a', 'b', 'c",
    "array(['a', 'b', 'c'])",
    "['a', 'b']",
    "a",
    "",
  ])("leaves out %s", (text) => {
    expect(labelsOf(scoring(3, { names: text }))).toEqual({});
  });

  it("takes the list that fits the output, whatever key has another one", () => {
    expect(labelsOf(scoring(2, { names: "['a', 'b', 'c']", labels: "yes,no" }))).toEqual({
      y: ["yes", "no"],
    });
  });

  it("labels only an output that has one element of a row for each name", () => {
    const names = { names: "['a', 'b', 'c']" };
    const of = (dims: (number | string)[]) => labelsOf(withMetadata(identityOnnx("FLOAT", dims), names));
    expect(of([1, 3])).toEqual({ y: ["a", "b", "c"] });
    expect(of(["n", 3, 1, 1])).toEqual({ y: ["a", "b", "c"] });
    expect(of([3])).toEqual({ y: ["a", "b", "c"] });
    for (const dims of [["n", "k"], ["n", "length", 3], [2, 3], ["n", 7, 100], [], [0]])
      expect(of(dims)).toEqual({});
    expect(labelsOf(withMetadata(identityOnnx("INT64", ["n", 3]), names))).toEqual({});
    const value = (name: string): OnnxValue => ({ name, elemType: "FLOAT", dims: ["n", 3] });
    const boxes = onnxModel({
      name: "two",
      opset: 17,
      inputs: [value("x")],
      outputs: [value("box"), value("scores")],
      nodes: ["box", "scores"].map((output) => ({ op: "Identity", inputs: ["x"], outputs: [output] })),
    });
    expect(labelsOf(withMetadata(boxes, names))).toEqual({});
  });

  it("reads what Python and JSON print of any names", () => {
    const text = fc.uint16Array().map((units) => String.fromCharCode(...units));
    const names = fc.array(text, { minLength: 1 });
    fc.assert(
      fc.property(names, (list) => {
        expect(namesOfText(JSON.stringify(list))).toEqual([list]);
        expect(namesOfText(JSON.stringify({ ...list }))).toEqual([list]);
      }),
    );
    fc.assert(fc.property(text, (broken) => void namesOfText(`{${broken}`)));
  });
});

/** A classifier of scikit-learn as converters write it: an output of labels, and one of scores. */
function classifier(node: OnnxNode, more: { readonly strings?: readonly string[] } = {}): Uint8Array {
  return onnxModel({
    name: "sklearn",
    opset: 17,
    domains: { "ai.onnx.ml": 2 },
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["n", 2] }],
    outputs: [
      { name: "label", elemType: "STRING", dims: ["n"] },
      { name: "probabilities", elemType: "FLOAT", dims: ["n", 3] },
    ],
    nodes: [node],
    initializers: more.strings && [{ name: "classes", dims: [more.strings.length], data: more.strings }],
  });
}

const node = (op: string, attributes: Readonly<Record<string, OnnxAttribute>>, inputs = ["x"]): OnnxNode => ({
  op,
  domain: "ai.onnx.ml",
  inputs,
  outputs: ["label", "probabilities"],
  attributes,
});

describe("class names in the operators of an ONNX file", () => {
  const names = ["cat", "dog", "owl"];
  it.each([
    ["TreeEnsembleClassifier", { classlabels_strings: { strings: names } }],
    ["LinearClassifier", { classlabels_strings: { strings: names } }],
    ["SVMClassifier", { classlabels_strings: { strings: names } }],
    ["ZipMap", { classlabels_strings: { strings: names } }],
    [
      "LabelEncoder",
      { keys_int64s: { ints: [2, 0, 1] }, values_strings: { strings: ["owl", "cat", "dog"] } },
    ],
    ["LabelEncoder", { classes_strings: { strings: names } }],
  ] as const)("reads those of %s", (op, attributes) => {
    expect(labelsOf(classifier(node(op, attributes)))).toEqual({ probabilities: names });
  });

  it("reads the constant from which a label is chosen", () => {
    for (const op of ["ArrayFeatureExtractor", "Gather"]) {
      const model = classifier(node(op, {}, ["classes", "x"]), { strings: names });
      expect(labelsOf(model)).toEqual({ probabilities: names });
    }
  });

  it("takes numbers of classes as names, unless they count from 0", () => {
    const of = (ints: number[]) =>
      labelsOf(classifier(node("TreeEnsembleClassifier", { classlabels_int64s: { ints } })));
    expect(of([3, 5, 8])).toEqual({ probabilities: ["3", "5", "8"] });
    expect(of([0, 1, 2])).toEqual({});
    expect(of([-1, 0, 1])).toEqual({});
  });
});

describe("class names in config.json of Hugging Face", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "class-names-"));
    await mkdir(join(folder, "onnx"));
    await writeFile(join(folder, "onnx/model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
    await writeFile(join(folder, "config.json"), '{"id2label":{"0":"NEGATIVE","1":"POSITIVE"}}');
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("reads them beside the graph, and beside its folder onnx", async () => {
    expect(labelsOf(join(folder, "onnx/model.onnx"))).toEqual({ y: ["NEGATIVE", "POSITIVE"] });
    await writeFile(join(folder, "model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
    expect(labelsOf(join(folder, "model.onnx"))).toEqual({ y: ["NEGATIVE", "POSITIVE"] });
  });

  it.each(["{", "null", "[]", '{"id2label":null}', '{"id2label":["a","b"]}', '{"id2label":{"0":1,"1":2}}'])(
    "does without %s",
    async (config) => {
      const own = await mkdtemp(join(folder, "own-"));
      await writeFile(join(own, "model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
      await writeFile(join(own, "config.json"), config);
      const labels = labelsOf(join(own, "model.onnx"));
      expect(labels).toEqual(config.includes('["a"') ? { y: ["a", "b"] } : {});
    },
  );

  it("does not follow a link out of the model's directory in a repository", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/1/model.onnx": identityOnnx("FLOAT", ["batch_size", 2]),
    });
    await symlink(join(folder, "config.json"), join(models.path, "m/1/config.json"));
    await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger: SILENT });
    await triton.ready().catch(() => {});
    const [row] = await triton.service.repositoryIndex(false);
    expect(row?.reason).toMatch(/config\.json leads out of .* through a symbolic link/);
  });
});
