import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import {
  type Attribute,
  constant,
  DT,
  type FunctionFile,
  type NodeFile,
  node,
  type SavedModelFile,
  type TensorFile,
} from "./saved-model-files.js";

/*
 * Turns a GraphModel of TensorFlow.js into the SavedModel that it may have been made from: weights become variables,
 * fused operations become single ones, attributes with their default are left out, and the graph is a function that the
 * function of a signature calls.
 */

interface JsonAttribute {
  readonly type?: string;
  readonly b?: boolean;
  readonly i?: string | number;
  readonly f?: number;
  readonly s?: string;
  readonly func?: { readonly name: string };
  readonly shape?: JsonShape;
  readonly list?: {
    readonly i?: readonly (string | number)[];
    readonly s?: readonly string[];
    readonly type?: readonly string[];
  };
}

interface JsonShape {
  readonly dim?: readonly { readonly size?: string | number }[];
  readonly unknownRank?: boolean;
}

interface JsonNode {
  readonly name: string;
  readonly op: string;
  readonly input?: readonly string[];
  readonly attr?: Readonly<Record<string, JsonAttribute>>;
}

interface JsonFunction {
  readonly signature: {
    readonly name: string;
    readonly inputArg?: readonly { readonly name: string; readonly type?: string }[];
    readonly outputArg?: readonly { readonly name: string }[];
  };
  readonly nodeDef?: readonly JsonNode[];
  readonly ret?: Readonly<Record<string, string>>;
}

interface JsonTensor {
  readonly name: string;
  readonly dtype: string;
  readonly tensorShape?: JsonShape;
}

interface JsonSignature {
  readonly inputs?: Readonly<Record<string, JsonTensor>>;
  readonly outputs?: Readonly<Record<string, JsonTensor>>;
}

/** A GraphModel with its weights. */
export interface GraphModel {
  readonly nodes: readonly JsonNode[];
  readonly functions: readonly JsonFunction[];
  readonly signature: Required<JsonSignature>;
  readonly weights: ReadonlyMap<string, TensorFile>;
}

interface ModelFile {
  readonly modelTopology: {
    readonly node: readonly JsonNode[];
    readonly library?: { readonly function?: readonly JsonFunction[] };
  };
  readonly weightsManifest: readonly {
    readonly paths: string[];
    readonly weights: tf.io.WeightsManifestEntry[];
  }[];
  readonly signature?: JsonSignature;
  readonly userDefinedMetadata?: { readonly signature?: JsonSignature };
}

/** A GraphModel as TensorFlow.js loads it. */
export function artifactsOf(path: string) {
  const file = JSON.parse(readFileSync(path, "utf8")) as ModelFile;
  const bytes = Buffer.concat(
    file.weightsManifest.flatMap(({ paths }) => paths.map((one) => readFileSync(join(dirname(path), one)))),
  );
  const weightSpecs = file.weightsManifest.flatMap(({ weights }) => weights);
  return { ...file, weightSpecs, weightData: Uint8Array.from(bytes).buffer };
}

/** Reads a GraphModel from its `model.json` and the files beside it. Weights in fewer bits become floats. */
export function readGraphModel(path: string): GraphModel {
  const { modelTopology, signature, userDefinedMetadata, weightSpecs, weightData } = artifactsOf(path);
  const decoded = tf.io.decodeWeights(weightData, weightSpecs);
  const nodes = modelTopology.node;
  const types = new Map(nodes.map(({ name, attr }) => [name, attr?.dtype?.type]));
  const weights = new Map(
    Object.entries(decoded).map(([name, tensor]) => [name, tensorFile(tensor, types.get(name))]),
  );
  tf.dispose(decoded);
  const given = signature ?? userDefinedMetadata?.signature;
  return {
    nodes,
    functions: modelTopology.library?.function ?? [],
    signature: { inputs: given?.inputs ?? inputsOf(nodes), outputs: given?.outputs ?? outputsOf(nodes) },
    weights,
  };
}

function inputsOf(nodes: readonly JsonNode[]): Record<string, JsonTensor> {
  const placeholders = nodes.filter(({ op }) => op === "Placeholder");
  return Object.fromEntries(
    placeholders.map(({ name, attr }) => [
      name,
      { name: `${name}:0`, dtype: attr?.dtype?.type ?? "DT_FLOAT", tensorShape: attr?.shape?.shape ?? {} },
    ]),
  );
}

