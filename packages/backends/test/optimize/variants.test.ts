import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { type OnnxModel as Description, onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { nodesOf, OnnxModel } from "../../src/onnx-graph/onnx-model.js";
import { Reference } from "../../src/optimize/compare-models.js";
import { generateSamples, randomNumbers } from "../../src/optimize/generate-samples.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";
import {
  makeVariant,
  prepareModel,
  type VariantName,
  type VariantOptions,
} from "../../src/optimize/variants.js";

const random = randomNumbers(7);
const weights = (...dims: number[]) =>
  Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => (random() - 0.5) * 0.5);
const weight = (name: string, ...dims: number[]) => ({ name, dims, data: weights(...dims) });
const value = (name: string, ...dims: (number | string)[]) => ({ name, elemType: "FLOAT" as const, dims });

/** Networks of one kind of layer each. */
const NETWORKS: Readonly<Record<string, Omit<Description, "name" | "opset"> & { readonly opset?: number }>> =
  {
    matmul: {
      inputs: [value("x", "rows", 32)],
      outputs: [value("y", "rows", 48)],
      initializers: [weight("w", 32, 64), weight("v", 64, 48)],
      nodes: [
        { op: "MatMul", inputs: ["x", "w"], outputs: ["h"] },
        { op: "Relu", inputs: ["h"], outputs: ["r"] },
        { op: "MatMul", inputs: ["r", "v"], outputs: ["y"] },
      ],
    },
    gemm: {
      inputs: [value("x", "rows", 32)],
      outputs: [value("y", "rows", 24)],
      initializers: [weight("w", 24, 32), weight("b", 24)],
      nodes: [
        {
          op: "Gemm",
          inputs: ["x", "w", "b"],
          outputs: ["y"],
          attributes: { transB: { int: 1 }, alpha: { float: 0.5 }, beta: { float: 2 } },
        },
      ],
    },
    gather: {
      inputs: [{ name: "ids", elemType: "INT64", dims: ["rows", "length"] }],
      outputs: [value("y", "rows", "length", 32)],
      initializers: [weight("table", 50, 32)],
      nodes: [{ op: "Gather", inputs: ["table", "ids"], outputs: ["y"] }],
    },
    convolution: {
      inputs: [value("x", "rows", 3, 12, 12)],
      outputs: [value("y", "rows", 16, 1, 1)],
      initializers: [weight("w", 16, 3, 3, 3), weight("b", 16), weight("u", 16, 16, 3, 3), weight("c", 16)],
      nodes: [
        { op: "Conv", inputs: ["x", "w", "b"], outputs: ["h"] },
        { op: "Relu", inputs: ["h"], outputs: ["r"] },
        { op: "Conv", inputs: ["r", "u", "c"], outputs: ["s"] },
        { op: "GlobalAveragePool", inputs: ["s"], outputs: ["y"] },
      ],
    },
    lstm: {
      inputs: [value("x", "length", "rows", 16)],
      outputs: [value("y", "length", 1, "rows", 24)],
      initializers: [weight("w", 1, 96, 16), weight("r", 1, 96, 24), weight("b", 1, 192)],
      nodes: [
        {
          op: "LSTM",
          inputs: ["x", "w", "r", "b"],
          outputs: ["y"],
          attributes: { hidden_size: { int: 24 } },
        },
      ],
    },
    gru: {
      inputs: [value("x", "length", "rows", 16)],
      outputs: [value("y", "length", 1, "rows", 24)],
      initializers: [weight("w", 1, 72, 16), weight("r", 1, 72, 24), weight("b", 1, 144)],
      nodes: [
        { op: "GRU", inputs: ["x", "w", "r", "b"], outputs: ["y"], attributes: { hidden_size: { int: 24 } } },
      ],
    },
    attention: {
      domains: { "com.microsoft": 1 },
      inputs: [value("x", "rows", "length", 32)],
      outputs: [value("y", "rows", "length", 32)],
      initializers: [weight("w", 32, 96), weight("b", 96)],
      nodes: [
        {
          op: "Attention",
          domain: "com.microsoft",
          inputs: ["x", "w", "b"],
          outputs: ["y"],
          attributes: { num_heads: { int: 2 } },
        },
      ],
    },
    loop: {
      inputs: [value("x", "rows", 32)],
      outputs: [value("y", "rows", 32)],
      initializers: [
        weight("w", 32, 32),
        { name: "three", dims: [], data: BigInt64Array.of(3n) },
        { name: "go", dims: [], data: Uint8Array.of(1), elemType: "BOOL" },
      ],
      nodes: [
        {
          op: "Loop",
          inputs: ["three", "go", "x"],
          outputs: ["y"],
          attributes: {
            body: {
              graph: {
                name: "body",
                inputs: [
                  { name: "i", elemType: "INT64", dims: [] },
                  { name: "more", elemType: "BOOL", dims: [] },
                  value("h", "rows", 32),
                ],
                outputs: [{ name: "again", elemType: "BOOL", dims: [] }, value("n", "rows", 32)],
                nodes: [
                  { op: "Identity", inputs: ["more"], outputs: ["again"] },
                  { op: "MatMul", inputs: ["h", "w"], outputs: ["p"] },
                  { op: "Tanh", inputs: ["p"], outputs: ["n"] },
                ],
              },
            },
          },
        },
      ],
    },
  };

