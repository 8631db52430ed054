import { onnxModel } from "../../examples/onnx-writer/onnx-writer.js";
import { onnxTypes } from "../support/onnx-models.js";
import type { NamedTensor } from "./clients/client.js";
import { graph, matrix, node, type OnnxCase, type OnnxDataType, small, tensor, types } from "./onnx-case.js";

const vector = (name: string, datatype: OnnxDataType): NamedTensor =>
  tensor(name, datatype, [1], [small[datatype][1]!]);

/** Returns a tensor of each data type, under names that end in it. */
function identities(
  model: string,
  datatypes: readonly OnnxDataType[],
  dims: readonly (number | string)[],
  sent: (name: string, type: OnnxDataType) => NamedTensor,
): OnnxCase {
  const value = (letter: string) => (type: OnnxDataType) => ({
    name: `${letter}_${type}`,
    elemType: onnxTypes[type],
    dims,
  });
  const file = onnxModel({
    name: model,
    opset: 17,
    inputs: datatypes.map(value("x")),
    outputs: datatypes.map(value("y")),
    nodes: datatypes.map((type) => node("Identity", [`x_${type}`], {}, [`y_${type}`])),
  });
  const tensors = (letter: string) => datatypes.map((type) => sent(`${letter}_${type}`, type));
  return { model, file, inputs: tensors("x"), outputs: tensors("y") };
}

/** Some clients have no half floats. */
const withoutHalves = types.filter((type) => type !== "FP16");

/** Tensors without dimensions, which clients send and receive with one, and tensors without elements. */
const scalarsAndEmpty = [
  identities("scalars", withoutHalves, [], vector),
  identities("scalars_FP16", ["FP16"], [], vector),
  identities("empty", withoutHalves, [3, "n"], (name, type) => tensor(name, type, [3, 0], [])),
  identities("empty_FP16", ["FP16"], [3, "n"], (name, type) => tensor(name, type, [3, 0], [])),
];

/** Graphs with more parts than inputs, a node and outputs. */
const unusual: readonly OnnxCase[] = [
  graph(
    "reduced_to_a_scalar",
    node("ReduceSum", ["x"], { keepdims: { int: 0 } }),
    [matrix("x", "FP32")],
    [tensor("y", "FP32", [], [6])],
  ),
  graph(
    "scalar_that_has_to_be_one",
    node("Einsum", ["x"], { equation: { string: "->" } }),
    [tensor("x", "FP64", [], [1])],
    [tensor("y", "FP64", [], [1])],
  ),
  graph("without_inputs", node("Identity", ["w"]), [], [matrix("y", "INT32")], {
    initializers: [{ name: "w", dims: [2, 2], data: Int32Array.of(0, 1, 2, 3) }],
  }),
  graph(
    "weights_among_inputs",
    node("Add", ["x", "w"]),
    [matrix("x", "FP32")],
    [matrix("y", "FP32", [0, 1, 2, 3])],
    {
      inputs: [
        { name: "x", elemType: "FLOAT", dims: [2, 2] },
        { name: "w", elemType: "FLOAT", dims: [2, 2] },
      ],
      initializers: [{ name: "w", dims: [2, 2], data: new Float32Array(4) }],
    },
  ),
  graph(
    "without_an_optional_tensor",
    node("Clip", ["x", "", "most"]),
    [matrix("x", "FP32"), tensor("most", "FP32", [], [2])],
    [matrix("y", "FP32", [0, 1, 2, 2])],
  ),
  graph(
    "names_of_all_kinds",
    [
      node("Identity", ["layer/x:0"], {}, ["out put.ü"]),
      node("Identity", ["layer/x:0"], {}, ['"quoted"']),
      node("Identity", ["layer/x:0"], {}, ["__proto"]),
    ],
    [matrix("layer/x:0", "INT8")],
    [matrix("out put.ü", "INT8"), matrix('"quoted"', "INT8"), matrix("__proto", "INT8")],
  ),
  graph(
    "empty_where_it_is_declared",
    node("Shape", ["x"]),
    [tensor("x", "FP32", [0, 2], [])],
    [tensor("y", "INT64", [2], [0n, 2n])],
  ),
  graph(
    "picked_from_a_variable_number",
    node("NonZero", ["x"]),
    [matrix("x", "BOOL")],
    [tensor("y", "INT64", [2, 2], [0n, 1n, 1n, 0n])],
    { outputs: [{ name: "y", elemType: "INT64", dims: [2, "found"] }] },
  ),
].map(withDimensions);

/** The same case with a dimension wherever a scalar is exchanged. */
function withDimensions(one: OnnxCase): OnnxCase {
  const given = ({ shape, ...rest }: NamedTensor) => ({ ...rest, shape: shape.length === 0 ? [1] : shape });
  return { ...one, inputs: one.inputs.map(given), outputs: one.outputs.map(given) };
}

/** Graphs whose tensors have no dimensions or no elements, and other unusual graphs. */
export const unusualOnnxCases: readonly OnnxCase[] = [...scalarsAndEmpty, ...unusual];