/** Nodes that no other node takes. */
function outputsOf(nodes: readonly JsonNode[]): Record<string, JsonTensor> {
  const taken = new Set(nodes.flatMap(({ input = [] }) => input.map((one) => one.split(":")[0])));
  const last = nodes.filter(({ name, op }) => !taken.has(name) && op !== "Const" && op !== "NoOp");
  return Object.fromEntries(
    last.map(({ name }) => [
      name,
      { name: `${name}:0`, dtype: "DT_FLOAT", tensorShape: { unknownRank: true } },
    ]),
  );
}

/** A weight in the type that TensorFlow had: TensorFlow.js has no integers of 64 bits. */
function tensorFile(tensor: tf.Tensor, type: string | undefined): TensorFile {
  const { shape, dtype } = tensor;
  const values = tensor.dataSync();
  if (dtype === "string") return { dtype: DT.STRING, shape, values: values as unknown as string[] };
  if (dtype === "bool") return { dtype: DT.BOOL, shape, values: Uint8Array.from(values) };
  if (dtype === "int32") {
    return type === "DT_INT64"
      ? { dtype: DT.INT64, shape, values: BigInt64Array.from(values as Int32Array, BigInt) }
      : { dtype: DT.INT32, shape, values: Int32Array.from(values) };
  }
  return type === "DT_DOUBLE"
    ? { dtype: DT.DOUBLE, shape, values: Float64Array.from(values) }
    : { dtype: DT.FLOAT, shape, values: Float32Array.from(values) };
}

const typeOf = (text: string | number = "DT_FLOAT"): number => {
  if (typeof text === "number") return text;
  const type = DT[text.replace(/^DT_/, "") as keyof typeof DT];
  if (type === undefined) throw new Error(`expected a known type, got ${text}`);
  return type;
};

const dimsOf = ({ dim = [], unknownRank }: JsonShape = {}): readonly number[] | "unknown" =>
  unknownRank ? "unknown" : dim.map(({ size = 0 }) => Number(size));

/** Values that TensorFlow leaves out when it saves a model, because they are the defaults of the attributes. */
const DEFAULTS: Readonly<Record<string, readonly string[]>> = {
  data_format: ["NHWC"],
  dilations: ["1,1,1,1"],
  explicit_paddings: [""],
  squeeze_dims: [""],
  use_cudnn_on_gpu: ["true"],
  transpose_a: ["false"],
  transpose_b: ["false"],
  adj_x: ["false"],
  adj_y: ["false"],
  keep_dims: ["false"],
  align_corners: ["false"],
  half_pixel_centers: ["false"],
  begin_mask: ["0"],
  end_mask: ["0"],
  ellipsis_mask: ["0"],
  new_axis_mask: ["0"],
  shrink_axis_mask: ["0"],
  axis: ["0"],
  batch_dims: ["0"],
  sorted: ["true"],
  Truncate: ["false"],
  incompatible_shape_error: ["true"],
};

function attributesOf(attributes: JsonNode["attr"] = {}): Record<string, Attribute> {
  const found: [string, Attribute][] = [];
  for (const [name, value] of Object.entries(attributes)) {
    // The weights are elsewhere, and marks of TensorFlow's optimizer mean nothing.
    if (name.startsWith("_") || name === "value") continue;
    const attribute = attributeOf(value);
    if (attribute === undefined || DEFAULTS[name]?.includes(String(Object.values(attribute)[0]))) continue;
    found.push([name, attribute]);
  }
  return Object.fromEntries(found);
}

const textOf = (base64: string): string => Buffer.from(base64, "base64").toString();

function attributeOf({ type, b, i, f, s, func, shape, list }: JsonAttribute): Attribute | undefined {
  if (type !== undefined) return { type: typeOf(type) };
  if (b !== undefined) return { b };
  if (i !== undefined) return { i: Number(i) };
  if (f !== undefined) return { f };
  if (s !== undefined) return { s: textOf(s) };
  if (func !== undefined) return { func: func.name };
  if (shape !== undefined) return { shape: dimsOf(shape) };
  if (list?.type !== undefined && list.type.length > 0) return { types: list.type.map((one) => typeOf(one)) };
  if (list?.s !== undefined && list.s.length > 0) return { strings: list.s.map(textOf) };
  return list === undefined ? undefined : { ints: (list.i ?? []).map(Number) };
}

