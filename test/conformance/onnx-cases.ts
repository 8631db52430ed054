import { graph, matrix, node, type OnnxCase, small, tensor, types } from "./onnx-case.js";
import { unusualOnnxCases } from "./onnx-unusual-cases.js";

const numbers = types.filter((type) => type !== "BOOL" && type !== "BYTES");

/** Operators that move elements without reading them, for all types. */
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

/** Operators that take further tensors, for some types. */
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

/** Casts from floats to every type that a float can become. */
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

/** `x` minus itself, and a matrix times the identity, in the types that ONNX Runtime computes on a CPU. */
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

/** A branch of an If that returns one of the tensors around it. */
function branch(from: string) {
  return {
    name: `take_${from}`,
    inputs: [],
    outputs: [{ name: `${from}_out`, elemType: "UINT8", dims: [2, 2] }],
    nodes: [node("Identity", [from], {}, [`${from}_out`])],
  } as const;
}

/** Graphs of many operators and data types, as in ONNX's own node tests. */
export const onnxCases: readonly OnnxCase[] = [
  ...moving,
  ...choosing,
  ...casts,
  ...arithmetic,
  ...comparing,
  ...others,
  ...unusualOnnxCases,
];
