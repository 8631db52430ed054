import type { DataType } from "@tritonjs/core";
import { type OnnxModel, type OnnxNode, onnxModel } from "../../examples/onnx-writer/onnx-writer.js";
import { onnxTypes } from "../support/onnx-models.js";
import type { Element, NamedTensor } from "./clients/client.js";

/** Data types that pass through ONNX Runtime in Node. */
export type OnnxDataType = keyof typeof onnxTypes;

/** An ONNX model with what it is asked and what it has to answer. */
export interface OnnxCase {
  readonly model: string;
  readonly file: Uint8Array;
  readonly inputs: readonly NamedTensor[];
  readonly outputs: readonly NamedTensor[];
}

const bytes = (value: string): Uint8Array => Uint8Array.from(Buffer.from(value));

/** 0, 1, 2, 3 in each data type. */
const small: Readonly<Record<OnnxDataType, readonly Element[]>> = {
  BOOL: [0, 1, 1, 0],
  UINT8: [0, 1, 2, 3],
  UINT16: [0, 1, 2, 3],
  UINT32: [0, 1, 2, 3],
  UINT64: [0n, 1n, 2n, 3n],
  INT8: [0, 1, 2, 3],
  INT16: [0, 1, 2, 3],
  INT32: [0, 1, 2, 3],
  INT64: [0n, 1n, 2n, 3n],
  FP16: [0, 0x3c00, 0x4000, 0x4200],
  FP32: [0, 1, 2, 3],
  FP64: [0, 1, 2, 3],
  BYTES: [bytes("0"), bytes("1"), bytes("2"), bytes("3")],
};

const types = Object.keys(onnxTypes) as OnnxDataType[];
const numbers = types.filter((type) => type !== "BOOL" && type !== "BYTES");

function tensor(
  name: string,
  datatype: OnnxDataType,
  shape: readonly number[],
  elements: readonly Element[],
): NamedTensor {
  return { name, datatype, shape, elements };
}

/** A matrix of two rows. */
const matrix = (name: string, datatype: OnnxDataType, order: readonly number[] = [0, 1, 2, 3]): NamedTensor =>
  tensor(
    name,
    datatype,
    [2, order.length / 2],
    order.map((i) => small[datatype][i]!),
  );

/** A case with one node or several, whose tensors say what its graph declares. */
function graph(
  model: string,
  nodes: OnnxNode | readonly OnnxNode[],
  inputs: readonly NamedTensor[],
  outputs: readonly NamedTensor[],
  more: Partial<OnnxModel> = {},
): OnnxCase {
  const value = ({ name, datatype, shape }: NamedTensor) => ({
    name,
    elemType: onnxTypes[datatype as Exclude<DataType, "BF16">],
    dims: shape,
  });
  const file = onnxModel({
    name: model,
    opset: 17,
    inputs: inputs.map(value),
    outputs: outputs.map(value),
    nodes: Array.isArray(nodes) ? nodes : [nodes as OnnxNode],
    ...more,
  });
  return { model, file, inputs, outputs };
}

const node = (
  op: string,
  inputs: readonly string[],
  attributes: OnnxNode["attributes"] = {},
  outputs = ["y"],
): OnnxNode => ({
  op,
  inputs,
  outputs,
  attributes,
});

/** What moves elements and looks at none of them: for all types. */
const moving = types.flatMap((type): OnnxCase[] => [
  graph(
    `transpose_${type}`,
    node("Transpose", ["x"], { perm: { ints: [1, 0] } }),
    [matrix("x", type)],
    [matrix("y", type, [0, 2, 1, 3])],
  ),
  graph(
    `concat_${type}`,
    node("Concat", ["a", "b"], { axis: { int: 1 } }),
    [matrix("a", type), matrix("b", type, [3, 2, 1, 0])],
    [matrix("y", type, [0, 1, 3, 2, 2, 3, 1, 0])],
  ),
]);

/** The same with other tensors beside: for some. */
const choosing = (["FP16", "INT64", "BOOL", "BYTES"] as const).flatMap((type): OnnxCase[] => [
  graph(
    `gather_${type}`,
    node("Gather", ["x", "i"], { axis: { int: 1 } }),
    [matrix("x", type), tensor("i", "INT64", [2], [1n, 0n])],
    [matrix("y", type, [1, 0, 3, 2])],
  ),
  graph(
    `flatten_${type}`,
    node("Reshape", ["x", "to"]),
    [matrix("x", type)],
    [tensor("y", type, [4], small[type])],
    { initializers: [{ name: "to", dims: [1], data: BigInt64Array.of(-1n) }] },
  ),
]);

