import {
  addBias,
  floatAttribute,
  GraphEditor,
  importDomain,
  intAttribute,
  isStandard,
  MICROSOFT,
  makeNode,
} from "./graph-editor.js";
import { storeInHalf } from "./half-precision.js";
import { LayerChoice, type LayerOptions, type VariantChanges } from "./layer-choice.js";
import { ELEMENT, type NodeMessage, type TensorMessage } from "./onnx-messages.js";
import type { OnnxModel } from "./onnx-model.js";
import { hasVnni } from "./processor.js";
import { layoutOf, type QuantizedWeights, quantizeWeights, type WeightLimit } from "./quantization.js";

/** Options of {@link quantizeDynamically}. */
interface DynamicInt8Options extends LayerOptions {
  /**
   * Uses 7 bits of the weights. Processors of x64 without VNNI add two products in 16 bits, which full weights may
   * exceed.
   * @default true on such a processor
   */
  readonly reduceRange?: boolean;
}

/** First version of ONNX's operators with DynamicQuantizeLinear. */
export const DYNAMIC_OPSET = 11;

/** First version of ONNX's operators whose DequantizeLinear has a scale for each channel. */
const CHANNELS_OPSET = 13;

/**
 * Stores the weights of a model as int8, with a scale for each output channel. Matrix products compute with int8: their
 * inputs are quantised by the range that they have in each run. The model needs no calibration.
 *
 * | layer | becomes |
 * |---|---|
 * | MatMul, Gemm | DynamicQuantizeLinear, once for all layers with the input, and MatMulInteger; ONNX Runtime joins them |
 * | Gather of rows | Gather of int8 rows and of their scales |
 * | LSTM | DynamicQuantizeLSTM of ONNX Runtime |
 * | Attention of ONNX Runtime | QAttention |
 * | Conv, ConvTranspose, GRU, RNN | the same with weights that DequantizeLinear makes: integers would be slower |
 */
export function quantizeDynamically(model: OnnxModel, options: DynamicInt8Options = {}): VariantChanges {
  const choice = new LayerChoice(options);
  const limit: WeightLimit = (options.reduceRange ?? !hasVnni()) ? 64 : 127;
  const rows = new Set<string>();
  GraphEditor.edit(model, (editor) => {
    new DynamicQuantizer(editor, choice, limit, rows).run();
  });
  storeInHalf(model, { ...options, minElements: LONG_ROW }, rows);
  return { layers: choice.layers };
}

/** Elements from which scales and biases are stored in FP16, whose error is a tenth of that of int8. */
const LONG_ROW = 256;

/** Smallest number that FP16 has with all of its digits. */
const SMALLEST_HALF = 2 ** -14;

/** The quantised form of a value of one graph. */
interface QuantizedInput {
  readonly values: string;
  readonly scale: string;
  readonly zeroPoint: string;
}

class DynamicQuantizer {
  readonly #inputs = new Map<string, QuantizedInput>();
  readonly #weights = new Map<string, QuantizedTensor | undefined>();
  readonly #opset: number;

  constructor(
    private readonly editor: GraphEditor,
    private readonly choice: LayerChoice,
    private readonly limit: WeightLimit,
    /** Names of the scales and biases that may have fewer bits. */
    private readonly rows: Set<string>,
  ) {
    this.#opset = editor.model.opset();
  }

  run(): void {
    for (const node of this.editor.graph.node) {
      if (this.choice.isKept(node)) continue;
      const nodes = this.#rewrite(node);
      if (nodes === undefined) continue;
      this.editor.replace(node, nodes);
      this.choice.changed(node);
    }
  }

