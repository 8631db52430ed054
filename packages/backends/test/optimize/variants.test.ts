import { Tensor } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OnnxModel as Description, onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { nodesOf, OnnxModel } from "../../src/onnx-graph/onnx-model.js";
import {
  activationScale,
  dequantizeBlocks,
  dequantizeWeights,
  layoutOf,
  quantizeBlocks,
  quantizeWeights,
  roundEven,
  ValueHistogram,
} from "../../src/onnx-graph/quantization.js";
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

const float = fc.float({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 });

const tensor = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 }))
  .chain(([outer, channels, inner]) =>
    fc.record({
      layout: fc.constant({ outer, channels, inner }),
      weights: fc
        .array(float, { minLength: outer * channels * inner, maxLength: outer * channels * inner })
        .map((values) => Float32Array.from(values)),
    }),
  );

describe("quantised weights", () => {
  it("are at most half of their channel's scale away from the weights", () => {
    fc.assert(
      fc.property(tensor, fc.constantFrom(127 as const, 64 as const), ({ layout, weights }, limit) => {
        const quantized = quantizeWeights(weights, layout, limit)!;
        const back = dequantizeWeights(quantized, layout);
        const { channels, inner } = layout;
        for (let i = 0; i < weights.length; i++) {
          const scale = quantized.scales[Math.floor(i / inner) % channels]!;
          expect(Math.abs(quantized.values[i]!)).toBeLessThanOrEqual(limit);
          expect(Math.abs(back[i]! - weights[i]!)).toBeLessThanOrEqual(scale * 0.5001);
        }
      }),
    );
  });

  it("keep zeros, and the sign and the place of the largest weight of a channel", () => {
    fc.assert(
      fc.property(tensor, ({ layout, weights }) => {
        const { values } = quantizeWeights(weights, layout)!;
        weights.forEach((weight, i) => {
          if (weight === 0) expect(values[i]).toBe(0);
          else expect(Math.sign(values[i]!) * Math.sign(weight)).toBeGreaterThanOrEqual(0);
        });
      }),
    );
  });

  it("are the same for a channel, whatever the other channels hold", () => {
    const alone = quantizeWeights(Float32Array.of(1, -0.5, 0.25), layoutOf([3, 1], 1))!;
    const beside = quantizeWeights(Float32Array.of(1, 1e6, -0.5, 7, 0.25, -3), layoutOf([3, 2], 1))!;
    expect([...beside.values].filter((_, i) => i % 2 === 0)).toEqual([...alone.values]);
    expect(beside.scales[0]).toBe(alone.scales[0]);
  });

  it("do not exist for weights with NaN or infinity", () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const weights = Float32Array.of(1, wrong, 2, 3);
      expect(quantizeWeights(weights, layoutOf([4]))).toBeUndefined();
      expect(quantizeBlocks((row) => weights[row]!, 4, 1, 16)).toBeUndefined();
    }
  });

  it("divide by no zero: channels of zeros, and of the smallest numbers", () => {
    const weights = Float32Array.of(0, 0, 1e-45, -1e-45);
    const { values, scales } = quantizeWeights(weights, layoutOf([2, 2], 0))!;
    expect([...scales].every((scale) => scale > 0 && Number.isFinite(scale))).toBe(true);
    expect([...values]).toEqual([0, 0, 0, 0]);
  });
});

