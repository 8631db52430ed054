import type { Execution } from "../executor.js";
import { joinInputs } from "../join-batch.js";
import { packTensors, type WireInputs } from "./messages.js";

/**
 * Packs the inputs of a batch.
 *
 * @param joins true if the worker itself joins requests that are not joined by rows
 * @param transfer receives the buffers that may be transferred
 */
export function packInputs(execution: Execution, joins: boolean, transfer: ArrayBuffer[]): WireInputs {
  const { requests, layout } = execution;
  if (layout !== undefined && joins) {
    const parts = requests.map(({ inputs }) => packTensors(inputs, transfer, false));
    return { inputs: [], parts, padding: layout.padding };
  }
  const inputs = packTensors(joinInputs(execution), transfer, requests.length > 1 && layout === undefined);
  return layout === undefined ? { inputs } : { inputs, indivisible: true };
}
