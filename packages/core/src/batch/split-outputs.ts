import type { Tensor } from "@tritonjs/protocol";
import { RowSlices } from "../tensor/slice.js";
import type { Tensors } from "./merge-inputs.js";

/**
 * Splits the outputs of a batch into those of each request, as views: `rows[i]` rows for request i, in order. The first
 * axis of every output has as many rows as all requests together.
 */
export function splitOutputs(outputs: Tensors, rows: readonly number[]): Tensors[] {
  if (rows.length === 1) return [outputs];
  const split: Map<string, Tensor>[] = rows.map(() => new Map());
  for (const [name, tensor] of outputs) {
    const slices = new RowSlices(tensor);
    for (let i = 0; i < rows.length; i++) split[i]!.set(name, slices.next(rows[i]!));
  }
  return split;
}