  #rewrite(node: NodeMessage): NodeMessage[] | undefined {
    if (node.domain === MICROSOFT) return node.opType === "Attention" ? this.#attention(node) : undefined;
    if (!isStandard(node)) return undefined;
    switch (node.opType) {
      case "MatMul":
        return this.#matMul(node);
      case "Gemm":
        return this.#gemm(node);
      case "Gather":
        return this.#gather(node);
      case "LSTM":
        return this.#lstm(node);
      case "Conv":
        return this.#stored(node, [[1, 0]]);
      case "ConvTranspose":
        return this.#stored(node, [[1, 1]]);
      case "GRU":
      case "RNN":
        return this.#stored(node, [
          [1, 1],
          [2, 1],
        ]);
      default:
        return undefined;
    }
  }

  #matMul(node: NodeMessage): NodeMessage[] | undefined {
    const weights = this.#large(node.input[1]);
    if (weights === undefined || weights.dims.length < 2 || this.#opset < DYNAMIC_OPSET) return undefined;
    const quantized = this.#quantize(weights, weights.dims.length === 2 ? 1 : undefined);
    if (quantized === undefined) return undefined;
    const [product] = node.output;
    for (const { opType, input } of this.editor.consumers(product!))
      if (opType === "Add") this.#mayShorten(input.find((name) => name !== product));
    return this.#product(node.input[0]!, quantized, product!);
  }

  /** Lets a bias of a quantised layer have fewer bits, if no other layer has it. */
  #mayShorten(bias: string | undefined): void {
    if (bias !== undefined && this.editor.consumers(bias).length === 1) this.rows.add(bias);
  }

  /** The product with an int8 matrix: `output` = scales * (quantised input x matrix). */
  #product(input: string, weights: QuantizedTensor, output: string): NodeMessage[] {
    const { editor } = this;
    const [before, quantized] = this.#input(input);
    const [sums, floats, scales] = [editor.fresh("i"), editor.fresh("f"), editor.fresh("k")];
    return [
      ...before,
      makeNode("MatMulInteger", [quantized.values, weights.values, quantized.zeroPoint], [sums]),
      makeNode("Cast", [sums], [floats], { to: ELEMENT.FLOAT }),
      makeNode("Mul", [quantized.scale, weights.scales], [scales]),
      makeNode("Mul", [floats, scales], [output]),
    ];
  }

  /** A product whose matrix may be transposed, whose factor goes into the scales, and whose bias is added at the end. */
  #gemm(node: NodeMessage): NodeMessage[] | undefined {
    const { editor } = this;
    const weights = this.#large(node.input[1]);
    if (weights === undefined || this.#opset < DYNAMIC_OPSET || intAttribute(node, "transA", 0) === 1)
      return undefined;
    const quantized = this.#quantize(weights, 1, {
      isTransposed: intAttribute(node, "transB", 0) === 1,
      factor: floatAttribute(node, "alpha", 1),
    });
    if (quantized === undefined) return undefined;
    const [input, , bias] = node.input;
    if (bias === undefined || bias === "") return this.#product(input!, quantized, node.output[0]!);
    const product = editor.fresh("p");
    this.#mayShorten(bias);
    return [...this.#product(input!, quantized, product), ...addBias(editor, node, product)];
  }

  /** Rows of a table: each has a scale of its own, because a table's rows differ more than its columns. */
  #gather(node: NodeMessage): NodeMessage[] | undefined {
    const { editor } = this;
    const table = this.#large(node.input[0]);
    if (table === undefined || table.dims.length !== 2 || intAttribute(node, "axis", 0) !== 0)
      return undefined;
    if (Number(table.dims[1]) < SHORTEST_ROW) return undefined;
    const quantized = this.#quantize(table, 0, { scalesOf: ([rows]) => [rows!, 1] });
    if (quantized === undefined) return undefined;
    const indices = node.input[1]!;
    const [rows, floats, scales] = [editor.fresh("r"), editor.fresh("f"), editor.fresh("k")];
    return [
      makeNode("Gather", [quantized.values, indices], [rows]),
      makeNode("Gather", [quantized.scales, indices], [scales]),
      makeNode("Cast", [rows], [floats], { to: ELEMENT.FLOAT }),
      makeNode("Mul", [floats, scales], [node.output[0]!]),
    ];
  }

  #lstm(node: NodeMessage): NodeMessage[] | undefined {
    const { editor } = this;
    const [weights, recurrent] = [this.#large(node.input[1]), this.#large(node.input[2])];
    if (weights === undefined || recurrent === undefined || intAttribute(node, "layout", 0) !== 0)
      return undefined;
    const [w, r] = [this.#recurrent(weights), this.#recurrent(recurrent)];
    if (w === undefined || r === undefined) return undefined;
    importDomain(editor.model, MICROSOFT, 1);
    const input = [...node.input, ...Array<string>(8).fill("")].slice(0, 8);
    input[1] = w.values;
    input[2] = r.values;
    const attribute = node.attribute.filter(({ name }) => name !== "layout");
    const quantized = makeNode(
      "DynamicQuantizeLSTM",
      [...input, w.scales, w.zeroPoints, r.scales, r.zeroPoints],
      node.output,
      {},
      MICROSOFT,
    );
    return [{ ...quantized, attribute }];
  }

  /** `[directions, 4 hidden, size]` as `[directions, size, 4 hidden]` in int8. */
  #recurrent(tensor: TensorMessage) {
    const { editor } = this;
    const [directions, gates, size] = tensor.dims.map(Number) as [number, number, number];
    const weights = editor.model.floatsOf(tensor)!;
    const quantized = quantizeWeights(
      weights,
      { outer: 1, channels: directions * gates, inner: size },
      this.limit,
    );
    if (quantized === undefined) return undefined;
    const turned = new Int8Array(weights.length);
    for (let direction = 0; direction < directions; direction++) {
      const part = direction * gates * size;
      for (let gate = 0; gate < gates; gate++) {
        for (let i = 0; i < size; i++) {
          turned[part + i * gates + gate] = quantized.values[part + gate * size + i]!;
        }
      }
    }
    return {
      values: editor.add("w", [directions, size, gates], turned),
      scales: editor.add("s", [directions, gates], quantized.scales),
      zeroPoints: editor.add("z", [directions, gates], new Int8Array(directions * gates)),
    };
  }

  #attention(node: NodeMessage): NodeMessage[] | undefined {
    const { editor } = this;
    const [input, name, bias, mask = "", past = "", ...others] = node.input;
    const weights = this.#large(name);
    const known = [
      "num_heads",
      "unidirectional",
      "mask_filter_value",
      "do_rotary",
      "past_present_share_buffer",
      "scale",
    ];
    const isKnown =
      node.attribute.every((one) => known.includes(one.name)) && others.every((one) => one === "");
    if (weights === undefined || !isKnown || bias === undefined || bias === "") return undefined;
    const quantized = this.#quantize(weights, undefined);
    if (quantized === undefined) return undefined;
    const [before, { values, scale, zeroPoint }] = this.#input(input!);
    const zero = editor.add("z", [], new Int8Array(1));
    const inputs = [values, quantized.values, bias, scale, quantized.scales, mask, zeroPoint, zero, past];
    const attention = makeNode("QAttention", inputs, node.output, {}, MICROSOFT);
    return [...before, { ...attention, attribute: node.attribute }];
  }

  /** Keeps a node, and stores its weights in int8 with scales along an axis. */
  #stored(
    node: NodeMessage,
    places: readonly (readonly [input: number, axis: number])[],
  ): NodeMessage[] | undefined {
    const input = [...node.input];
    const before: NodeMessage[] = [];
    for (const [index, axis] of places) {
      const weights = this.#large(node.input[index]);
      if (weights === undefined) continue;
      const hasChannels = this.#opset >= CHANNELS_OPSET;
      if (this.#opset < 10) return undefined;
      const quantized = this.#quantize(weights, hasChannels ? axis : undefined);
      if (quantized === undefined) continue;
      const floats = this.editor.fresh("f");
      const attributes = hasChannels ? { axis } : {};
      before.push(makeNode("DequantizeLinear", [quantized.values, quantized.scales], [floats], attributes));
      input[index] = floats;
    }
    return before.length === 0 ? undefined : [...before, { ...node, input }];
  }

  #input(name: string): [before: NodeMessage[], quantized: QuantizedInput] {
    const known = this.#inputs.get(name);
    if (known !== undefined) return [[], known];
    const quantized = {
      values: this.editor.fresh("q"),
      scale: this.editor.fresh("s"),
      zeroPoint: this.editor.fresh("z"),
    };
    this.#inputs.set(name, quantized);
    const outputs = [quantized.values, quantized.scale, quantized.zeroPoint];
    return [[makeNode("DynamicQuantizeLinear", [name], outputs)], quantized];
  }

  /** A constant of floats that is worth quantising. */
  #large(name: string | undefined): TensorMessage | undefined {
    const tensor = this.editor.constant(name);
    return tensor?.dataType === ELEMENT.FLOAT && this.choice.isLarge(tensor) ? tensor : undefined;
  }

  #quantize(
    tensor: TensorMessage,
    axis: number | undefined,
    form: QuantizedForm = {},
  ): QuantizedTensor | undefined {
    const { isTransposed = false, factor = 1, scalesOf } = form;
    const key = `${tensor.name} ${axis} ${isTransposed} ${factor} ${scalesOf !== undefined}`;
    if (this.#weights.has(key)) return this.#weights.get(key);
    const made = this.#newTensor(tensor, axis, form);
    this.#weights.set(key, made);
    return made;
  }

  #newTensor(
    tensor: TensorMessage,
    axis: number | undefined,
    { isTransposed, factor = 1, scalesOf }: QuantizedForm,
  ): QuantizedTensor | undefined {
    const floats = this.editor.model.floatsOf(tensor)!;
    const sizes = tensor.dims.map(Number);
    const dims = isTransposed ? sizes.toReversed() : sizes;
    const weights = isTransposed ? transposed(floats, sizes[0]!, sizes[1]!) : floats;
    const quantized: QuantizedWeights | undefined = quantizeWeights(
      weights,
      layoutOf(dims, axis),
      this.limit,
    );
    if (quantized === undefined) return undefined;
    const scales = factor === 1 ? quantized.scales : quantized.scales.map((scale) => scale * factor);
    const scaleDims = axis === undefined ? [] : (scalesOf?.(dims) ?? [dims[axis]!]);
    const made = {
      values: this.editor.add("w", dims, quantized.values),
      scales: this.editor.add("s", scaleDims, scales),
    };
    if (scales.every((scale) => scale >= SMALLEST_HALF)) this.rows.add(made.scales);
    return made;
  }
}

/** Shortest row of a table that is quantised: a scale takes as much as four integers. */
const SHORTEST_ROW = 16;

/** Names of a quantised constant and of its scales. */
interface QuantizedTensor {
  readonly values: string;
  readonly scales: string;
}

interface QuantizedForm {
  readonly isTransposed?: boolean;
  /** Factor of the scales. */
  readonly factor?: number;
  /** Shape of the scales. @default that of the axis */
  readonly scalesOf?: (dims: readonly number[]) => readonly number[];
}

/** A matrix of `rows` x `columns`, turned. */
function transposed(matrix: Float32Array, rows: number, columns: number): Float32Array {
  const turned = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      turned[column * rows + row] = matrix[row * columns + column]!;
  }
  return turned;
}
