import { type Tensor, TritonError } from "@tritonjs/protocol";
import { divideParameters } from "../request/inference-response.js";
import { type Allocate, concatRows, RowSlices } from "../tensor-rows.js";

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
  for (const { size } of requests) if (size !== first.size) throw otherNames();
  const merged = new Map<string, Tensor>();
  for (const name of first.keys()) {
    const tensors = requests.map((inputs) => {
      const tensor = inputs.get(name);
      if (tensor === undefined) throw otherNames();
      return tensor;
    });
    merged.set(name, concatRows(tensors, allocate?.(name)));
  }
  return merged;
}

function otherNames(): TritonError {
  return new TritonError("INTERNAL", "Cannot batch requests with different set of inputs keys");
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

/** The parts of an execution from which its batch is joined, and by which outputs are divided. */
interface JoinedExecution {
  readonly requests: readonly { readonly inputs: Tensors; readonly rows: number }[];
  readonly mergedInputs?: Tensors;
  readonly layout?:
    | {
        merge(inputs: readonly Tensors[]): Tensors;
        split(outputs: Tensors, inputs: readonly Tensors[], rows: readonly number[]): Tensors[];
      }
    | undefined;
}

/**
 * Joins the inputs of an execution, for a model that takes the batch as a whole: by rows, or by the rules of the
 * execution's layout. The inputs of a single request are returned as they are.
 *
 * @throws TritonError INVALID_ARG for requests that cannot be joined.
 * @example
 * ```ts
 * async execute(execution) {
 *   const outputs = await this.#run(joinInputs(execution)); // a Map from names to tensors of the whole batch
 *   return divideOutputs(execution, outputs);
 * }
 * ```
 */
export function joinInputs(execution: JoinedExecution): Tensors {
  return joinInputsIn(execution, undefined);
}

/**
 * Works as {@link joinInputs}. Inputs that are joined by rows lie in memory of the caller.
 *
 * @param allocate gives the memory of an input by its name; by default it is new
 */
export function joinInputsIn(
  { requests, mergedInputs, layout }: JoinedExecution,
  allocate: ((name: string) => Allocate) | undefined,
): Tensors {
  if (mergedInputs !== undefined) return mergedInputs;
  if (requests.length === 1 && layout === undefined) return requests[0]!.inputs;
  const inputs = requests.map((request) => request.inputs);
  return layout === undefined ? mergeInputs(inputs, allocate) : layout.merge(inputs);
}

/** Splits the outputs of such a model among the requests, as views, in the order of the requests. */
export function divideOutputs({ requests, layout }: JoinedExecution, outputs: Tensors): Tensors[] {
  if (requests.length === 1 && layout === undefined) return [outputs];
  const rows = requests.map((request) => request.rows);
  const inputs = requests.map((request) => request.inputs);
  const divided = layout === undefined ? splitOutputs(outputs, rows) : layout.split(outputs, inputs, rows);
  return divideParameters(outputs, divided);
}