const FUSED: Readonly<Record<string, string>> = {
  _FusedConv2D: "Conv2D",
  FusedDepthwiseConv2dNative: "DepthwiseConv2dNative",
  _FusedMatMul: "MatMul",
};

/** Operations in TensorFlow that have more inputs than their activation: the slopes of Prelu are the last input. */
const OF_FUSED = ["fused_ops", "num_args", "epsilon", "leakyrelu_alpha"];

/** A node as TensorFlow saves it: a fused operation is several nodes, of which the last has its name. */
function nodesOf({ name, op, input = [], attr = {} }: JsonNode): NodeFile[] {
  const plain = FUSED[op];
  if (plain === undefined) return [node(name, op, input, attributesOf(attr))];
  const steps = (attr.fused_ops?.list?.s ?? []).map(textOf);
  const kept = Object.fromEntries(Object.entries(attr).filter(([key]) => !OF_FUSED.includes(key)));
  const [x = "", weights = "", ...others] = input;
  const made: NodeFile[] = [];
  let last = x;
  for (const [i, step] of [plain, ...steps].entries()) {
    const own = i === steps.length ? name : `${name}/${step}_${i}`;
    if (i === 0) made.push(node(own, plain, [x, weights], attributesOf(kept)));
    else if (step === "BiasAdd") made.push(node(own, step, [last, others[0]!], { T: { type: DT.FLOAT } }));
    else if (step === "Prelu") made.push(node(own, step, [last, others[1]!], { T: { type: DT.FLOAT } }));
    else {
      const slope = step === "LeakyRelu" ? attr.leakyrelu_alpha : undefined;
      made.push(
        node(own, step, [last], attributesOf({ T: { type: "DT_FLOAT" }, ...(slope && { alpha: slope }) })),
      );
    }
    last = own;
  }
  return made;
}

/** Names of outputs, by which the nodes of functions are taken. Those of other operations do not matter. */
const OUTPUTS: Readonly<Record<string, readonly string[]>> = {
  TopKV2: ["values", "indices"],
  NonMaxSuppressionV5: ["selected_indices", "selected_scores", "valid_outputs"],
  SparseFillEmptyRows: ["output_indices", "output_values", "empty_row_indicator", "reverse_index_map"],
  SparseReshape: ["output_indices", "output_shape"],
};

/** Loops of TensorFlow 1, which are not functions. */
const OLD_LOOPS = /^(Enter|RefEnter|Switch|Merge|NextIteration|Exit)$/;

/** The nodes of a frozen graph. */
export function asFrozenGraph({ nodes, weights }: GraphModel): NodeFile[] {
  return nodes.flatMap((one) => withWeight(one, weights));
}

function withWeight(one: JsonNode, weights: GraphModel["weights"]): NodeFile[] {
  const weight = weights.get(one.name);
  return weight === undefined ? nodesOf(one) : [constant(one.name, weight)];
}

/** The SavedModel of a GraphModel. Loops of TensorFlow 1 stay in the graph, as TensorFlow 1 saved it. */
export function asSavedModel(model: GraphModel, compressed = false): SavedModelFile {
  const { nodes, weights, functions } = model;
  const variables = Object.fromEntries(
    [...weights]
      .filter(([, { dtype, shape }]) => dtype === DT.FLOAT && shape.length > 0)
      .map(([name, tensor]) => [`layers/${name}`, tensor]),
  );
  const isVariable = (name: string) => Object.hasOwn(variables, `layers/${name}`);
  const handles = Object.keys(variables).map((key) => key.slice("layers/".length));
  const inner = nodes.flatMap((one): NodeFile[] => {
    if (isVariable(one.name)) return [node(one.name, "ReadVariableOp", [`${one.name}_resource`])];
    return withWeight(one, weights);
  });
  const handle = (name: string) =>
    node(`${name}_resource`, "VarHandleOp", [], { shared_name: { s: `layers/${name}` } });
  const inside = functions.map((one) => functionOf(one, weights));
  const isOld = nodes.some(({ op }) => OLD_LOOPS.test(op));
  const graph = isOld
    ? { nodes: [...handles.map(handle), ...inner], functions: inside, outputs: outputNames(model) }
    : inFunctions(model, inner, inside, handles, handle);
  return {
    nodes: graph.nodes,
    functions: graph.functions,
    signatures: {
      serving_default: {
        inputs: signatureTensors(model.signature.inputs),
        outputs: signatureTensors(model.signature.outputs, graph.outputs),
      },
    },
    variables,
    compressed,
  };
}

