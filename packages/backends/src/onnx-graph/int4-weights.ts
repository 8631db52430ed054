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
import { LayerChoice, type LayerOptions, type VariantChanges } from "./layer-choice.js";
import { ELEMENT, type NodeMessage, type TensorMessage } from "./onnx-messages.js";
import type { OnnxModel } from "./onnx-model.js";
import { quantizeBlocks } from "./quantization.js";

/** Options of {@link quantizeWeightsToInt4}. */
interface Int4Options extends LayerOptions {
  /** Weights of a column that share a scale: a power of two from 16. @default 32 */
  readonly blockSize?: 16 | 32 | 64 | 128 | 256;
  /**
   * How ONNX Runtime computes: 4 quantises the inputs of a layer to int8, which is fastest on processors; 1 keeps them
   * in FP32; 0 leaves the choice to it.
   * @default 4
   */
  readonly accuracyLevel?: 0 | 1 | 2 | 3 | 4;
}

/**
 * Stores the weights of matrix products, and the rows of tables, in 4 bits with a scale for each block of a column. MatMul
 * and Gemm become ONNX Runtime's MatMulNBits; a Gather of rows becomes its GatherBlockQuantized.
 */
export function quantizeWeightsToInt4(model: OnnxModel, options: Int4Options = {}): VariantChanges {
  const { blockSize = 32, accuracyLevel = 4 } = options;
  const choice = new LayerChoice(options);
  GraphEditor.edit(model, (editor) => {
    const quantizer = new BlockQuantizer(editor, choice, blockSize, accuracyLevel);
    for (const node of editor.graph.node) {
      if (!isStandard(node) || choice.isKept(node)) continue;
      const nodes = quantizer.rewrite(node);
      if (nodes === undefined) continue;
      editor.replace(node, nodes);
      choice.changed(node);
    }
  });
  if (choice.layers.length > 0) importDomain(model, MICROSOFT, 1);
  return { layers: choice.layers };
}

/** Smallest block that MatMulNBits takes. */
const SMALLEST_BLOCK = 16;

class BlockQuantizer {
  /** Names of the numbers and the scales by the constant and its orientation: layers may share weights. */
  readonly #made = new Map<string, readonly [values: string, scales: string] | undefined>();

  constructor(
    private readonly editor: GraphEditor,
    private readonly choice: LayerChoice,
    private readonly blockSize: number,
    private readonly accuracyLevel: number,
  ) {}

  rewrite(node: NodeMessage): NodeMessage[] | undefined {
    if (node.opType === "MatMul") return this.#product(node, this.#matrix(node.input[1]), false, 1);
    if (node.opType === "Gemm") return this.#gemm(node);
    return node.opType === "Gather" ? this.#rows(node) : undefined;
  }

  #gemm(node: NodeMessage): NodeMessage[] | undefined {
    if (intAttribute(node, "transA", 0) === 1) return undefined;
    const isTransposed = intAttribute(node, "transB", 0) === 1;
    const factor = floatAttribute(node, "alpha", 1);
    const [, , bias = ""] = node.input;
    if (bias === "") return this.#product(node, this.#matrix(node.input[1]), isTransposed, factor);
    const product = this.editor.fresh("p");
    const nodes = this.#product(
      { ...node, output: [product] },
      this.#matrix(node.input[1]),
      isTransposed,
      factor,
    );
    return nodes && [...nodes, ...addBias(this.editor, node, product)];
  }

  #product(
    { input, output }: NodeMessage,
    tensor: TensorMessage | undefined,
    isTransposed: boolean,
    factor: number,
  ): NodeMessage[] | undefined {
    if (tensor === undefined) return undefined;
    const { accuracyLevel } = this;
    const [first, second] = tensor.dims.map(Number) as [number, number];
    const [rows, columns] = isTransposed ? [second, first] : [first, second];
    // A short column has a smaller block, so that it is not stored with padding.
    let { blockSize } = this;
    while (blockSize > SMALLEST_BLOCK && blockSize > rows) blockSize /= 2;
    if (rows < SMALLEST_BLOCK) return undefined;
    const names = this.#once(`${tensor.name} ${isTransposed} ${factor}`, () => {
      const weights = this.editor.model.floatsOf(tensor)!;
      const at = isTransposed
        ? (row: number, column: number) => weights[column * rows + row]!
        : (row: number, column: number) => weights[row * columns + column]!;
      const made = quantizeBlocks(at, rows, columns, blockSize);
      if (made === undefined) return undefined;
      const scales = made.scales.map((scale) => scale * factor);
      return [
        this.editor.add("w", [columns, made.blocks, blockSize / 2], made.packed),
        this.editor.addFloats("s", [columns * made.blocks], scales, tensor.dataType === ELEMENT.FLOAT16),
      ];
    });
    if (names === undefined) return undefined;
    const attributes = {
      K: rows,
      N: columns,
      bits: 4,
      block_size: blockSize,
      ...(accuracyLevel > 0 && { accuracy_level: accuracyLevel }),
    };
    return [makeNode("MatMulNBits", [input[0]!, ...names], output, attributes, MICROSOFT)];
  }

  /** Rows of a table: a row is a column of the product with the turned table, so the blocks are the same. */
  #rows(node: NodeMessage): NodeMessage[] | undefined {
    const { blockSize } = this;
    const table = this.#matrix(node.input[0]);
    if (table === undefined || intAttribute(node, "axis", 0) !== 0) return undefined;
    const [count, width] = table.dims.map(Number) as [number, number];
    if (width % blockSize !== 0) return undefined;
    const names = this.#once(`${table.name} rows`, () => {
      const weights = this.editor.model.floatsOf(table)!;
      const made = quantizeBlocks((row, column) => weights[column * width + row]!, width, count, blockSize);
      if (made === undefined) return undefined;
      const isHalf = table.dataType === ELEMENT.FLOAT16;
      return [
        this.editor.add("w", [count, width / 2], made.packed),
        this.editor.addFloats("s", [count, made.blocks], made.scales, isHalf),
      ];
    });
    if (names === undefined) return undefined;
    const attributes = { bits: 4, block_size: blockSize, gather_axis: 0, quantize_axis: 1 };
    const inputs = [names[0], node.input[1]!, names[1]];
    return [makeNode("GatherBlockQuantized", inputs, node.output, attributes, MICROSOFT)];
  }

  #matrix(name: string | undefined): TensorMessage | undefined {
    const tensor = this.editor.constant(name);
    if (tensor === undefined || tensor.dims.length !== 2 || !this.choice.isLarge(tensor)) return undefined;
    return tensor.dataType === ELEMENT.FLOAT || tensor.dataType === ELEMENT.FLOAT16 ? tensor : undefined;
  }

  #once(key: string, make: () => readonly [string, string] | undefined) {
    if (!this.#made.has(key)) this.#made.set(key, make());
    return this.#made.get(key);
  }
}