function network(name: string): OnnxModel {
  const { opset = 17, ...graph } = NETWORKS[name]!;
  return OnnxModel.decode(onnxModel({ name, opset, ...graph }), `'${name}'`);
}

async function variantOf(name: string, variant: VariantName, options: VariantOptions = {}) {
  const model = network(name);
  const original = await ModelRunner.open(model);
  const samples = generateSamples(model, original.inputs, { count: 5, rows: 3 });
  const reference = await Reference.of(original, samples);
  const made = await makeVariant(variant, await prepareModel(model), { samples, ...options });
  const runner = await ModelRunner.open(made.model);
  const { outputs } = await reference.compare(runner);
  await original.close();
  await runner.close();
  const operators = [...nodesOf(made.model.message.graph)].map(({ opType }) => opType);
  return { relative: outputs[0]!.relative, operators, layers: made.changes.layers, model: made.model };
}

describe("variants answer nearly as the original", () => {
  const cases: readonly (readonly [VariantName, string, number, string])[] = [
    ["dynamic-int8", "matmul", 0.03, "MatMulInteger"],
    ["dynamic-int8", "gemm", 0.03, "MatMulInteger"],
    ["dynamic-int8", "gather", 0.01, "Mul"],
    ["dynamic-int8", "convolution", 0.02, "DequantizeLinear"],
    ["dynamic-int8", "lstm", 0.03, "DynamicQuantizeLSTM"],
    ["dynamic-int8", "gru", 0.02, "DequantizeLinear"],
    ["dynamic-int8", "attention", 0.03, "QAttention"],
    ["dynamic-int8", "loop", 0.05, "MatMulInteger"],
    ["static-int8", "matmul", 0.04, "QuantizeLinear"],
    ["static-int8", "convolution", 0.05, "QuantizeLinear"],
    ["int4-weights", "matmul", 0.15, "MatMulNBits"],
    ["int4-weights", "gemm", 0.15, "MatMulNBits"],
    ["int4-weights", "gather", 0.15, "GatherBlockQuantized"],
    ["fp16", "matmul", 0.002, "MatMul"],
    ["fp16", "gemm", 0.002, "Gemm"],
    ["fp16", "gather", 0.001, "Gather"],
    ["fp16", "convolution", 0.002, "Conv"],
    ["fp16", "lstm", 0.003, "LSTM"],
    ["fp16", "attention", 0.003, "Attention"],
    ["fp16", "loop", 0.003, "MatMul"],
    ["fp16-weights", "matmul", 0.001, "MatMul"],
    ["fp16-weights", "convolution", 0.001, "Conv"],
    ["clean", "loop", 0, "MatMul"],
  ];
  it.each(cases)("%s of %s", async (variant, name, most, operator) => {
    const { relative, operators } = await variantOf(name, variant);
    expect(relative).toBeLessThanOrEqual(most);
    expect(operators).toContain(operator);
  });
});

