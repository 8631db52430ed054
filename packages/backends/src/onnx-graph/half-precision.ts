import { float32ToFloat16 } from "@tritonjs/protocol";
import {
  attributeOf,
  dropUnused,
  forgetTypes,
  GraphEditor,
  isStandard,
  makeNode,
  makeTensor,
} from "./graph-editor.js";
import { LayerChoice, type LayerOptions, type VariantChanges } from "./layer-choice.js";
import { ELEMENT, type GraphMessage, type NodeMessage, type TensorMessage } from "./onnx-messages.js";
import { countOf, innerGraphs, type OnnxModel } from "./onnx-model.js";
import { type ValueTypes, valueTypes } from "./value-types.js";

/** Operators that stay in FP32: their definitions, or ONNX Runtime's kernels, have no FP16, or sums overflow. */
const FLOAT_OPERATORS: readonly string[] = [
  "BatchNormalization",
  "Bernoulli",
  "BlackmanWindow",
  "CumSum",
  "DequantizeLinear",
  "DynamicQuantizeLinear",
  "HammingWindow",
  "HannWindow",
  "Max",
  "MelWeightMatrix",
  "Min",
  "Multinomial",
  "NonMaxSuppression",
  "QuantizeLinear",
  "RandomNormal",
  "RandomNormalLike",
  "RandomUniform",
  "RandomUniformLike",
  "Range",
  "ReduceLogSumExp",
  "ReduceSumSquare",
  "Resize",
  "RoiAlign",
  "STFT",
  "TfIdfVectorizer",
  "TopK",
  "Upsample",
];

/** ONNX Runtime's own operators that compute in FP16. All others of domains outside of ONNX stay in FP32. */
const HALF_OPERATORS: ReadonlySet<string> = new Set([
  "Attention",
  "BiasGelu",
  "FastGelu",
  "FusedMatMul",
  "Gelu",
  "GroupQueryAttention",
  "MatMulNBits",
  "MultiHeadAttention",
  "QuickGelu",
  "RotaryEmbedding",
  "SimplifiedLayerNormalization",
  "SkipLayerNormalization",
  "SkipSimplifiedLayerNormalization",
]);

/** Largest FP16. Larger weights keep their layer in FP32; a single larger number, as masks have it, becomes this one. */
const LARGEST_HALF = 65504;

/**
 * Converts a model to FP16: weights, and values between layers. Inputs and outputs of the model keep their types, so
 * clients notice nothing but the precision. Layers of {@link FLOAT_OPERATORS}, of `keep`, and those with weights that
 * FP16 does not hold compute in FP32 between two casts.
 */
export function convertToHalf(model: OnnxModel, options: LayerOptions = {}): VariantChanges {
  const choice = new LayerChoice(options);
  const { graph } = model.message;
  const types = valueTypes(graph);
  const conversion = new HalfConversion(model, choice);
  conversion.graph(new GraphEditor(model, graph), types);
  dropUnused(graph);
  forgetTypes(graph);
  return { layers: choice.layers };
}

class HalfConversion {
  constructor(
    private readonly model: OnnxModel,
    private readonly choice: LayerChoice,
  ) {}

