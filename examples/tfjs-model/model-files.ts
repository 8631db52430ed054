import type { TrainedFlowers, Weight } from "./train-flowers.js";

/** Files by name. */
export type ModelFiles = ReadonlyMap<string, string | Uint8Array>;

/** The files of a LayersModel. */
export function layersFiles({ artifacts, weights }: TrainedFlowers): ModelFiles {
  const { modelTopology, format, generatedBy, weightSpecs } = artifacts;
  const manifest = [{ paths: ["weights.bin"], weights: weightSpecs }];
  return new Map<string, string | Uint8Array>([
    ["model.json", json({ format, generatedBy, modelTopology, weightsManifest: manifest })],
    ["weights.bin", bytesOf(weights)],
  ]);
}

/**
 * The same network as a GraphModel, as tensorflowjs_converter would make it from a SavedModel. It has a signature,
 * weights in two files, and the number of the best kind beside the scores.
 */
export function graphFiles({ weights }: TrainedFlowers): ModelFiles {
  const [kernel, bias, kernel2, bias2] = weights.map((weight) => ({
    ...weight,
    name: weight.name.replace("/", "_"),
  }));
  const axis = { name: "axis", shape: [], values: Int32Array.of(1) };
  const consts = [kernel!, bias!, kernel2!, bias2!];
  const float = { type: "DT_FLOAT" };
  const node = (name: string, op: string, input: readonly string[], attr = {}) => ({ name, op, input, attr });
  const constant = ({ name, shape }: { name: string; shape: readonly number[] }, dtype: string) =>
    node(name, "Const", [], {
      dtype: { type: dtype },
      value: { tensor: { dtype, tensorShape: shapeOf(shape) } },
    });
  const product = { T: float, transpose_a: { b: false }, transpose_b: { b: false } };
  const nodes = [
    node("serving_measures", "Placeholder", [], { dtype: float, shape: { shape: shapeOf([-1, 4]) } }),
    ...consts.map((weight) => constant(weight, "DT_FLOAT")),
    constant(axis, "DT_INT32"),
    node("product1", "MatMul", ["serving_measures", kernel!.name], product),
    node("sum1", "AddV2", ["product1", bias!.name], { T: float }),
    node("relu", "Relu", ["sum1"], { T: float }),
    node("product2", "MatMul", ["relu", kernel2!.name], product),
    node("Identity", "AddV2", ["product2", bias2!.name], { T: float }),
    node("best", "ArgMax", ["Identity", "axis"], { T: float, output_type: { type: "DT_INT64" } }),
  ];
  const tensor = (name: string, dtype: string, shape: readonly number[]) => ({
    name,
    dtype,
    tensorShape: shapeOf(shape),
  });
  const manifest = [
    {
      paths: ["group1-shard1of2.bin", "group1-shard2of2.bin"],
      weights: [
        ...consts.map(({ name, shape }) => ({ name, shape, dtype: "float32" })),
        { name: "axis", shape: [], dtype: "int32" },
      ],
    },
  ];
  const content = {
    format: "graph-model",
    generatedBy: "tritonjs",
    convertedBy: null,
    signature: {
      inputs: { measures: tensor("serving_measures:0", "DT_FLOAT", [-1, 4]) },
      outputs: {
        scores: tensor("Identity:0", "DT_FLOAT", [-1, 3]),
        kind: tensor("best:0", "DT_INT64", [-1]),
      },
    },
    modelTopology: { node: nodes, versions: { producer: 1 }, library: {} },
    weightsManifest: manifest,
  };
  const bytes = bytesOf([...consts, axis]);
  // A weight may span two files.
  const cut = 50;
  return new Map<string, string | Uint8Array>([
    ["model.json", json(content)],
    ["group1-shard1of2.bin", bytes.subarray(0, cut)],
    ["group1-shard2of2.bin", bytes.subarray(cut)],
  ]);
}

function shapeOf(shape: readonly number[]) {
  return { dim: shape.map((size) => ({ size: String(size) })) };
}

function bytesOf(weights: readonly { readonly values: Weight["values"] | Int32Array }[]): Uint8Array {
  return Buffer.concat(
    weights.map(({ values }) => Buffer.from(values.buffer, values.byteOffset, values.byteLength)),
  );
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 1)}\n`;
}