describe("blocks of 4 bits", () => {
  it("are at most 2.7 steps away from the weights, also in a block that is cut", () => {
    const matrix = fc
      .tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 4 }), fc.constantFrom(16, 32))
      .chain(([rows, columns, blockSize]) =>
        fc.record({
          shape: fc.constant({ rows, columns, blockSize }),
          weights: fc.array(float, { minLength: rows * columns, maxLength: rows * columns }),
        }),
      );
    fc.assert(
      fc.property(matrix, ({ shape: { rows, columns, blockSize }, weights }) => {
        const floats = Float32Array.from(weights);
        const at = (row: number, column: number) => floats[row * columns + column]!;
        const made = quantizeBlocks(at, rows, columns, blockSize)!;
        const back = dequantizeBlocks(made, rows, columns, blockSize);
        expect(made.packed.length).toBe((columns * made.blocks * blockSize) / 2);
        for (let row = 0; row < rows; row++) {
          for (let column = 0; column < columns; column++) {
            const scale = Math.abs(made.scales[column * made.blocks + Math.floor(row / blockSize)]!);
            // A scale of 3/4 ends 2.7 of its steps before the largest weight.
            const worst = 2.7 * scale + 1e-30;
            expect(Math.abs(back[row * columns + column]! - at(row, column))).toBeLessThanOrEqual(worst);
          }
        }
      }),
    );
  });

  it("have no larger square error than the scale that reaches the largest weight", () => {
    fc.assert(
      fc.property(fc.array(float, { minLength: 32, maxLength: 32 }), (values) => {
        const floats = Float32Array.from(values);
        const back = dequantizeBlocks(quantizeBlocks((row) => floats[row]!, 32, 1, 32)!, 32, 1, 32);
        const extreme = floats.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
        const scale = Math.fround(extreme / -8);
        const plain = floats.map((value) =>
          scale === 0 ? 0 : scale * Math.min(7, Math.max(-8, roundEven(value / scale))),
        );
        const error = (other: Float32Array) =>
          floats.reduce((sum, value, i) => sum + (value - other[i]!) ** 2, 0);
        expect(error(back)).toBeLessThanOrEqual(error(plain) * 1.0001);
      }),
    );
  });
});

describe("the scale of a value", () => {
  it("covers the range and 0, and makes 0 a whole number", () => {
    fc.assert(
      fc.property(float, float, (a, b) => {
        const range = { min: Math.min(a, b), max: Math.max(a, b) };
        const { scale, zeroPoint } = activationScale(range);
        expect(Number.isInteger(zeroPoint) && zeroPoint >= 0 && zeroPoint <= 255).toBe(true);
        expect(scale).toBeGreaterThan(0);
        expect(scale * (0 - zeroPoint)).toBeLessThanOrEqual(Math.min(0, range.min) + scale);
        expect(scale * (255 - zeroPoint)).toBeGreaterThanOrEqual(Math.max(0, range.max) - scale);
      }),
    );
  });

  it("rounds halves to the even number, as QuantizeLinear does", () => {
    expect([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6].map(roundEven)).toEqual([-2, -2, 0, 0, 2, 2, 2, 3]);
  });
});

describe("calibration", () => {
  const sample = fc.array(float, { minLength: 1, maxLength: 60 });

  it("finds the same ranges in whatever order the values come, up to the width of a bin", () => {
    fc.assert(
      fc.property(sample, fc.constantFrom("min-max", "percentile", "entropy"), (values, method) => {
        const [forwards, backwards] = [new ValueHistogram(), new ValueHistogram()];
        for (const value of values) forwards.add([value]);
        backwards.add(values.toReversed());
        const [a, b] = [forwards.range(method), backwards.range(method)];
        const width = Math.max(...values.map(Math.abs)) / 64;
        if (method === "entropy") return;
        expect(Math.abs(a.min - b.min)).toBeLessThanOrEqual(width);
        expect(Math.abs(a.max - b.max)).toBeLessThanOrEqual(width);
      }),
    );
  });

  it("never finds a range beyond the values and 0, by any method", () => {
    fc.assert(
      fc.property(sample, fc.constantFrom("min-max", "percentile", "entropy"), (values, method) => {
        const histogram = new ValueHistogram();
        histogram.add(values);
        const { min, max } = histogram.range(method);
        expect(min).toBeGreaterThanOrEqual(Math.min(0, ...values));
        expect(max).toBeLessThanOrEqual(Math.max(0, ...values));
        expect(min).toBeLessThanOrEqual(max);
      }),
    );
  });

  it("cuts off a single value far away by percentile and entropy, but not by min-max", () => {
    const histogram = new ValueHistogram();
    const values = Array.from({ length: 20_000 }, (_, i) => Math.sin(i) * Math.cos(i / 7));
    histogram.add([...values, 1000]);
    expect(histogram.range("min-max").max).toBe(1000);
    expect(histogram.range("percentile", 99.9).max).toBeLessThan(3);
    expect(histogram.range("entropy").max).toBeLessThan(200);
  });

  it("ignores values that no range covers, and has the range 0 for none", () => {
    const histogram = new ValueHistogram();
    histogram.add([Number.NaN, Number.POSITIVE_INFINITY]);
    expect(histogram.range("entropy")).toEqual({ min: 0, max: 0 });
    histogram.add([2, Number.NaN, -1]);
    expect(histogram.range("min-max")).toEqual({ min: -1, max: 2 });
  });
});
