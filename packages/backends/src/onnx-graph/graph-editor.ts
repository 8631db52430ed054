import { float32ToFloat16 } from "@tritonjs/protocol";
import {
  ATTRIBUTE,
  type AttributeMessage,
  ELEMENT,
  type GraphMessage,
  type Int64,
  type NodeMessage,
  type TensorMessage,
} from "./onnx-messages.js";
import { innerGraphs, type OnnxModel } from "./onnx-model.js";

type Elements = Float32Array | Uint8Array | Int8Array | Uint16Array | Int32Array | BigInt64Array;

/** Value of an attribute that a rewriting adds. */
type AttributeValue = number | { readonly float: number } | string | readonly number[];

/** ONNX Runtime's operators outside of ONNX. */
export const MICROSOFT = "com.microsoft";

export const isStandard = ({ domain = "" }: NodeMessage): boolean => domain === "" || domain === "ai.onnx";

/** Operator of a node with its domain, as texts name it. */
export const operatorOf = (node: NodeMessage): string =>
  isStandard(node) ? node.opType : `${node.domain}:${node.opType}`;

export function attributeOf(node: NodeMessage, name: string): AttributeMessage | undefined {
  return node.attribute.find((one) => one.name === name);
}

export function intAttribute(node: NodeMessage, name: string, fallback: number): number {
  const found = attributeOf(node, name);
  return found === undefined ? fallback : Number(found.i ?? 0);
}

export function floatAttribute(node: NodeMessage, name: string, fallback: number): number {
  const found = attributeOf(node, name);
  return found === undefined ? fallback : (found.f ?? 0);
}

/** Makes a node. Outputs keep the names of what they replace, so that layers of two models can be compared. */
export function makeNode(
  opType: string,
  input: string[],
  output: string[],
  attributes: Readonly<Record<string, AttributeValue | undefined>> = {},
  domain?: string,
): NodeMessage {
  const attribute = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [attributeMessage(name, value)],
  );
  return { opType, input, output, attribute, ...(domain !== undefined && { domain }) };
}

function attributeMessage(name: string, value: AttributeValue): AttributeMessage {
  const lists = { floats: [], ints: [], strings: [], tensors: [], graphs: [] };
  if (typeof value === "number") return { ...lists, name, type: ATTRIBUTE.INT, i: value };
  if (typeof value === "string") return { ...lists, name, type: ATTRIBUTE.STRING, s: Buffer.from(value) };
  if ("float" in value) return { ...lists, name, type: ATTRIBUTE.FLOAT, f: value.float };
  return { ...lists, name, type: ATTRIBUTE.INTS, ints: [...value] };
}

/** The end of a Gemm whose product is computed otherwise: its bias, times `beta`. */
export function addBias(editor: GraphEditor, gemm: NodeMessage, product: string): NodeMessage[] {
  const [, , bias = ""] = gemm.input;
  const beta = floatAttribute(gemm, "beta", 1);
  if (beta === 1) return [makeNode("Add", [product, bias], gemm.output)];
  const scaled = editor.fresh("c");
  return [
    makeNode("Mul", [bias, editor.add("beta", [], Float32Array.of(beta))], [scaled]),
    makeNode("Add", [product, scaled], gemm.output),
  ];
}

export function makeTensor(
  name: string,
  dataType: number,
  dims: readonly Int64[],
  data: Elements,
): TensorMessage {
  const rawData = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const lists = { floatData: [], int32Data: [], int64Data: [], doubleData: [], uint64Data: [] };
  return { ...lists, name, dataType, dims: [...dims], rawData, stringData: [], externalData: [] };
}

const TYPE_OF_ARRAY: Readonly<Record<string, number>> = {
  Float32Array: ELEMENT.FLOAT,
  Uint8Array: ELEMENT.UINT8,
  Int8Array: ELEMENT.INT8,
  Int32Array: ELEMENT.INT32,
  BigInt64Array: ELEMENT.INT64,
};

/**
 * Changes one graph: looks up constants, collects the nodes that take the place of others, and adds constants. Graphs
 * inside of nodes have editors of their own, which see the constants of the graphs around them.
 */
export class GraphEditor {
  readonly #constants: Map<string, TensorMessage>;
  readonly #names: Set<string>;
  readonly #replaced = new Map<NodeMessage, NodeMessage[]>();
  readonly #added: TensorMessage[] = [];
  readonly #consumers = new Map<string, NodeMessage[]>();
  readonly #producers = new Map<string, NodeMessage>();
  readonly #head: NodeMessage[] = [];
  readonly #tail: NodeMessage[] = [];

  constructor(
    readonly model: OnnxModel,
    readonly graph: GraphMessage,
    private readonly outer?: GraphEditor,
  ) {
    this.#names = outer === undefined ? namesOf(graph) : outer.#names;
    this.#constants = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
    for (const node of graph.node) {
      for (const name of node.output) this.#producers.set(name, node);
      for (const name of usedNames(node)) {
        const known = this.#consumers.get(name);
        if (known === undefined) this.#consumers.set(name, [node]);
        else known.push(node);
      }
    }
  }

  /** Edits a model's graph and all graphs inside of it, and finishes each. */
  static edit(model: OnnxModel, change: (editor: GraphEditor) => void): void {
    const visit = (graph: GraphMessage, outer?: GraphEditor) => {
      const editor = new GraphEditor(model, graph, outer);
      change(editor);
      for (const node of [...graph.node]) for (const inner of innerGraphs(node)) visit(inner, editor);
      editor.finish();
    };
    visit(model.message.graph);
    dropUnused(model.message.graph);
  }

