import type { ExecutionResult, WorkerBatch, WorkerModel } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import type { AudioPlan } from "./audio-options.js";
import { AudioPreparer } from "./audio-preparer.js";
import { filesOf } from "./media-parameters.js";

/** Data that a worker thread gets. */
export interface AudioData {
  readonly plan: AudioPlan;
  readonly hasRows: boolean;
}

/** Entry of worker threads that prepare audio. */
export async function load(data: unknown): Promise<WorkerModel> {
  const { plan, hasRows } = data as AudioData;
  const preparer = new AudioPreparer(plan);
  return {
    ownsOutputs: true,
    execute: async ({ inputs, rows, requests }: WorkerBatch) => {
      const files = filesOf(inputs.get(plan.inputName), plan.inputName, hasRows);
      const separate: ExecutionResult[] = [];
      let first = 0;
      for (const [index, count] of rows.entries()) {
        // The dims of a model without a batch axis may have an axis of rows.
        const own = rows.length === 1 ? files : files.slice(first, first + count);
        first += count;
        // Cancellations arrive between requests.
        if (index > 0) await new Promise((resolve) => setImmediate(resolve));
        separate.push(
          requests[index]?.signal.aborted ? new Map() : attempt(() => preparer.prepare(own, hasRows)),
        );
      }
      return { separate };
    },
  };
}

/** Turns an error into the result of a request. */
function attempt(prepare: () => ExecutionResult): ExecutionResult {
  try {
    return prepare();
  } catch (error) {
    return TritonError.from(error);
  }
}
