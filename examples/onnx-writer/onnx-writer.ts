import { modelProto } from "./onnx-schema.js";
import { type OnnxElementType, type OnnxTensor, onnxElementTypes, tensorMessage } from "./onnx-tensor.js";

export type { OnnxElementType, OnnxTensor, OnnxTensorData } from "./onnx-tensor.js";
export { onnxElementTypes } from "./onnx-tensor.js";

/** An input or output of a graph. */
export interface OnnxValue {
  readonly name: string;
  readonly elemType: OnnxElementType;
  /**
   * Shape with all axes. A number is a fixed size, a string names a size that is known only at run time, `null` is such
   * a size without a name. Without `dims`, the file declares no shape; ONNX Runtime infers the shape of an output.
   */
  readonly dims?: readonly (number | string | null)[];
}

/** Value of a node's attribute; the key says which of ONNX's attribute types it has. */
export type OnnxAttribute =
  | { readonly int: number | bigint }
  | { readonly float: number }
  | { readonly string: string }
  | { readonly tensor: OnnxTensor }
  | { readonly graph: OnnxGraph }
  | { readonly ints: readonly (number | bigint)[] }
  | { readonly floats: readonly number[] }
  | { readonly strings: readonly string[] };

/** One operator call. */
export interface OnnxNode {
  /** Operator name, such as `"Gemm"`. */
  readonly op: string;
  /** Names of the tensors that the operator reads; `""` omits an optional input. */
  readonly inputs: readonly string[];
  /** Names of the tensors that the operator computes. */
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  readonly name?: string;
  /** Operator set of the operator; ONNX's own by default. */
  readonly domain?: string;
}

/** A graph: the body of a model, or of an `If` or `Loop` node. */
export interface OnnxGraph {
  readonly name: string;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Nodes in an order in which they can be executed. */
  readonly nodes: readonly OnnxNode[];
  readonly initializers?: readonly OnnxTensor[];
}

/** Description of a model for {@link onnxModel}. */
export interface OnnxModel extends OnnxGraph {
  /** Version of ONNX's own operator set. */
  readonly opset: number;
  /** Versions of other operator sets, by domain. */
  readonly domains?: Readonly<Record<string, number>>;
  /** Version of the file format. The default, 8, supports operator sets up to 17. */
  readonly irVersion?: number;
}

type Message = Record<string, unknown>;

const utf8 = new TextEncoder();

/**
 * Bytes of an ONNX model file. The same description always gives the same bytes.
 *
 * @throws Error if an initializer's data does not fit its shape or element type.
 *
 * @example
 * ```ts
 * const bytes = onnxModel({
 *   name: "identity",
 *   opset: 17,
 *   inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 2] }],
 *   outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 2] }],
 *   nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
 * });
 * ```
 */
export function onnxModel(model: OnnxModel): Uint8Array {
  const domains = Object.entries(model.domains ?? {});
  const message = modelProto.fromObject({
    irVersion: model.irVersion ?? 8,
    producerName: "tritonjs",
    graph: graphMessage(model),
    opsetImport: [
      { domain: "", version: model.opset },
      ...domains.map(([domain, version]) => ({ domain, version })),
    ],
  });
  return Uint8Array.from(modelProto.encode(message).finish());
}

function graphMessage(graph: OnnxGraph): Message {
  return {
    name: graph.name,
    input: graph.inputs.map(valueMessage),
    output: graph.outputs.map(valueMessage),
    node: graph.nodes.map(nodeMessage),
    initializer: (graph.initializers ?? []).map(tensorMessage),
  };
}

function valueMessage({ name, elemType, dims }: OnnxValue): Message {
  const shape = dims === undefined ? {} : { shape: { dim: dims.map(dimMessage) } };
  return { name, type: { tensorType: { elemType: onnxElementTypes[elemType], ...shape } } };
}

function dimMessage(size: number | string | null): Message {
  if (size === null) return {};
  return typeof size === "string" ? { dimParam: size } : { dimValue: size };
}

function nodeMessage(node: OnnxNode): Message {
  const attributes = Object.entries(node.attributes ?? {});
  return {
    input: node.inputs,
    output: node.outputs,
    name: node.name,
    opType: node.op,
    domain: node.domain,
    attribute: attributes.map(([name, attribute]) => ({ name, ...attributeMessage(attribute) })),
  };
}

function attributeMessage(attribute: OnnxAttribute): Message {
  if ("int" in attribute) return { type: "INT", i: String(attribute.int) };
  if ("float" in attribute) return { type: "FLOAT", f: attribute.float };
  if ("string" in attribute) return { type: "STRING", s: utf8.encode(attribute.string) };
  if ("tensor" in attribute) return { type: "TENSOR", t: tensorMessage(attribute.tensor) };
  if ("graph" in attribute) return { type: "GRAPH", g: graphMessage(attribute.graph) };
  if ("ints" in attribute) return { type: "INTS", ints: attribute.ints.map(String) };
  if ("floats" in attribute) return { type: "FLOATS", floats: attribute.floats };
  return { type: "STRINGS", strings: attribute.strings.map((text) => utf8.encode(text)) };
}