/** From floats to all that a float can become. */
const casts = types
  .filter((type) => type !== "BYTES" && type !== "BOOL")
  .map((type) => {
    const to = {
      BOOL: 9,
      UINT8: 2,
      UINT16: 4,
      UINT32: 12,
      UINT64: 13,
      INT8: 3,
      INT16: 5,
      INT32: 6,
      INT64: 7,
      FP16: 10,
      FP32: 1,
      FP64: 11,
      BYTES: 8,
    }[type];
    return graph(
      `cast_to_${type}`,
      node("Cast", ["x"], { to: { int: to } }),
      [matrix("x", "FP32")],
      [matrix("y", type)],
    );
  });

/** `x` minus itself, and a matrix times the identity, in the types that ONNX Runtime computes in on a CPU. */
const arithmetic = (["FP32", "FP64", "INT32", "INT64"] as const).flatMap((type): OnnxCase[] => [
  graph(`subtract_${type}`, node("Sub", ["x", "x"]), [matrix("x", type)], [matrix("y", type, [0, 0, 0, 0])]),
  graph(
    `argmax_${type}`,
    node("ArgMax", ["x"], { axis: { int: 1 }, keepdims: { int: 0 } }),
    [matrix("x", type, [0, 3, 2, 1])],
    [tensor("y", "INT64", [2], [1n, 0n])],
  ),
]);

const comparing = numbers
  .filter((type) => ["FP32", "FP64", "INT32", "INT64"].includes(type))
  .map((type) =>
    graph(
      `greater_${type}`,
      node("Greater", ["a", "b"]),
      [matrix("a", type), matrix("b", type, [1, 1, 1, 1])],
      [matrix("y", "BOOL", [0, 0, 1, 1])],
    ),
  );

const others: readonly OnnxCase[] = [
  graph(
    "where_BYTES",
    node("Where", ["c", "a", "b"]),
    [matrix("c", "BOOL", [0, 1, 1, 0]), matrix("a", "BYTES"), matrix("b", "BYTES", [3, 3, 3, 3])],
    [matrix("y", "BYTES", [3, 1, 2, 3])],
  ),
  graph("not_BOOL", node("Not", ["x"]), [matrix("x", "BOOL")], [matrix("y", "BOOL", [1, 0, 0, 1])]),
  graph(
    "equal_BYTES",
    node("Equal", ["a", "b"]),
    [matrix("a", "BYTES"), matrix("b", "BYTES", [0, 0, 2, 2])],
    [matrix("y", "BOOL", [1, 0, 1, 0])],
    { opset: 19, irVersion: 9 },
  ),
  graph(
    "cast_from_BYTES",
    node("Cast", ["x"], { to: { int: 7 } }),
    [matrix("x", "BYTES")],
    [matrix("y", "INT64")],
  ),
  graph("shape_FP64", node("Shape", ["x"]), [matrix("x", "FP64")], [tensor("y", "INT64", [2], [2n, 2n])]),
  graph(
    "top_FP32",
    node("TopK", ["x", "k"], { axis: { int: 1 } }, ["y", "places"]),
    [tensor("x", "FP32", [1, 4], [3, 1, 4, 2])],
    [tensor("y", "FP32", [1, 2], [4, 3]), tensor("places", "INT64", [1, 2], [2n, 0n])],
    { initializers: [{ name: "k", dims: [1], data: BigInt64Array.of(2n) }] },
  ),
  graph(
    "chosen_UINT8",
    node("If", ["c"], {
      then_branch: { graph: branch("a") },
      else_branch: { graph: branch("b") },
    }),
    [tensor("c", "BOOL", [1], [0]), matrix("a", "UINT8"), matrix("b", "UINT8", [3, 2, 1, 0])],
    [matrix("y", "UINT8", [3, 2, 1, 0])],
  ),
];

/** A branch of an If that gives one of the tensors around it. */
function branch(from: string) {
  return {
    name: `take_${from}`,
    inputs: [],
    outputs: [{ name: `${from}_out`, elemType: "UINT8", dims: [2, 2] }],
    nodes: [node("Identity", [from], {}, [`${from}_out`])],
  } as const;
}

/** Graphs of many operators and data types, as ONNX's own tests of nodes have them. */
export const onnxCases: readonly OnnxCase[] = [
  ...moving,
  ...choosing,
  ...casts,
  ...arithmetic,
  ...comparing,
  ...others,
];
