import { type Tensor, TritonError } from "@tritonjs/protocol";
import { type Allocate, concatRows } from "../tensor/concat.js";

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
