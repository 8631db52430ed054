import type { Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import { filesOf } from "../parameters/bytes-input.js";
import { type AudioData, attempt } from "./audio-model.js";
import { AudioPreparer } from "./audio-preparer.js";

/** Prepares audio on this thread, one request after another, with a turn of the event loop between them. */
export class InlineAudioExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly takesAnyBatchSize = true;
  readonly details = {};
  readonly #preparer: AudioPreparer;

  constructor(private readonly data: AudioData) {
    this.#preparer = new AudioPreparer(data.plan);
  }

  async start(): Promise<void> {}

  async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    const { plan, hasRows } = this.data;
    execution.inputsReady();
    const results: ExecutionResult[] = [];
    for (const [index, { inputs }] of execution.requests.entries()) {
      if (index > 0) await new Promise((resolve) => setImmediate(resolve));
      const prepare = () =>
        this.#preparer.prepare(filesOf(inputs.get(plan.inputName), plan.inputName, hasRows), hasRows);
      results.push(execution.isOpen(index) ? attempt(prepare) : new Map());
    }
    execution.outputsReady();
    return results;
  }

  async stop(): Promise<void> {}
}
