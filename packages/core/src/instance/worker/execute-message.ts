import { requestInfo } from "../../request/request-info.js";
import type { Execution } from "../executor.js";
import { joinInputs } from "../join-batch.js";
import { packTensors, type ToWorker, type WireInputs } from "./messages.js";
import type { WorkerProgram } from "./worker-program.js";

/**
 * Makes the message that gives a batch to its worker, and records that the inputs are ready.
 *
 * @param batch number of the batch
 * @param transfer receives the buffers that may be transferred
 * @throws TritonError if the inputs cannot be joined
 */
export function executeMessage(
  batch: number,
  execution: Execution,
  program: WorkerProgram,
  transfer: ArrayBuffer[],
): Extract<ToWorker, { type: "execute" }> {
  const { requests } = execution;
  const inputs = packInputs(execution, program.joins ?? false, transfer);
  execution.inputsReady();
  const rows = requests.map((one) => one.rows);
  const known = program.tensorsOnly === true ? {} : { requests: requests.map(requestInfo) };
  return { type: "execute", batch, ...inputs, rows, ...known };
}

/**
 * Packs the inputs of a batch.
 *
 * @param joins true if the worker itself joins requests that are not joined by rows
 * @param transfer receives the buffers that may be transferred
 */
function packInputs(execution: Execution, joins: boolean, transfer: ArrayBuffer[]): WireInputs {
  const { requests, layout } = execution;
  if (layout !== undefined && joins) {
    const parts = requests.map(({ inputs }) => packTensors(inputs, transfer, false));
    return { inputs: [], parts, padding: layout.padding };
  }
  const inputs = packTensors(joinInputs(execution), transfer, requests.length > 1 && layout === undefined);
  return layout === undefined ? { inputs } : { inputs, indivisible: true };
}
