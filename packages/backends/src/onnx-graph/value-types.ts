import { attributeOf, intAttribute, isStandard } from "./graph-editor.js";
import { ATTRIBUTE, ELEMENT, type GraphMessage, type NodeMessage } from "./onnx-messages.js";

/** Element types of the values of a graph by name; a value that is not a tensor, or is not known, has none. */
export type ValueTypes = Map<string, number>;

/**
 * Infers the element types of all values of a graph from those of its inputs, as ONNX's operators define them.
 *
 * @param outer types of the graphs around it, which its nodes may read
 */
export function valueTypes(graph: GraphMessage, outer: ValueTypes = new Map()): ValueTypes {
  const types: ValueTypes = new Map(outer);
  const set = (name: string | undefined, type: number | undefined) => {
    if (name === undefined || name === "") return;
    if (type === undefined) types.delete(name);
    else types.set(name, type);
  };
  for (const { name, type } of [...graph.valueInfo, ...graph.input]) set(name, type?.tensorType?.elemType);
  for (const { name, dataType } of graph.initializer) set(name, dataType);
  for (const node of graph.node) {
    for (const [i, name] of node.output.entries()) set(name, outputType(node, i, types));
  }
  return types;
}

type Rule = number | ((node: NodeMessage, types: ValueTypes, output: number) => number | undefined);

const input =
  (index: number): Rule =>
  ({ input }, types) =>
    types.get(input[index] ?? "");

/** The type that an attribute names, else a rule. */
const named =
  (attribute: string, otherwise: Rule): Rule =>
  (node, types, output) => {
    const type = intAttribute(node, attribute, 0);
    return type === 0 ? apply(otherwise, node, types, output) : type;
  };

const second =
  (first: Rule, others: Rule): Rule =>
  (node, types, output) =>
    apply(output === 0 ? first : others, node, types, output);

/** Outputs of the graphs inside, without the first ones of a loop's body. */
const inner =
  (skipped: number): Rule =>
  (node, types, output) => {
    const graph = node.attribute.find(({ g }) => g !== undefined && g !== null)?.g;
    if (!graph) return undefined;
    const name = graph.output[output + skipped]?.name ?? "";
    return valueTypes(graph, types).get(name) ?? graph.output[output + skipped]?.type?.tensorType?.elemType;
  };

const constant: Rule = (node) => {
  const value = attributeOf(node, "value")?.t;
  if (value) return value.dataType;
  const [attribute] = node.attribute;
  if (attribute === undefined) return undefined;
  const isFloat = attribute.type === ATTRIBUTE.FLOAT || attribute.type === ATTRIBUTE.FLOATS;
  const isInt = attribute.type === ATTRIBUTE.INT || attribute.type === ATTRIBUTE.INTS;
  return isFloat ? ELEMENT.FLOAT : isInt ? ELEMENT.INT64 : ELEMENT.STRING;
};

const { BOOL, FLOAT, INT32, INT64, UINT8 } = ELEMENT;

/** Operators whose outputs have another type than their first input. */
const RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(
    [
      "And",
      "Or",
      "Not",
      "Xor",
      "Equal",
      "Greater",
      "GreaterOrEqual",
      "Less",
      "LessOrEqual",
      "IsNaN",
      "IsInf",
    ].map((name) => [name, BOOL]),
  ),
  ...Object.fromEntries(
    ["Shape", "Size", "NonZero", "ArgMax", "ArgMin", "NonMaxSuppression"].map((name) => [name, INT64]),
  ),
  ...Object.fromEntries(["MatMulInteger", "ConvInteger"].map((name) => [name, INT32])),
  ...Object.fromEntries(["Loop", "Scan"].map((name) => [name, inner(name === "Loop" ? 1 : 0)])),
  If: inner(0),
  Constant: constant,
  ConstantOfShape: (node) => attributeOf(node, "value")?.t?.dataType ?? FLOAT,
  Cast: named("to", input(0)),
  CastLike: input(1),
  Where: input(1),
  OneHot: input(2),
  Compress: input(0),
  TopK: second(input(0), INT64),
  MaxPool: second(input(0), INT64),
  Unique: second(input(0), INT64),
  Dropout: second(input(0), BOOL),
  RandomNormal: named("dtype", FLOAT),
  RandomUniform: named("dtype", FLOAT),
  RandomNormalLike: named("dtype", input(0)),
  RandomUniformLike: named("dtype", input(0)),
  EyeLike: named("dtype", input(0)),
  Bernoulli: named("dtype", input(0)),
  Multinomial: named("dtype", INT32),
  QuantizeLinear: (node, types) =>
    types.get(node.input[2] ?? "") ?? intAttribute(node, "output_dtype", UINT8),
  DequantizeLinear: input(1),
  DynamicQuantizeLinear: (_node, _types, output) => (output === 1 ? FLOAT : UINT8),
  QLinearConv: input(7),
  QLinearMatMul: input(7),
  BatchNormalization: input(0),
  TfIdfVectorizer: FLOAT,
  BlackmanWindow: named("output_datatype", FLOAT),
  HammingWindow: named("output_datatype", FLOAT),
  HannWindow: named("output_datatype", FLOAT),
  MelWeightMatrix: named("output_datatype", FLOAT),
};

/** Operators of ONNX Runtime and of ONNX's machine learning whose outputs have another type than their first input. */
const FURTHER: Readonly<Record<string, Rule>> = {
  DynamicQuantizeMatMul: FLOAT,
  MatMulIntegerToFloat: FLOAT,
  GatherBlockQuantized: input(2),
  QAttention: input(3),
  EmbedLayerNormalization: second(input(2), INT32),
  Scaler: FLOAT,
  Normalizer: FLOAT,
  Imputer: input(0),
  LinearRegressor: FLOAT,
  SVMRegressor: FLOAT,
  TreeEnsembleRegressor: FLOAT,
  LinearClassifier: second(INT64, FLOAT),
  SVMClassifier: second(INT64, FLOAT),
  TreeEnsembleClassifier: second(INT64, FLOAT),
  OneHotEncoder: FLOAT,
};

function outputType(node: NodeMessage, output: number, types: ValueTypes): number | undefined {
  const rules = isStandard(node) ? RULES : FURTHER;
  const rule = Object.hasOwn(rules, node.opType) ? rules[node.opType]! : input(0);
  return apply(rule, node, types, output);
}

function apply(rule: Rule, node: NodeMessage, types: ValueTypes, output: number): number | undefined {
  return typeof rule === "number" ? rule : rule(node, types, output);
}
