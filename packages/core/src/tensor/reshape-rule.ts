import type { Tensor } from "@tritonjs/protocol";

/**
 * Makes a function that gives a tensor the dimensions `to` in place of `from`. Variable dimensions keep their sizes, in
 * order. A tensor with dimensions other than `from` is returned unchanged.
 *
 * @param batched whether tensors have a batch axis before those dimensions
 */
export function reshapeRule(
  from: readonly number[],
  to: readonly number[],
  batched: boolean,
): (tensor: Tensor) => Tensor {
  const start = batched ? 1 : 0;
  return (tensor) => {
    const { shape } = tensor;
    if (shape.length !== start + from.length) return tensor;
    const sizes: number[] = [];
    for (const [axis, dim] of from.entries()) {
      const size = shape[start + axis]!;
      if (dim === -1) sizes.push(size);
      else if (dim !== size) return tensor;
    }
    let variable = 0;
    const dims = to.map((dim) => (dim === -1 ? sizes[variable++]! : dim));
    return tensor.reshaped(batched ? [shape[0]!, ...dims] : dims);
  };
}
