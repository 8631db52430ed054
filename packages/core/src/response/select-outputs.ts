import type { Tensor } from "@tritonjs/protocol";

type Tensors = ReadonlyMap<string, Tensor>;

/**
 * Selects the outputs that a request asks for, in the model's order.
 *
 * @param names names of all outputs of the model
 * @param requested names of the requested outputs; empty for all
 */
export function selectOutputs(
  outputs: Tensors,
  names: readonly string[],
  requested: readonly string[],
): Tensors {
  // Fast path: most models have one output, and most requests ask for it.
  const isAll = requested.length === 0 && names.length === 1 && outputs.size === 1;
  if (isAll && outputs.has(names[0]!)) return outputs;
  const selected = new Map<string, Tensor>();
  for (const name of names) {
    const tensor = outputs.get(name);
    if (tensor === undefined) continue;
    if (requested.length === 0 || requested.includes(name)) selected.set(name, tensor);
  }
  return selected;
}
