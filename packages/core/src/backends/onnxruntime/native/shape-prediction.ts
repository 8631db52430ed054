import type { NativeTensor } from "./native-tensors.js";

/**
 * Predicts the shapes of outputs from those of inputs: of fixed dimensions, and of dimensions whose name an input has
 * too. ONNX Runtime then writes such outputs to memory of ours, which need not be copied.
 */
export class ShapePrediction {
  /** Input and axis of each name. */
  readonly #sources = new Map<string, { readonly input: string; readonly axis: number }>();

  constructor(inputs: readonly NativeTensor[]) {
    for (const { name: input, dimNames } of inputs) {
      for (const [axis, name] of dimNames.entries()) {
        if (name !== "" && !this.#sources.has(name)) this.#sources.set(name, { input, axis });
      }
    }
  }

  /**
   * The shape of an output, undefined when it cannot be predicted.
   *
   * @param shapeOf the shape of an input in this run
   */
  predict(
    { dims, dimNames }: Pick<NativeTensor, "dims" | "dimNames">,
    shapeOf: (input: string) => readonly number[] | undefined,
  ): readonly number[] | undefined {
    // No dimensions mean a scalar, or an unknown rank.
    if (dims.length === 0) return undefined;
    const shape: number[] = [];
    for (const [axis, size] of dims.entries()) {
      const source = size >= 0 ? undefined : this.#sources.get(dimNames[axis]!);
      const known = size >= 0 ? size : source && shapeOf(source.input)?.[source.axis];
      if (known === undefined) return undefined;
      shape.push(known);
    }
    return shape;
  }
}