const outputNames = ({ signature }: GraphModel) =>
  Object.values(signature.outputs).map(({ name }) => (name.includes(":") ? name : `${name}:0`));

function signatureTensors(tensors: Readonly<Record<string, JsonTensor>>, names?: readonly string[]) {
  return Object.fromEntries(
    Object.entries(tensors).map(([key, { name, dtype, tensorShape }], i) => {
      const shape = dimsOf(tensorShape);
      const place = names?.[i] ?? (name.includes(":") ? name : `${name}:0`);
      return [key, { name: place, dtype: typeOf(dtype), ...(shape !== "unknown" && { shape }) }];
    }),
  );
}

/** The graph as a function, which the function of the signature calls. */
function inFunctions(
  model: GraphModel,
  inner: readonly NodeFile[],
  inside: readonly FunctionFile[],
  handles: readonly string[],
  handle: (name: string) => NodeFile,
) {
  const placeholders = inner.filter(({ op }) => op === "Placeholder" || op === "PlaceholderWithDefault");
  const inputs = Object.fromEntries(placeholders.map(({ name }, i) => [name, `inputs_${i}`]));
  const operations = new Map(inner.map(({ name, op }) => [name, op]));
  const taken = (input: string): string => {
    if (input.startsWith("^")) return input;
    const [name = "", position = "0"] = input.split(":");
    if (Object.hasOwn(inputs, name)) return inputs[name]!;
    if (name.endsWith("_resource") && !operations.has(name)) return name;
    const outputs = OUTPUTS[operations.get(name) ?? ""];
    return outputs === undefined ? `${name}:output:${position}` : `${name}:${outputs[Number(position)]}:0`;
  };
  const argumentsOf = {
    ...Object.fromEntries(placeholders.map(({ name, attr }) => [inputs[name]!, attributeType(attr?.dtype)])),
    ...Object.fromEntries(handles.map((name) => [`${name}_resource`, DT.RESOURCE])),
  };
  const results = outputNames(model).map((name, i) => [`output_${i}`, taken(name)] as const);
  const body: FunctionFile = {
    name: "__inference_model_1",
    inputs: argumentsOf,
    nodes: inner
      .filter((one) => !placeholders.includes(one))
      .map((one) => ({ ...one, input: (one.input ?? []).map(taken) })),
    outputs: Object.fromEntries(results),
  };
  const names = results.map(([name]) => name);
  const wrapper: FunctionFile = {
    name: "__inference_signature_wrapper_2",
    inputs: argumentsOf,
    nodes: [
      node("call", "StatefulPartitionedCall", Object.keys(argumentsOf), { f: { func: body.name } }),
      ...names.map((name, i) => node(name, "Identity", [`call:output:${i}`, "^call"])),
    ],
    outputs: Object.fromEntries(names.map((name) => [name, `${name}:output:0`])),
  };
  const call = node(
    "StatefulPartitionedCall",
    "StatefulPartitionedCall",
    [...placeholders.map(({ name }) => name), ...handles.map((name) => `${name}_resource`)],
    { f: { func: wrapper.name } },
  );
  return {
    nodes: [...placeholders, ...handles.map(handle), call],
    functions: [...inside, body, wrapper],
    outputs: names.map((_, i) => `StatefulPartitionedCall:${i}`),
  };
}

const attributeType = (attribute: Attribute | undefined): number =>
  attribute !== undefined && "type" in attribute ? attribute.type : DT.FLOAT;

function functionOf(
  { signature, nodeDef = [], ret = {} }: JsonFunction,
  weights: GraphModel["weights"],
): FunctionFile {
  return {
    name: signature.name,
    inputs: Object.fromEntries((signature.inputArg ?? []).map(({ name, type }) => [name, typeOf(type)])),
    nodes: nodeDef.flatMap((one) => withWeight(one, weights)),
    outputs: Object.fromEntries((signature.outputArg ?? []).map(({ name }) => [name, ret[name] ?? ""])),
  };
}
