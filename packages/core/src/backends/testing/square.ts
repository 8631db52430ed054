import { type ModelConfig, Tensor, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import { sleep } from "../../clock/sleep.js";

import type { Backend, BackendFactory } from "../../instance/backend.js";
import type { Execution } from "../../instance/executor.js";

import { checkTensors, type FixedTensor } from "./check-tensors.js";
import { RespondingExecutor } from "./responding-executor.js";

const INPUTS: readonly FixedTensor[] = [{ name: "IN", dataType: "TYPE_INT32", size: "one" }];
const OUTPUTS: readonly FixedTensor[] = [{ name: "OUT", dataType: "TYPE_INT32", size: "one" }];

/**
 * The backend `square`, for tests of decoupled models. `IN` is the number of responses and the value of each. The
 * parameters `CUSTOM_INFER_DELAY_NS` and `CUSTOM_OUTPUT_DELAY_NS` delay each response. The last `CUSTOM_EMPTY_COUNT`
 * responses are left out, and the `CUSTOM_FAIL_COUNT` before them are errors.
 */
export const squareBackend: BackendFactory = (): Backend => ({
  backendName: "square",
  platform: "",
  describe: () => undefined,
  checkConfig: (config) => checkTensors(config, INPUTS, OUTPUTS),
  createExecutor: ({ clock, info }) => {
    const play = readParameters(info.modelConfig);
    return new RespondingExecutor((execution, index) => square(clock, play, execution, index));
  },
});

interface Play {
  readonly delayMs: number;
  readonly failures: number;
  readonly empty: number;
}

/** Parameters that are not numbers count as absent. */
function readParameters({ parameters }: ModelConfig): Play {
  const read = (key: string) => {
    const text = parameters[key]?.stringValue ?? "";
    return /^\d+$/.test(text) ? Number(text) : 0;
  };
  return {
    delayMs: (read("CUSTOM_INFER_DELAY_NS") + read("CUSTOM_OUTPUT_DELAY_NS")) / 1e6,
    failures: read("CUSTOM_FAIL_COUNT"),
    empty: read("CUSTOM_EMPTY_COUNT"),
  };
}

async function square(clock: Clock, play: Play, execution: Execution, index: number): Promise<void> {
  const { inputs, signal } = execution.requests[index]!;
  const input = inputs.get("IN")!;
  if (input.shape.length === 2 && input.shape[0] !== 1) {
    throw new TritonError("INVALID_ARG", "unexpected shape for IN input", { reason: "INVALID_INPUT" });
  }
  const count = (input.elements as Int32Array)[0] ?? 0;
  const shape = input.shape.map(() => 1);
  for (let i = 0; i < count; i++) {
    await sleep(clock, play.delayMs, signal);
    if (!execution.isOpen(index)) return;
    const left = count - i;
    if (left <= play.empty) continue;
    if (left <= play.empty + play.failures) {
      execution.sendError(index, new TritonError("UNKNOWN", "simulated failure"));
    } else {
      execution.send(index, new Map([["OUT", Tensor.fromElements("INT32", shape, new Int32Array([count]))]]));
    }
    await execution.writable(index);
  }
}
