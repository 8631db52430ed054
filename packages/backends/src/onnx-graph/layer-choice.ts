import { operatorOf } from "./graph-editor.js";
import type { NodeMessage, TensorMessage } from "./onnx-messages.js";
import { countOf } from "./onnx-model.js";

/** Options of all variants that store weights in fewer bits. */
export interface LayerOptions {
  /** Layers that stay as they are, by the name of the node, of its first output, or of its operator. @default none */
  readonly keep?: readonly string[];
  /** Weights with fewer elements stay as they are: scales would take what the integers save. @default 256 */
  readonly minElements?: number;
}

/** Changes that a variant made to a model. */
export interface VariantChanges {
  /** Layers that were changed, by {@link layerName}. */
  readonly layers: readonly string[];
}

/** The name of a layer: that of its node, or of its first output. */
export function layerName(node: NodeMessage): string {
  return node.name || node.output.find((name) => name !== "") || operatorOf(node);
}

/** Chooses the layers of a variant, and remembers those that it changed. */
export class LayerChoice {
  readonly layers: string[] = [];
  readonly #keep: ReadonlySet<string>;
  readonly #minElements: number;

  constructor({ keep = [], minElements = 256 }: LayerOptions) {
    this.#keep = new Set(keep);
    this.#minElements = minElements;
  }

  isKept(node: NodeMessage): boolean {
    return [node.name, node.output[0], node.opType, operatorOf(node)].some(
      (name) => name !== undefined && this.#keep.has(name),
    );
  }

  isLarge({ dims }: TensorMessage): boolean {
    return countOf(dims) >= this.#minElements;
  }

  changed(node: NodeMessage): void {
    this.layers.push(layerName(node));
  }
}
