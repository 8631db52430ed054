import { mergeInputs, type Tensors } from "../batch/merge-inputs.js";
import { splitOutputs } from "../batch/split-outputs.js";
import { divideParameters } from "../response/response-parameters.js";
import type { CallbackExecution } from "./executor.js";

/** Joins the inputs of an execution, for a model that takes the batch as a whole. */
export function joinInputs({ requests, mergedInputs, layout }: CallbackExecution): Tensors {
  if (mergedInputs !== undefined) return mergedInputs;
  const inputs = requests.map((request) => request.inputs);
  return layout === undefined ? mergeInputs(inputs) : layout.merge(inputs);
}

/** Splits the outputs of such a model among the requests. */
export function divideOutputs(
  { requests, layout }: Pick<CallbackExecution, "requests" | "layout">,
  outputs: Tensors,
): Tensors[] {
  const rows = requests.map((request) => request.rows);
  const inputs = requests.map((request) => request.inputs);
  const divided = layout === undefined ? splitOutputs(outputs, rows) : layout.split(outputs, inputs, rows);
  return divideParameters(outputs, divided);
}