  /** True for the graph of the model, false for one inside of a node. */
  get isMain(): boolean {
    return this.outer === undefined;
  }

  /** The constant of this name, of this graph or of one around it. */
  constant(name: string | undefined): TensorMessage | undefined {
    if (name === undefined || name === "") return undefined;
    return this.#constants.get(name) ?? (this.#producers.has(name) ? undefined : this.outer?.constant(name));
  }

  /** The elements of a constant of floats; undefined for other values. */
  floats(name: string | undefined): Float32Array | undefined {
    const tensor = this.constant(name);
    return tensor === undefined ? undefined : this.model.floatsOf(tensor);
  }

  producer(name: string): NodeMessage | undefined {
    return this.#producers.get(name);
  }

  /** Nodes of this graph that read a value, or contain a graph that does. */
  consumers(name: string): readonly NodeMessage[] {
    return this.#consumers.get(name) ?? [];
  }

  isOutput(name: string): boolean {
    return this.graph.output.some((output) => output.name === name);
  }

  /** A name that the model does not use. Short ones keep small files small. */
  fresh(prefix: string): string {
    for (let number = 0; ; number++) {
      const name = `${prefix}${number === 0 ? "" : number}`;
      if (this.#names.has(name)) continue;
      this.#names.add(name);
      return name;
    }
  }

  /** Adds a constant. @returns its name */
  add(name: string, dims: readonly number[], data: Elements, type?: number): string {
    const elementType = type ?? TYPE_OF_ARRAY[data[Symbol.toStringTag]]!;
    const tensor = makeTensor(this.fresh(name), elementType, dims, data);
    this.#added.push(tensor);
    this.#constants.set(tensor.name, tensor);
    return tensor.name;
  }

  /** Adds a constant of floats, in FP16 if the values that it meets have that type. */
  addFloats(name: string, dims: readonly number[], data: Float32Array, isHalf: boolean): string {
    return isHalf
      ? this.add(name, dims, float32ToFloat16(data), ELEMENT.FLOAT16)
      : this.add(name, dims, data);
  }

  /** Puts nodes in the place of one. */
  replace(node: NodeMessage, nodes: readonly NodeMessage[]): void {
    this.#replaced.set(node, [...nodes]);
  }

  /** The nodes that take the place of one so far. */
  replacements(node: NodeMessage): readonly NodeMessage[] {
    return this.#replaced.get(node) ?? [node];
  }

  /** Puts nodes before all others, or after them. */
  surround(head: readonly NodeMessage[], tail: readonly NodeMessage[]): void {
    this.#head.push(...head);
    this.#tail.push(...tail);
  }

  finish(): void {
    const { graph } = this;
    const nodes = graph.node.flatMap((node) => this.#replaced.get(node) ?? [node]);
    graph.node = [...this.#head, ...nodes, ...this.#tail];
    graph.initializer.push(...this.#added);
  }
}

/** Names that a node reads, those of the graphs inside of it too. */
function usedNames(node: NodeMessage): string[] {
  const inner = innerGraphs(node).flatMap((graph) => [
    ...graph.node.flatMap(usedNames),
    ...graph.output.map(({ name }) => name),
  ]);
  return [...node.input, ...inner].filter((name) => name !== "");
}

function namesOf(graph: GraphMessage): Set<string> {
  const names = new Set<string>();
  const visit = ({ node, initializer, input, output }: GraphMessage) => {
    for (const { name } of [...initializer, ...input, ...output]) names.add(name);
    for (const one of node) {
      for (const name of [...one.input, ...one.output]) names.add(name);
      if (one.name !== undefined) names.add(one.name);
      for (const inner of innerGraphs(one)) visit(inner);
    }
  };
  visit(graph);
  return names;
}

/** Removes nodes and constants that nothing uses, in a graph and in those inside of it. */
export function dropUnused(graph: GraphMessage): void {
  const used = new Set(graph.output.map(({ name }) => name));
  const kept: NodeMessage[] = [];
  for (const node of graph.node.toReversed()) {
    if (!node.output.some((name) => used.has(name))) continue;
    kept.push(node);
    for (const inner of innerGraphs(node)) dropUnused(inner);
    for (const name of usedNames(node)) used.add(name);
  }
  graph.node = kept.reverse();
  // Old files list their weights among the inputs. Other inputs stay, even unused ones.
  const constants = new Set(graph.initializer.map(({ name }) => name));
  graph.input = graph.input.filter(({ name }) => !constants.has(name) || used.has(name));
  graph.initializer = graph.initializer.filter(({ name }) => used.has(name));
  const made = new Set(graph.node.flatMap(({ output }) => output));
  graph.valueInfo = graph.valueInfo.filter(({ name }) => made.has(name));
}

/** Adds an operator set to a model that does not import it. */
export function importDomain(model: OnnxModel, domain: string, version: number): void {
  if (model.opset(domain) === 0) model.message.opsetImport.push({ domain, version });
}

/** Drops types of inner values, which a rewriting may have changed; ONNX Runtime infers them again. */
export function forgetTypes(graph: GraphMessage): void {
  graph.valueInfo = [];
  for (const node of graph.node) for (const inner of innerGraphs(node)) forgetTypes(inner);
}
