import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { batch, sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { readPrototxt } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import { afterEach, describe, expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { modelOfConfig } from "../../src/types/typed-model.js";
import { typesText } from "../../src/types/write-types.js";
import { compiled } from "../support/compiled.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const program = `import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
const triton = new Triton({ extensions: [repository({ modelRepository: "models" })] });
const { probabilities } = await triton.infer("classifier", { features: new Float32Array(4) });
const data: Float32Array = probabilities.data;
// @ts-expect-error: an input that the model does not have
await triton.infer("classifier", { picture: new Float32Array(4) });
export { data };
`;

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

describe("types command", () => {
  it("the types command types triton.infer() for the models of a repository", async () => {
    await using folder = await TemporaryFolder.create({ "classifier/1/model.onnx": sampleModel() });
    const terminal = new TestTerminal();
    expect(await run(["types", folder.path], terminal)).toBe(0);
    expect(await compiled({ "models.d.ts": terminal.output, "program.mts": program })).toBe("");
  });

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
});

describe("types command server", () => {
  let close = async () => {};
  const programs: Record<string, string> = {};

  /** The last test compiles all programs at once: each start of the compiler takes 0.4 s. */
  function compileLater(folder: string, files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) programs[`${folder}/${name}`] = text;
  }

  afterEach(() => close());

  async function serveModels() {
    const triton = new Triton();
    triton.bind({
      modelName: "Iris-v1",
      inputs: [
        { name: "measure ments", dtype: "FP32", shape: [4] },
        { name: "bias", dtype: "FP32", shape: [1], optional: true },
      ],
      outputs: [{ name: "scores", dtype: "FP32", shape: [3] }],
      inferFunc: batch(() => ({ scores: [[1, 2, 3]] })),
    });
    triton.bind({
      modelName: "iris-v1",
      inputs: [{ name: "ids", dtype: "INT64", shape: [-1, 2] }],
      outputs: [{ name: "__proto__", dtype: "BYTES", shape: [1] }],
      inferFunc: sample(() => ({ ["__proto__"]: ["x"] })),
    });
    triton.bind({
      modelName: "countdown",
      inputs: [{ name: "from", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
      inferFunc: async function* ([request]) {
        yield [{ left: [request!.inputs.from.get(0)] }];
      },
      config: { decoupled: true, batching: false },
    });
    triton.bind({
      modelName: "sum",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
      config: { sequence: {}, batching: false },
    });
    triton.bindEnsemble({
      modelName: "both",
      inputs: [{ name: "a", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "b", dtype: "INT32", shape: [1] }],
      steps: [{ modelName: "sum", inputMap: { x: "a" }, outputMap: { y: "b" } }],
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    close = () => triton.close();
    return {
      http: addresses.http!.url,
      grpc: addresses.grpc!.url.replace(/^(grpc:\/\/)?/, "grpc://"),
      token: serviceOf(triton).accessToken!,
    };
  }

  const page = `import { createClient } from "@tritonjs/client/http";
import type { Models } from "./models.js";
import { models } from "./schemas.mjs";
const client = createClient<Models>("http://localhost:8000");
const iris = client.model("Iris-v1");
const parsed = models["Iris-v1"].inputs.parse({});
const { scores } = await iris.inferSample(parsed);
const count: 3 = scores.shape[0];
await iris.inferSample({ "measure ments": [1, 2, 3, 4], bias: 1 });
// @ts-expect-error: a required input is missing
await iris.inferSample({ bias: 1 });
// @ts-expect-error: one level too many
await iris.inferSample({ "measure ments": [[1, 2, 3, 4]] });
// @ts-expect-error: an output that the model does not have
(await iris.inferSample(parsed)).score;
const { __proto__: text } = await client.model("iris-v1").inferSample({ ids: [[1n, 2], [3, 4]] });
const word: string = text.text();
for await (const { left } of client.model("countdown").streamSample({ from: 3 })) left.get(0);
// @ts-expect-error: a decoupled model has no single response
client.model("countdown").inferSample;
await client.model("sum").inferSample({ x: 1 }, { sequence: { id: 1, start: true } });
// @ts-expect-error: a request of a sequence names it
await client.model("sum").inferSample({ x: 1 });
const { b } = await client.model("both").inferSample({ a: models.both.inputs.parse({ a: 1 }).a });
// @ts-expect-error: a model that the server does not have
client.model("IRIS-V1");
export { count, word, b };
`;

  it("types the models of a server over HTTP and over gRPC alike, with schemas for zod", async () => {
    const { http, grpc, token } = await serveModels();
    await using folder = await TemporaryFolder.create({});
    const zod = join(folder.path, "schemas.mts");
    const written: string[] = [];
    for (const url of [http, grpc]) {
      const terminal = new TestTerminal();
      expect([await run(["types", url, "--zod", zod, "--token", token], terminal), terminal.errors]).toEqual([
        0,
        "",
      ]);
      written.push(terminal.output);
    }
    expect(written[0]).toBe(written[1]);
    expect(written[0]).toContain("/** An ensemble of sum. */");
    expect(written[0]).not.toContain("@tritonjs/core");
    const files = {
      "models.d.ts": written[0]!,
      "schemas.mts": await readFile(zod, "utf8"),
      "page.mts": page,
    };
    compileLater("server", files);
  });

  /** A v2 server of which only the given paths are known. */
  async function serveAnswers(answers: Readonly<Record<string, unknown>>): Promise<string> {
    const server = createServer((request, response) => {
      const found = answers[request.url!];
      response.writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(found ?? { error: "not found" }));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    close = async () => {
      server.closeAllConnections();
      server.close();
    };
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("types a server without configurations by its metadata, and says what is not known", async () => {
    const url = await serveAnswers({
      "/v2/models/m": {
        name: "m",
        inputs: [{ name: "x", datatype: "FP32", shape: [-1, "4"] }],
        outputs: [{ name: "y", datatype: "FP8 */ oops", shape: [-1] }],
      },
      "/v2/models/odd": { name: "odd" },
    });
    const terminal = new TestTerminal();
    const args = [
      "types",
      url,
      "--model",
      "m",
      "--model",
      "odd",
      "--model",
      "gone",
      "--model",
      "evil*/\n name",
    ];
    expect(await run(args, terminal)).toBe(1);
    expect(terminal.output).toContain("decoupled: unknown;");
    expect(terminal.output).toMatch(/may include a batch axis.*no configuration of it/);
    expect(terminal.output).toContain("// Its data type 'FP8 * / oops' is not known.");
    expect(terminal.output).toContain('"odd": unknown;');
    expect(terminal.output).toContain('"gone": unknown;');
    expect(terminal.errors).toContain("model 'gone': nothing is known of this model: not found");
    const program = `import { createClient } from "@tritonjs/client/grpc";
import type { Models } from "./models.js";
const client = createClient<Models>("localhost:8001");
const { y } = await client.model("m").inferSample({ x: [[1, 2, 3, 4]] });
for await (const part of client.model("m").streamSample({ x: new Float32Array(4) })) part.y.toArray();
const { any } = await client.model("gone").inferSample({ a: 1, b: "text", c: [[1n]] });
export { y, any };
`;
    compileLater("metadata", { "models.d.ts": terminal.output, "program.mts": program });
  });

  /** Answers of a tritonserver about its models, as they were recorded: by path. */
  async function recordedAnswers(): Promise<Record<string, object>> {
    const file = new URL("../../../../test/golden/data/http/cases.jsonl", import.meta.url);
    const answers: Record<string, object> = {};
    for (const line of (await readFile(file, "utf8")).trim().split("\n")) {
      const { request, response } = JSON.parse(line);
      const describes =
        /^\/v2\/models\/\w+(\/config)?$/.test(request?.path ?? "") && request.method === "GET";
      const isIndex = request?.method === "POST" && request.path === "/v2/repository/index";
      if ((!describes && !isIndex) || response?.status !== 200 || response.body_text === undefined) continue;
      const answer = JSON.parse(response.body_text);
      if (!isIndex || answer.length > 0) answers[request.path] ??= answer;
    }
    return answers;
  }

  it("types what a tritonserver has answered about its models, in recordings", async () => {
    const answers = await recordedAnswers();
    const url = await serveAnswers(answers);
    const terminal = new TestTerminal();
    // Not all models of its index were asked for, so the others are unknown.
    expect(await run(["types", url], terminal)).toBe(1);
    expect(terminal.output).toMatch(/"?slow_queue"?: \{/);
    expect(terminal.errors).toContain("nothing is known of this model");
    const program = `import { createClient } from "@tritonjs/client/http";
import type { Models } from "./models.js";
const client = createClient<Models>("http://localhost:8000");
const { OUTPUT0 } = await client.model("id_bytes").inferSample({ INPUT0: ["a"] });
await client.model("optional").inferSample({ INPUT0: [1, 2] });
for await (const part of client.model("repeat").streamSample({ IN: [1] })) part.IDX.toArray();
const other = await client.model("id_fp16").inferSample({ anything: [1] });
// @ts-expect-error: the model has no such input
await client.model("id_bytes").inferSample({ NONE: ["a"] });
// @ts-expect-error: a required input is missing
await client.model("optional").inferSample({ INPUT1: [1, 2] });
export { other, OUTPUT0 };
`;
    compileLater("recordings", { "models.d.ts": terminal.output, "program.mts": program });
  });

  it("writes types that know nothing of a server that does not answer", async () => {
    const url = await serveAnswers({});
    await close();
    const files: Record<string, string> = {};
    for (const [i, source] of [url, url.replace("http:", "grpc:"), "http://[bad"].entries()) {
      const terminal = new TestTerminal();
      await using folder = await TemporaryFolder.create({});
      const zod = join(folder.path, "schemas.mts");
      expect(await run(["types", source, "--timeout", "2000", "--zod", zod], terminal)).toBe(1);
      expect(terminal.errors).toContain(`${source} did not list its models`);
      expect(terminal.output).toContain("[modelName: string]: unknown;");
      const program = `import { createClient } from "@tritonjs/client/http";
import type { Models } from "./models.js";
import { models } from "./schemas.mjs";
const { y } = await createClient<Models>("localhost:8000").model("anything").inferSample({ x: [1] });
export { y, models };
`;
      files[`${i}/models.d.ts`] = terminal.output;
      files[`${i}/schemas.mts`] = await readFile(zod, "utf8");
      files[`${i}/p.mts`] = program;
    }
    compileLater("silent", files);
  });

  it("writes the labels of a repository's label files as literal types", async () => {
    await using folder = await TemporaryFolder.create({
      "classifier/1/model.onnx": sampleModel(),
      "classifier/labels.txt": 'setosa\n"versi"\n',
      "classifier/config.pbtxt": `
      output { name: "probabilities" data_type: TYPE_FP32 dims: 3 label_filename: "labels.txt" }`,
    });
    const terminal = new TestTerminal();
    const zod = join(folder.path, "schemas.mts");
    const code = await run(["types", folder.path, "--client", "--zod", zod], terminal);
    expect([code, terminal.errors]).toEqual([0, ""]);
    const program = `import { createClient } from "@tritonjs/client/http";
import type { Models } from "./models.js";
import { models } from "./schemas.mjs";
const classifier = createClient<Models>("localhost:8000").model("classifier");
const [best] = await classifier.classify("probabilities", { features: [1, 2, 3, 4] }, { classes: 2 });
const label: "setosa" | '"versi"' | undefined = best!.label;
// @ts-expect-error: another class
const other: "virginica" | undefined = best!.label;
models.classifier.labels.probabilities.parse(label) satisfies "setosa" | '"versi"';
export { label, other };
`;
    const files = {
      "models.d.ts": terminal.output,
      "schemas.mts": await readFile(zod, "utf8"),
      "p.mts": program,
    };
    compileLater("labels", files);
  });

  it("writes types that fit the programs above", async () => {
    expect(Object.keys(programs)).toHaveLength(19);
    expect(await compiled(programs)).toBe("");
  });

  it("renaming an output in an ONNX file breaks the page at the line that uses it, with a short text", async () => {
    await using folder = await TemporaryFolder.create({ "classifier.onnx": sampleModel() });
    const renamed = Buffer.from(sampleModel());
    // The same number of letters, so that the lengths in the file stay right.
    for (let at = renamed.indexOf("probabilities"); at >= 0; at = renamed.indexOf("probabilities", at)) {
      renamed.write("probabilitees", at);
    }
    await using other = await TemporaryFolder.create({ "classifier.onnx": renamed });
    const program = `import { createClient } from "@tritonjs/client/http";
import type { Models } from "./models.js";
const client = createClient<Models>("http://localhost:8000");
const result = await client.model("classifier").inferSample({ features: [1, 2, 3, 4] });
document.title = String(result.probabilities.get(0));
declare const document: { title: string };
`;
    const files: Record<string, string> = {};
    for (const [name, { path }] of Object.entries({ same: folder, other })) {
      const terminal = new TestTerminal();
      expect(await run(["types", join(path, "classifier.onnx"), "--client"], terminal)).toBe(0);
      files[`${name}/models.d.ts`] = terminal.output;
      files[`${name}/page.mts`] = program;
    }
    const text = await compiled(files);
    const [line, ...more] = text.trim().split("\n");
    expect(more.filter((text) => !text.startsWith("  "))).toEqual([]);
    expect(line).toMatch(
      /other\/page\.mts\(5,32\): error TS2551: Property 'probabilities' does not exist on type /,
    );
    expect(text.slice(text.indexOf("error")).length).toBeLessThan(300);
  });
});

/** Configurations whose types are in `test/types/typed-models.d.ts`. */
const configs = [
  `name: "typed_resnet"
   max_batch_size: 8
   input [
     { name: "image" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] },
     { name: "size-hint" data_type: TYPE_INT64 dims: [ 2 ] optional: true }
   ]
   output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] } ]`,
  `name: "typed_source" output { name: "y" data_type: TYPE_BF16 dims: 4 }`,
].map((text) => readPrototxt(text));

/** The text that is left after the formatter has run. */
const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

describe("written types", () => {
  it("the compiled types of models are those that tritonjs types writes", () => {
    const written = typesText(
      { models: configs.map((config) => modelOfConfig(config.name, config)), unread: [] },
      true,
    );
    const compiled = readFileSync(
      new URL("../../../../test/types/typed-models.d.ts", import.meta.url),
      "utf8",
    );
    expect(unformatted(written)).toBe(unformatted(compiled));
  });
});
