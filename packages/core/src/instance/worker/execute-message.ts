import { requestInfo } from "../../request/request-info.js";
import type { Allocate } from "../../tensor/concat.js";
import type { Execution } from "../executor.js";
import { joinInputsIn } from "../join-batch.js";
import type { BatchMemory } from "./batch-memory.js";
import { packTensors, type ToWorker, type WireInputs } from "./messages.js";
import type { WorkerProgram } from "./worker-program.js";

/**
 * Makes the message that gives a batch to its worker, and records that the inputs are ready.
 *
 * @param batch number of the batch
 * @param transfer receives the buffers that may be transferred
 * @param memory lends the buffers of the inputs
 * @throws TritonError if the inputs cannot be joined
 */
export function executeMessage(
  batch: number,
  execution: Execution,
  program: WorkerProgram,
  transfer: ArrayBuffer[],
  memory?: BatchMemory,
): Extract<ToWorker, { type: "execute" }> {
  const { requests } = execution;
  const allocate: Allocate | undefined =
    memory &&
    ((byteSize) => {
      const bytes = memory.allocate(byteSize);
      transfer.push(bytes.buffer);
      return bytes;
    });
  const inputs = packInputs(execution, program.joins ?? false, transfer, allocate);
  execution.inputsReady();
  const rows = requests.map((one) => one.rows);
  const known = program.tensorsOnly === true ? {} : { requests: requests.map(requestInfo) };
  return { type: "execute", batch, ...inputs, rows, ...known, lendsInputs: memory !== undefined };
}

/**
 * Packs the inputs of a batch.
 *
 * @param joins true if the worker itself joins requests that are not joined by rows
 * @param transfer receives the buffers that may be transferred
 */
function packInputs(
  execution: Execution,
  joins: boolean,
  transfer: ArrayBuffer[],
  allocate: Allocate | undefined,
): WireInputs {
  const { requests, layout } = execution;
  if (layout !== undefined && joins) {
    const parts = requests.map(({ inputs }) => packTensors(inputs, transfer, false));
    return { inputs: [], parts, padding: layout.padding };
  }
  const joined = joinInputsIn(execution, allocate && (() => allocate));
  const inputs = packTensors(joined, transfer, requests.length > 1 && layout === undefined, allocate);
  return layout === undefined ? { inputs } : { inputs, indivisible: true };
}