  /**
   * Converts a graph. Between its layers, every FLOAT becomes FLOAT16 under the same name. The outputs of the model,
   * and the inputs, get other names inside.
   */
  graph(editor: GraphEditor, types: ValueTypes): void {
    const { graph } = editor;
    const renamed = editor.isMain ? this.#castEnds(editor, types) : new Map<string, string>();
    const float = new Set(graph.node.filter((node) => this.#isFloat(node, editor)));
    const kept = graph.initializer.filter((tensor) => isKeptWeight(tensor, editor, float));
    for (const tensor of graph.initializer) if (!kept.includes(tensor)) this.#halve(tensor);
    if (!editor.isMain)
      for (const value of [...graph.input, ...graph.output]) halveType(value.type?.tensorType);
    for (const node of graph.node) {
      // The types are those before the conversion, so they are found by the names of then.
      if (!float.has(node)) this.#convert(node, editor, types);
      else {
        const [before, after] = this.#inFloat(node, editor, types);
        editor.replace(node, [...before, node, ...after]);
      }
    }
    for (const node of graph.node) for (const one of editor.replacements(node)) rename(one, renamed);
    editor.finish();
  }

  /** Puts casts behind the FLOAT inputs of the model and before its outputs. @returns names of the values between */
  #castEnds(editor: GraphEditor, types: ValueTypes): Map<string, string> {
    const renamed = new Map<string, string>();
    const { graph } = editor;
    const constants = new Set(graph.initializer.map(({ name }) => name));
    const isFloat = (name: string) => types.get(name) === ELEMENT.FLOAT;
    const head: NodeMessage[] = [];
    for (const { name } of graph.input) {
      if (!isFloat(name) || constants.has(name) || editor.consumers(name).length === 0) continue;
      const half = editor.fresh("h");
      renamed.set(name, half);
      head.push(makeNode("Cast", [name], [half], { to: ELEMENT.FLOAT16 }));
    }
    const tail: NodeMessage[] = [];
    for (const { name } of graph.output) {
      if (!isFloat(name)) continue;
      const half = renamed.get(name) ?? editor.fresh("h");
      renamed.set(name, half);
      tail.push(makeNode("Cast", [half], [name], { to: ELEMENT.FLOAT }));
      const weight = graph.initializer.find((tensor) => tensor.name === name);
      if (weight !== undefined) weight.name = half;
    }
    editor.surround(head, tail);
    return renamed;
  }

  #isFloat(node: NodeMessage, editor: GraphEditor): boolean {
    if (innerGraphs(node).length > 0) return false;
    if (this.choice.isKept(node)) return true;
    if (isStandard(node) ? FLOAT_OPERATORS.includes(node.opType) : !HALF_OPERATORS.has(node.opType))
      return true;
    return node.input.some((name) => {
      const weights = editor.constant(name);
      return weights?.dataType === ELEMENT.FLOAT && countOf(weights.dims) > 1 && this.#overflows(weights);
    });
  }

  readonly #overflowing = new Map<TensorMessage, boolean>();

  #overflows(tensor: TensorMessage): boolean {
    let found = this.#overflowing.get(tensor);
    if (found === undefined) {
      found = this.model
        .floatsOf(tensor)!
        .some((value) => Math.abs(value) > LARGEST_HALF && Number.isFinite(value));
      this.#overflowing.set(tensor, found);
    }
    return found;
  }

  /** A layer in FP32: casts before its FLOAT inputs and behind its outputs. */
  #inFloat(node: NodeMessage, editor: GraphEditor, types: ValueTypes): [NodeMessage[], NodeMessage[]] {
    const before: NodeMessage[] = [];
    const after: NodeMessage[] = [];
    node.input = node.input.map((name) => {
      if (types.get(name) !== ELEMENT.FLOAT || editor.constant(name)?.dataType === ELEMENT.FLOAT) return name;
      const float = editor.fresh("f");
      before.push(makeNode("Cast", [name], [float], { to: ELEMENT.FLOAT }));
      return float;
    });
    node.output = node.output.map((name) => {
      if (types.get(name) !== ELEMENT.FLOAT) return name;
      const float = editor.fresh("f");
      after.push(makeNode("Cast", [float], [name], { to: ELEMENT.FLOAT16 }));
      return float;
    });
    return [before, after];
  }

  #convert(node: NodeMessage, editor: GraphEditor, types: ValueTypes): void {
    const touches = [...node.input, ...node.output].some((name) => types.get(name) === ELEMENT.FLOAT);
    for (const attribute of node.attribute) {
      if (attribute.t) this.#halve(attribute.t);
      const namesType =
        attribute.name === "to" || attribute.name === "dtype" || attribute.name === "output_datatype";
      if (namesType && Number(attribute.i) === ELEMENT.FLOAT) attribute.i = ELEMENT.FLOAT16;
    }
    if (isStandard(node) && node.opType === "Constant") this.#halveConstant(node);
    if (isStandard(node) && node.opType === "ConstantOfShape" && attributeOf(node, "value") === undefined) {
      const lists = { floats: [], ints: [], strings: [], tensors: [], graphs: [] };
      const t = makeTensor("", ELEMENT.FLOAT16, [1], new Uint16Array(1));
      node.attribute.push({ ...lists, name: "value", type: 4, t });
    }
    for (const inner of innerGraphs(node)) {
      this.graph(new GraphEditor(this.model, inner, editor), valueTypes(inner, types));
    }
    if (touches) this.choice.changed(node);
  }

  /** `value_float` and `value_floats` of a Constant have no form in FP16, so they become a tensor. */
  #halveConstant(node: NodeMessage): void {
    const attribute = node.attribute.find(({ name }) => name === "value_float" || name === "value_floats");
    if (attribute === undefined) return;
    const values = attribute.name === "value_float" ? [attribute.f ?? 0] : attribute.floats;
    const dims = attribute.name === "value_float" ? [] : [values.length];
    attribute.t = makeTensor("", ELEMENT.FLOAT16, dims, halves(Float32Array.from(values)));
    attribute.name = "value";
    attribute.type = 4;
    attribute.floats = [];
    delete attribute.f;
  }

  #halve(tensor: TensorMessage): void {
    if (tensor.dataType !== ELEMENT.FLOAT) return;
    const { dims, name } = tensor;
    Object.assign(tensor, makeTensor(name, ELEMENT.FLOAT16, dims, halves(this.model.floatsOf(tensor)!)));
    delete tensor.dataLocation;
  }
}