describe("the choice of layers", () => {
  it("keeps layers that are named by their output or operator", async () => {
    const { operators, layers } = await variantOf("matmul", "dynamic-int8", { keep: ["y"] });
    expect(layers).toEqual(["h"]);
    expect(operators.filter((one) => one === "MatMul")).toHaveLength(1);
    const fault = await variantOf("matmul", "dynamic-int8", { keep: ["MatMul"] }).catch((error) => error);
    expect(fault.message).toBe(
      "variant 'dynamic-int8' of the ONNX model 'matmul': it has no layer that this changes",
    );
  });

  it("leaves an operator in FP32 between casts if it is on the list, and the types of inputs and outputs", async () => {
    const { operators, relative, model } = await variantOf("matmul", "fp16", { keep: ["Relu"] });
    expect(operators).toEqual(["Cast", "MatMul", "Cast", "Relu", "Cast", "MatMul", "Cast"]);
    expect(relative).toBeLessThan(0.002);
    const ends = [...model.message.graph.input, ...model.message.graph.output];
    expect(ends.map(({ type }) => type?.tensorType?.elemType)).toEqual([1, 1]);
  });

  it("computes in FP32 with weights that FP16 does not hold", async () => {
    const { opset: _, ...graph } = NETWORKS.matmul!;
    const [w, v] = graph.initializers!;
    const large = { ...w!, data: (w!.data as Float32Array).map((one) => one * 1e6) };
    const bytes = onnxModel({ name: "large", opset: 17, ...graph, initializers: [large, v!] });
    const { model, changes } = await makeVariant("fp16", await prepareModel(OnnxModel.decode(bytes)));
    expect(changes.layers).not.toContain("h");
    const types = model.message.graph.initializer.map(({ name, dataType }) => [name, dataType]);
    expect(types).toEqual([
      ["w", 1],
      ["v", 10],
    ]);
  });
});

describe("samples that do not reach a layer", () => {
  const twoProducts = () =>
    onnxModel({
      name: "two",
      opset: 17,
      inputs: ["a", "b"].map((name) => ({ name, elemType: "FLOAT" as const, dims: [`${name}_rows`, 32] })),
      outputs: ["c", "d"].map((name) => ({ name, elemType: "FLOAT" as const, dims: ["rows", 32] })),
      initializers: [{ name: "w", dims: [32, 32], data: weights(32, 32) }],
      nodes: [
        { op: "MatMul", name: "first", inputs: ["a", "w"], outputs: ["c"] },
        { op: "MatMul", name: "second", inputs: ["b", "w"], outputs: ["d"] },
      ],
    });
  const rows = (count: number) => Tensor.fromElements("FP32", [count, 32], weights(count, 32));

  it("leave it as it is in static int8, and are refused if they reach none", async () => {
    const prepared = await prepareModel(OnnxModel.decode(twoProducts()));
    const make = (a: number, b: number) =>
      makeVariant("static-int8", prepared, {
        samples: [
          new Map([
            ["a", rows(a)],
            ["b", rows(b)],
          ]),
        ],
      });
    expect((await make(4, 4)).changes.layers).toEqual(["first", "second"]);
    expect((await make(4, 0)).changes.layers).toEqual(["first"]);
    expect(await outcomeOf(make(0, 0))).toContain(
      "expected samples with numbers in the layers, got 1 that leave 'a' and all others empty",
    );
  });
});

