import { type Tensor, TritonError } from "@tritonjs/protocol";
import { type Allocate, concatRows, RowSlices } from "../tensor-rows.js";

/** Tensors by name. */
export type Tensors = ReadonlyMap<string, Tensor>;

/**
 * Joins the inputs of several requests along the batch axis into new buffers, so the model cannot change a request's
 * tensors. The inputs of a single request are passed on as they are. The batcher ensures that all requests have the
 * same inputs and dimensions.
 *
 * @param allocate gives the buffer of an input by its name; by default it is new
 * @throws TritonError INTERNAL for requests with different inputs; a callback that accepts them has to group them
 */
export function mergeInputs(requests: readonly Tensors[], allocate?: (name: string) => Allocate): Tensors {
  const first = requests[0]!;
  if (requests.length === 1) return first;
  for (const inputs of requests) {
    if (!hasNamesOf(first, inputs)) {
      throw new TritonError("INTERNAL", "Cannot batch requests with different set of inputs keys");
    }
  }
  const merged = new Map<string, Tensor>();
  for (const name of first.keys()) {
    merged.set(
      name,
      concatRows(
        requests.map((inputs) => inputs.get(name)!),
        allocate?.(name),
      ),
    );
  }
  return merged;
}

function hasNamesOf(first: Tensors, inputs: Tensors): boolean {
  if (inputs.size !== first.size) return false;
  for (const name of first.keys()) if (!inputs.has(name)) return false;
  return true;
}

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
