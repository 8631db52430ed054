import { mergeInputs, type Tensors } from "../batch/merge-inputs.js";
import { splitOutputs } from "../batch/split-outputs.js";
import { divideParameters } from "../response/response-parameters.js";
import type { Allocate } from "../tensor/concat.js";
import type { CallbackExecution } from "./executor.js";

/** The parts of an execution from which a batch is joined, or the same parts of some of its requests. */
export type JoinedExecution = Pick<CallbackExecution, "requests" | "mergedInputs" | "layout">;

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
  const inputs = requests.map((request) => request.inputs);
  return layout === undefined ? mergeInputs(inputs, allocate) : layout.merge(inputs);
}

/** Splits the outputs of such a model among the requests, as views, in the order of the requests. */
export function divideOutputs(
  { requests, layout }: Pick<CallbackExecution, "requests" | "layout">,
  outputs: Tensors,
): Tensors[] {
  const rows = requests.map((request) => request.rows);
  const inputs = requests.map((request) => request.inputs);
  const divided = layout === undefined ? splitOutputs(outputs, rows) : layout.split(outputs, inputs, rows);
  return divideParameters(outputs, divided);
}