describe("the preparation of a model", () => {
  it("raises operator set 11, so that channels can have scales, and answers the same", async () => {
    const { opset: _, ...graph } = NETWORKS.convolution!;
    const old = OnnxModel.decode(
      onnxModel({
        name: "old",
        opset: 11,
        ...graph,
        nodes: [
          ...graph.nodes.slice(0, -1),
          {
            op: "ReduceSum",
            inputs: ["s"],
            outputs: ["t"],
            attributes: { axes: { ints: [2, 3] }, keepdims: { int: 0 } },
          },
          { op: "Unsqueeze", inputs: ["t"], outputs: ["y"], attributes: { axes: { ints: [2, 3] } } },
        ],
      }),
    );
    const prepared = await prepareModel(old);
    expect(prepared.opset()).toBe(13);
    const [before, after] = [await ModelRunner.open(old), await ModelRunner.open(prepared)];
    const reference = await Reference.of(before, generateSamples(old, before.inputs, { count: 2 }));
    expect((await reference.compare(after)).outputs[0]!.largest).toBeLessThan(1e-5);
    await before.close();
    await after.close();
  });

  it("leaves an old model whose Softmax would mean something else", async () => {
    const old = OnnxModel.decode(
      onnxModel({
        name: "old",
        opset: 11,
        inputs: [value("x", "rows", 2, 3)],
        outputs: [value("y", "rows", 2, 3)],
        nodes: [{ op: "Softmax", inputs: ["x"], outputs: ["y"], attributes: { axis: { int: 1 } } }],
      }),
    );
    expect((await prepareModel(old)).opset()).toBe(11);
  });

  it("computes what depends on constants alone, and removes what only passes values on", async () => {
    const model = OnnxModel.decode(
      onnxModel({
        name: "foldable",
        opset: 17,
        inputs: [value("x", "rows", 2)],
        outputs: [value("y", "rows", 2)],
        initializers: [
          { name: "a", dims: [2], data: Float32Array.of(1, 2) },
          { name: "b", dims: [2], data: Float32Array.of(1, 2) },
        ],
        nodes: [
          { op: "Add", inputs: ["a", "b"], outputs: ["c"] },
          { op: "Identity", inputs: ["x"], outputs: ["i"] },
          { op: "Dropout", inputs: ["i"], outputs: ["d"] },
          { op: "Neg", inputs: ["x"], outputs: ["unused"] },
          { op: "Mul", inputs: ["d", "c"], outputs: ["y"] },
        ],
      }),
    );
    const { graph } = (await prepareModel(model)).message;
    expect(graph.node.map(({ opType }) => opType)).toEqual(["Mul"]);
    const runner = await ModelRunner.open(await prepareModel(model));
    const result = await runner.run(
      new Map([["x", Tensor.fromElements("FP32", [1, 2], Float32Array.of(3, 5))]]),
    );
    expect([...(result.get("y")!.elements as Float32Array)]).toEqual([6, 20]);
    await runner.close();
  });

  it("gives dimensions fixed sizes by name or by input, and refuses others with what the model has", async () => {
    const fixed = await prepareModel(network("attention"), {
      dimensions: { rows: 2 },
      inputs: { x: [2, 7, 32] },
    });
    const dims = fixed.message.graph.output[0]!.type!.tensorType!.shape!.dim;
    expect(dims.map(({ dimValue }) => Number(dimValue))).toEqual([2, 7, 32]);
    expect(await outcomeOf(prepareModel(network("attention"), { dimensions: { batch: 2 } }))).toContain(
      "the ONNX model 'attention': dimension 'batch': expected one of rows, length",
    );
    expect(await outcomeOf(prepareModel(network("attention"), { inputs: { x: [2, 7, 33] } }))).toContain(
      "the ONNX model 'attention': shape of input 'x': expected [rows,length,32], got [2,7,33]",
    );
  });

  it("names an operator that ONNX Runtime does not have, with its node", async () => {
    const model = OnnxModel.decode(
      onnxModel({
        name: "custom",
        opset: 17,
        domains: { "my.company": 1 },
        inputs: [value("x", 2)],
        outputs: [value("y", 2)],
        nodes: [{ op: "Fold", domain: "my.company", inputs: ["x"], outputs: ["y"], name: "fold_7" }],
      }),
      "'custom.onnx'",
    );
    expect(await outcomeOf(prepareModel(model))).toContain(
      "the ONNX model 'custom.onnx' has the operator 'my.company:Fold' in node 'fold_7': expected operators of ONNX and " +
        "ONNX Runtime, because the graph of others cannot be checked",
    );
  });
});
