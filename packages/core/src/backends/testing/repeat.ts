import { type ModelConfig, shapeToString, Tensor, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import { sleep } from "../../clock/sleep.js";

import type { Backend, BackendFactory } from "../../instance/backend.js";
import type { Execution } from "../../instance/executor.js";

import { checkTensors, type FixedTensor } from "./check-tensors.js";
import { RespondingExecutor } from "./responding-executor.js";

const INPUTS: readonly FixedTensor[] = [
  { name: "IN", dataType: "TYPE_INT32", size: "any" },
  { name: "DELAY", dataType: "TYPE_UINT32", size: "any" },
  { name: "WAIT", dataType: "TYPE_UINT32", size: "one" },
];

const OUTPUTS: readonly FixedTensor[] = [
  { name: "OUT", dataType: "TYPE_INT32", size: "one" },
  { name: "IDX", dataType: "TYPE_UINT32", size: "one" },
];

/**
 * The backend `repeat`, for tests of decoupled models. It sends one response for each element of `IN`, after the number
 * of milliseconds in `DELAY`. The instance is free after the `WAIT` milliseconds of its slowest request. A cancelled
 * request ends both at once, and so does the end of the model.
 */
export const repeatBackend: BackendFactory = (): Backend => ({
  backendName: "repeat",
  platform: "",
  describe: () => undefined,
  checkConfig,
  createExecutor: ({ clock }) =>
    new RespondingExecutor(
      (execution, index) => repeat(clock, execution, index),
      (execution, signal) => sleep(clock, longestWait(execution), signal),
    ),
});

function checkConfig(config: ModelConfig): void {
  if (config.maxBatchSize !== 0) {
    throw new TritonError("INVALID_ARG", "repeat backend only supports models with max_batch_size == 0", {
      reason: "INVALID_CONFIG",
    });
  }
  checkTensors(config, INPUTS, OUTPUTS);
  assertAlike(config.input[0]!.dims, config.input[1]!.dims);
}

function assertAlike(values: readonly number[], delays: readonly number[]): void {
  const [a, b] = [shapeToString(values), shapeToString(delays)];
  if (a !== b) {
    throw new TritonError("INVALID_ARG", `expected IN and DELAY shape to match, got ${a} and ${b}`, {
      reason: "INVALID_INPUT",
    });
  }
}

function longestWait({ requests }: Execution): number {
  return Math.max(0, ...requests.map(({ inputs }) => numbers(inputs.get("WAIT"))[0] ?? 0));
}

async function repeat(clock: Clock, execution: Execution, index: number): Promise<void> {
  const { inputs, signal } = execution.requests[index]!;
  const [values, delays] = [inputs.get("IN")!, inputs.get("DELAY")!];
  assertAlike(values.shape, delays.shape);
  const [elements, times] = [numbers(values), numbers(delays)];
  for (const [i, value] of elements.entries()) {
    await sleep(clock, times[i]!, signal);
    if (!execution.isOpen(index)) return;
    execution.send(
      index,
      new Map([
        ["OUT", Tensor.fromElements("INT32", [1], new Int32Array([value]))],
        ["IDX", Tensor.fromElements("UINT32", [1], new Uint32Array([i]))],
      ]),
    );
    await execution.writable(index);
  }
}

function numbers(tensor: Tensor | undefined): number[] {
  return tensor === undefined ? [] : [...(tensor.elements as Int32Array | Uint32Array)];
}