/** FP32 as FP16. Values beyond its range become its largest, infinities and NaN stay. */
function halves(values: Float32Array): Uint16Array {
  const fits = values.every((value) => Math.abs(value) <= LARGEST_HALF || !Number.isFinite(value));
  if (fits) return float32ToFloat16(values);
  const limited = (value: number) =>
    Number.isFinite(value) ? Math.min(LARGEST_HALF, Math.max(-LARGEST_HALF, value)) : value;
  return float32ToFloat16(values.map(limited));
}

function halveType(type: { elemType: number } | undefined): void {
  if (type?.elemType === ELEMENT.FLOAT) type.elemType = ELEMENT.FLOAT16;
}

/** A weight that only layers in FP32 read keeps its type; they then need no cast. */
function isKeptWeight(
  { dataType, name }: TensorMessage,
  editor: GraphEditor,
  float: ReadonlySet<NodeMessage>,
) {
  if (dataType !== ELEMENT.FLOAT || editor.isOutput(name)) return false;
  const consumers = editor.consumers(name);
  return consumers.length > 0 && consumers.every((node) => float.has(node));
}

/** Renames what a node reads and writes, and what the graphs inside of it read. */
function rename(node: NodeMessage, names: ReadonlyMap<string, string>): void {
  if (names.size === 0) return;
  const renamed = (name: string) => names.get(name) ?? name;
  node.input = node.input.map(renamed);
  node.output = node.output.map(renamed);
  for (const inner of innerGraphs(node)) renameInside(inner, names);
}

function renameInside(graph: GraphMessage, names: ReadonlyMap<string, string>): void {
  const own = new Set([...graph.input, ...graph.initializer].map(({ name }) => name));
  for (const { output } of graph.node) for (const name of output) own.add(name);
  const visible = new Map([...names].filter(([name]) => !own.has(name)));
  for (const node of graph.node) rename(node, visible);
  for (const value of graph.output) value.name = visible.get(value.name) ?? value.name;
}

/**
 * Stores the weights of a model in FP16, and computes in FP32: ONNX Runtime converts the weights once, when it loads
 * the model. On processors without FP16 this halves the file at the speed of the original.
 *
 * @param only names of the constants that are stored so; all by default
 */
export function storeInHalf(
  model: OnnxModel,
  options: LayerOptions = {},
  only?: ReadonlySet<string>,
): VariantChanges {
  const choice = new LayerChoice(options);
  GraphEditor.edit(model, (editor) => {
    const casts: NodeMessage[] = [];
    for (const tensor of editor.graph.initializer) {
      if (tensor.dataType !== ELEMENT.FLOAT || !choice.isLarge(tensor)) continue;
      if (only?.has(tensor.name) === false) continue;
      const readers = editor.consumers(tensor.name);
      if (readers.some((node) => choice.isKept(node)) || editor.isOutput(tensor.name)) continue;
      const values = model.floatsOf(tensor)!;
      if (values.some((value) => Math.abs(value) > LARGEST_HALF)) continue;
      const name = editor.add("w", tensor.dims.map(Number), halves(values), ELEMENT.FLOAT16);
      casts.push(makeNode("Cast", [name], [tensor.name], { to: ELEMENT.FLOAT }));
      for (const node of readers) choice.changed(node);
    }
    const made = new Set(casts.map(({ output }) => output[0]));
    editor.graph.initializer = editor.graph.initializer.filter(({ name }) => !made.has(name));
    editor.graph.input = editor.graph.input.filter(({ name }) => !made.has(name));
    editor.surround(casts, []);
  });
  return { layers: [...new Set(choice.layers)] };
}
