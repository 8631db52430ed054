import { floatAttribute, GraphEditor, intAttribute, isStandard, makeNode } from "./graph-editor.js";
import { LayerChoice, type LayerOptions, layerName, type VariantChanges } from "./layer-choice.js";
import { ELEMENT, type NodeMessage, type TensorMessage } from "./onnx-messages.js";
import type { OnnxModel } from "./onnx-model.js";
import { hasVnni } from "./processor.js";
import {
  activationScale,
  layoutOf,
  quantizeWeights,
  type ValueRange,
  type WeightLimit,
} from "./quantization.js";
import { valueTypes } from "./value-types.js";

/** Options of {@link quantizeStatically}. */
interface StaticInt8Options extends LayerOptions {
  /** Ranges of values by name, as calibration found them. A layer whose values have none stays as it is. */
  readonly ranges: ReadonlyMap<string, ValueRange>;
  /** Uses 7 bits of the weights; see `quantizeDynamically`. @default true on such a processor */
  readonly reduceRange?: boolean;
}

/** Layers that compute with int8, and where their weights and channels are. */
const WEIGHTED: Readonly<Record<string, { readonly input: number; readonly axis: number }>> = {
  Conv: { input: 1, axis: 0 },
  ConvTranspose: { input: 1, axis: 1 },
  MatMul: { input: 1, axis: 1 },
  Gemm: { input: 1, axis: 1 },
};

/** Layers that have int8 forms, or only move values. They are quantised where their inputs are. */
const FOLLOWING: ReadonlySet<string> = new Set([
  "Add",
  "AveragePool",
  "Concat",
  "Flatten",
  "GlobalAveragePool",
  "MaxPool",
  "Mul",
  "Relu",
  "Reshape",
  "Squeeze",
  "Transpose",
  "Unsqueeze",
]);

/** First version of ONNX's operators with QuantizeLinear; scales by channel came with 13. */
export const STATIC_OPSET = 10;
const CHANNELS_OPSET = 13;

/** Values whose ranges {@link quantizeStatically} needs: inputs and outputs of the layers that it changes. */
export function valuesToCalibrate(model: OnnxModel, options: LayerOptions = {}): string[] {
  const editor = new GraphEditor(model, model.message.graph);
  return [...quantizedValues(editor, new LayerChoice(options))];
}

/**
 * Quantises layers by ranges that are known beforehand: QuantizeLinear and DequantizeLinear stand around each value, and
 * ONNX Runtime replaces what they enclose by integer kernels. Weights have a scale for each channel, biases are int32.
 * Convolutions gain most: their inputs need no pass that finds the range.
 */
export function quantizeStatically(model: OnnxModel, options: StaticInt8Options): VariantChanges {
  const choice = new LayerChoice(options);
  const { graph } = model.message;
  GraphEditor.edit(model, (editor) => {
    if (editor.graph === graph) new StaticQuantizer(editor, choice, options).run();
  });
  return { layers: choice.layers };
}

function isWeighted(node: NodeMessage, editor: GraphEditor, choice: LayerChoice): boolean {
  const place = Object.hasOwn(WEIGHTED, node.opType) ? WEIGHTED[node.opType] : undefined;
  if (place === undefined || !isStandard(node) || choice.isKept(node)) return false;
  const weights = editor.constant(node.input[place.input]);
  if (weights === undefined || weights.dataType !== ELEMENT.FLOAT || !choice.isLarge(weights)) return false;
  if (node.opType === "MatMul" && weights.dims.length !== 2) return false;
  return (
    node.opType !== "Gemm" ||
    (intAttribute(node, "transA", 0) === 0 && floatAttribute(node, "alpha", 1) === 1)
  );
}

/** Inputs and outputs of weighted layers, and those of the layers that follow one. */
function quantizedValues(editor: GraphEditor, choice: LayerChoice): Set<string> {
  const values = new Set<string>();
  const types = valueTypes(editor.graph);
  for (const node of editor.graph.node) {
    if (isWeighted(node, editor, choice)) {
      values.add(node.input[0]!);
      values.add(rectified(node, editor));
    } else if (isStandard(node) && FOLLOWING.has(node.opType) && !choice.isKept(node)) {
      const inputs = node.input.filter((name) => types.get(name) === ELEMENT.FLOAT && !editor.constant(name));
      if (inputs.length === 0 || !inputs.some((name) => values.has(name))) continue;
      const joins = node.opType === "Add" || node.opType === "Mul" || node.opType === "Concat";
      if (joins && !inputs.every((name) => values.has(name))) continue;
      values.add(rectified(node, editor));
    }
  }
  return values;
}

/** The output of a layer, or that of the Relu behind it: a zero point at the least value does what the Relu does. */
function rectified({ output }: NodeMessage, editor: GraphEditor): string {
  const [name] = output as [string];
  const [reader, ...others] = editor.consumers(name);
  const isAlone =
    others.length === 0 && reader?.opType === "Relu" && isStandard(reader) && !editor.isOutput(name);
  return isAlone ? reader.output[0]! : name;
}

class StaticQuantizer {
  readonly #values: Set<string>;
  /** Names of the values after DequantizeLinear. */
  readonly #dequantized = new Map<string, string>();
  readonly #limit: WeightLimit;
  readonly #hasChannels: boolean;
  readonly #ranges: ReadonlyMap<string, ValueRange>;

