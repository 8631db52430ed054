import { readFile } from "node:fs/promises";
import { modelSettings } from "@tritonjs/backends/classes";
import { Tensor, Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const json = (value: object) => JSON.stringify(value);
const settings = (implementation: string, more = {}) => json({ implementation, ...more });

const SCALE = `
import ndarray from ${JSON.stringify(import.meta.resolve("ndarray"))};
export class Scale {
  static inputs = [{ dtype: "FP32", shape: [2] }];
  static outputs = [{ dtype: "FP32", shape: [2] }];
  static maxBatchSize = 8;
  constructor({ factor = "1" }) { this.factor = factor; }
  async load() { this.loaded = Number(this.factor); }
  predict(x) { return ndarray(x.data.map((value) => value * this.loaded), x.shape); }
}
export class Increment { predict(x) { return x.toArray().map((row) => row.map((value) => value + 1)); } }
export class Sum { predict(x) { return x.toArray().map((row) => row.reduce((sum, value) => sum + value, 0)); } }
export class Divide {
  static inputs = [{ name: "a", dtype: "FP32", shape: [1] }, { name: "b", dtype: "FP32", shape: [1] }];
  static outputs = [{ name: "quotient", dtype: "FP32", shape: [1] }, { name: "rest", dtype: "FP32", shape: [1] }];
  predict({ a, b }) { return [[Math.trunc(a.get(0) / b.get(0))], [a.get(0) % b.get(0)]]; }
}
export class NoPredict { load() {} }
export class SomeNames {
  static inputs = [{ name: "a", dtype: "FP32", shape: [1] }, { dtype: "FP32", shape: [1] }];
  predict() {}
}
`;

/** Settings that are refused, by what is wrong with them, and the reason. */
const FAULTS: readonly (readonly [string, string, string | RegExp])[] = [
  [
    "a class without predict",
    settings("scale.mjs#NoPredict"),
    /expected class 'NoPredict' of .*scale\.mjs to have a method predict, got none/,
  ],
  [
    "a class that is not there",
    settings("scale.mjs#Missing"),
    /expected a class 'Missing' in .*scale\.mjs, which exports Divide, Increment, NoPredict/,
  ],
  [
    "names for some inputs",
    settings("scale.mjs#SomeNames"),
    /static inputs of class 'SomeNames' of model 'bad\d+': .*\[1\] has no name, but others have one/,
  ],
  [
    "an unknown implementation",
    json({ implementation: "nowhere.Model" }),
    /unknown implementation 'nowhere.Model': expected mlserver_sklearn\.SKLearnModel, .*, or a class: module\.Class beside the settings/,
  ],
  [
    "a runtime that nothing runs",
    json({ implementation: "mlserver_huggingface.HuggingFaceRuntime" }),
    /unknown implementation 'mlserver_huggingface.HuggingFaceRuntime': .*optimum-cli export onnx/,
  ],
  ["malformed JSON", "{", /model 'bad\d+': .*model-settings\.json is malformed: /],
  ["a list", "[]", "model-settings.json: expected an object, got array"],
  ["no implementation", "{}", "expected an implementation, got none"],
  [
    "another name",
    json({ name: "other", implementation: "a.B" }),
    /expected the name of its directory 'bad\d+', got 'other'/,
  ],
  [
    "a missing uri",
    json({ implementation: "mlserver_lightgbm.LightGBMModel" }),
    "expected a 'parameters.uri' with the path of the model, got none, and there is no model.bst, model.txt in",
  ],
  [
    "a uri of no file",
    json({ implementation: "mlserver_onnx.OnnxModel", parameters: { uri: "gone.onnx" } }),
    "expected a file, or a directory with one, got 'gone.onnx': there is no gone.onnx",
  ],
  [
    "a uri elsewhere",
    json({ implementation: "mlserver_onnx.OnnxModel", parameters: { uri: "s3://bucket/m" } }),
    "expected a path on this machine, got 's3://bucket/m': download it first",
  ],
  [
    "a module that is missing",
    json({ implementation: "gone.js#Model" }),
    /cannot read '.*gone\.js', which has its class 'Model'/,
  ],
  [
    "a wrong batch size",
    json({ implementation: "a.B", max_batch_size: -1 }),
    "'max_batch_size': expected an integer of at least 0, got -1",
  ],
  ["a wrong type", json({ implementation: 1 }), "'implementation': expected a text, got number"],
  [
    "a wrong data type",
    json({ implementation: "a.B", inputs: [{ name: "x", datatype: "FLOAT", shape: [1] }] }),
    /'inputs\[0\]' 'x' has an unknown data type 'FLOAT'/,
  ],
  [
    "a tensor without a shape",
    json({ implementation: "a.B", outputs: [{ name: "y", datatype: "FP32" }] }),
    "'outputs[0]' 'y': expected as its shape a list of dimensions, got undefined",
  ],
];

let triton: Triton;
let repository: RepositoryOnDisk;

beforeAll(async () => {
  const fraud = await readFile(
    new URL("../../../../examples/tree-ensemble/model/fraud.json", import.meta.url),
  );
  const tensor = (name: string) => ({ name, datatype: "FP64", shape: [-1, 2] });
  const bad = FAULTS.flatMap(([, text], i) => [
    [`bad${i}/scale.mjs`, SCALE],
    [`bad${i}/model-settings.json`, text],
  ]);
  repository = await RepositoryOnDisk.create({
    ...Object.fromEntries(bad),
    "scale/scale.mjs": SCALE,
    "scale/model-settings.json": settings("scale.mjs#Scale", { parameters: { extra: { factor: 3 } } }),
    "divide/model-settings.json": settings("../scale/scale.mjs#Divide"),
    "sum/model-settings.json": settings("../scale/scale.mjs#Sum"),
    "described/model-settings.json": settings("../scale/scale.mjs#Increment", {
      name: "described",
      max_batch_size: 4,
      max_batch_time: 0.25,
      inputs: [tensor("x")],
      outputs: [tensor("y")],
    }),
    "fraud/model.json": fraud,
    "fraud/model-settings.json": json({
      name: "fraud",
      implementation: "mlserver_xgboost.XGBoostModel",
      parameters: { uri: "./model.json", version: "3" },
      max_batch_size: 16,
    }),
    "same/config.pbtxt": identityConfig(),
    "same/1/": "",
    "same/model-settings.json": "{",
  });
  triton = new Triton({
    logError: false,
    extensions: [
      withRepository({
        modelRepository: repository.path,
        modelFormats: [modelSettings()],
        exitOnError: false,
      }),
    ],
  });
  await triton.ready().catch(() => {});
});

afterAll(async () => {
  await triton.close();
  await repository[Symbol.asyncDispose]();
});

describe("a class of JavaScript", () => {
  it("is served with its static members, and with one FP64 of each kind without them", async () => {
    const pairs = [
      [1, 2],
      [3, 4],
    ];
    const { OUTPUT_1 } = await triton.infer("scale", { INPUT_1: pairs });
    expect(OUTPUT_1!.data).toEqual(Float32Array.of(3, 6, 9, 12));
    const { OUTPUT_1: sums } = await triton.infer("sum", { INPUT_1: pairs });
    expect([sums!.shape, sums!.data]).toEqual([[2, 1], Float64Array.of(3, 7)]);
    const { quotient, rest } = await triton.infer("divide", { a: [7], b: [2] });
    expect([quotient!.data[0], rest!.data[0]]).toEqual([3, 1]);
    const config = serviceOf(triton).model("scale", "").config;
    expect([config.maxBatchSize, config.dynamicBatching !== undefined]).toEqual([8, true]);
  });

  it("takes tensors and batching from the settings, whose shapes have the batch axis", () => {
    expect(serviceOf(triton).model("described", "").config).toMatchObject({
      maxBatchSize: 4,
      dynamicBatching: { maxQueueDelayMicroseconds: 250_000 },
      input: [{ name: "x", dims: [2] }],
      output: [{ name: "y", dims: [2] }],
    });
  });
});

describe("model-settings.json", () => {
  it("of XGBoost is served by the trees backend", async () => {
    const input = Tensor.fromElements("FP32", [1, 5], Float32Array.of(640, 3, 900, 4, 5));
    const outputs = await triton.infer("fraud", { input__0: [[...(input.elements as Float32Array)]] });
    expect(Number(outputs.output__0!.data[0]).toFixed(4)).toBe("0.9248");
    expect(serviceOf(triton).model("fraud", "").version).toBe(3);
  });

  it.each(FAULTS.map(([what, , reason], i) => [what, i, reason] as const))(
    "with %s is refused, and other models keep serving",
    async (_what, i, reason) => {
      const rows = await serviceOf(triton).repositoryIndex(false);
      expect(rows.find(({ name }) => name === `bad${i}`)?.reason).toMatch(reason);
    },
  );

  it("is not read beside a config.pbtxt", () => {
    expect(serviceOf(triton).model("same", "").config.backend).toBe("identity");
  });
});