  constructor(
    private readonly editor: GraphEditor,
    private readonly choice: LayerChoice,
    { ranges, reduceRange }: StaticInt8Options,
  ) {
    this.#ranges = ranges;
    this.#limit = (reduceRange ?? !hasVnni()) ? 64 : 127;
    this.#hasChannels = editor.model.opset() >= CHANNELS_OPSET;
    this.#values = new Set([...quantizedValues(editor, choice)].filter((name) => ranges.has(name)));
  }

  run(): void {
    const { editor } = this;
    const head: NodeMessage[] = [];
    for (const { name } of editor.graph.input) if (this.#values.has(name)) head.push(...this.#pair(name));
    for (const node of editor.graph.node) {
      const input = node.input.map((name) => this.#dequantized.get(name) ?? name);
      const isLayer = isWeighted(node, editor, this.choice) && this.#dequantized.has(node.input[0]!);
      const [before, changed] = isLayer ? this.#withWeights({ ...node, input }) : [[], { ...node, input }];
      if (before.length > 0) this.choice.layers.push(layerName(node));
      const after = node.output.flatMap((name) => (this.#values.has(name) ? this.#pair(name) : []));
      editor.replace(node, [...before, changed, ...after]);
    }
    editor.surround(head, []);
  }

  /** QuantizeLinear and DequantizeLinear of a value. Graphs inside and outputs of the model keep the value itself. */
  #pair(name: string): NodeMessage[] {
    const { scale, zeroPoint } = activationScale(this.#ranges.get(name)!);
    const constants = [
      this.editor.add("s", [], Float32Array.of(scale)),
      this.editor.add("z", [], Uint8Array.of(zeroPoint)),
    ];
    const [quantized, floats] = [this.editor.fresh("q"), this.editor.fresh("d")];
    this.#dequantized.set(name, floats);
    return [
      makeNode("QuantizeLinear", [name, ...constants], [quantized]),
      makeNode("DequantizeLinear", [quantized, ...constants], [floats]),
    ];
  }

  #withWeights(node: NodeMessage): [before: NodeMessage[], node: NodeMessage] {
    const { input: place, axis } = WEIGHTED[node.opType]!;
    const weights = this.editor.constant(node.input[place])!;
    const isTurned = node.opType === "Gemm" && intAttribute(node, "transB", 0) === 1;
    const channels = this.#hasChannels ? (isTurned ? 0 : axis) : undefined;
    const stored = this.#weights(weights, channels);
    if (stored === undefined) return [[], node];
    const input = node.input.with(place, stored.floats);
    const bias = this.#bias(node, stored.scales);
    if (bias === undefined) return [[stored.node], { ...node, input }];
    return [[stored.node, bias], { ...node, input: input.with(2, bias.output[0]!) }];
  }

  readonly #stored = new Map<
    string,
    { node: NodeMessage; floats: string; scales: Float32Array } | undefined
  >();

  #weights(tensor: TensorMessage, channels: number | undefined) {
    const known = this.#stored.get(tensor.name);
    // Each layer has a DequantizeLinear of its own, so that ONNX Runtime finds it beside the layer.
    const floats = this.editor.fresh("f");
    if (known !== undefined) {
      return { ...known, floats, node: { ...known.node, output: [floats] } };
    }
    const dims = tensor.dims.map(Number);
    const layout = layoutOf(dims, channels);
    const quantized = quantizeWeights(this.editor.model.floatsOf(tensor)!, layout, this.#limit);
    if (quantized === undefined) return undefined;
    const names = [
      this.editor.add("w", dims, quantized.values),
      this.editor.add("s", channels === undefined ? [] : [layout.channels], quantized.scales),
      // ONNX Runtime joins only what has a zero point.
      this.editor.add("z", channels === undefined ? [] : [layout.channels], new Int8Array(layout.channels)),
    ];
    const attributes = channels === undefined ? {} : { axis: channels };
    const node = makeNode("DequantizeLinear", names, [floats], attributes);
    const stored = { node, floats, scales: quantized.scales };
    this.#stored.set(tensor.name, stored);
    return stored;
  }

  /** The bias in int32, with the scale of the products that it is added to: that of the input times that of the weights. */
  #bias(node: NodeMessage, scales: Float32Array): NodeMessage | undefined {
    const { editor } = this;
    const isPlain =
      node.opType === "Conv" || (node.opType === "Gemm" && floatAttribute(node, "beta", 1) === 1);
    const floats = isPlain ? editor.floats(node.input[2]) : undefined;
    const original = [...this.#dequantized].find(([, name]) => name === node.input[0])?.[0];
    const range = original === undefined ? undefined : this.#ranges.get(original);
    if (floats === undefined || range === undefined || floats.length < scales.length) return undefined;
    const { scale } = activationScale(range);
    const products = scales.map((one) => one * scale);
    const scaleOf = (i: number) => products[products.length === 1 ? 0 : i]!;
    const values = Int32Array.from(floats, (value, i) => Math.round(value / scaleOf(i)));
    if (floats.some((value, i) => !(Math.abs(value / scaleOf(i)) < 2 ** 31))) return undefined;
    const isWhole = products.length === 1;
    const names = [
      editor.add("b", [floats.length], values),
      editor.add("s", isWhole ? [] : [products.length], products),
    ];
    return makeNode("DequantizeLinear", names, [editor.fresh("f")], isWhole ? {} : { axis: 0 });
  }
}
