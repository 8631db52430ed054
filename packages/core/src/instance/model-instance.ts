import type { Payload } from "../batch/payload.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import type { InstancePlacement } from "../config/instances.js";
import { TritonError } from "../errors/triton-error.js";
import type { ExecutionResult, Executor } from "./executor.js";
import { type InstanceOwner, RequestExecution } from "./request-execution.js";

/** One instance of a model: takes a payload, has its executor run it, and sees to it that each request is answered. */
export class ModelInstance {
  /** True while the executor can take a batch. */
  healthy = false;
  /** Why it cannot. */
  unhealthyReason: TritonError | undefined;
  busy = false;
  readonly #owner: InstanceOwner;

  constructor(
    readonly placement: InstancePlacement,
    readonly executor: Executor,
    owner: InstanceOwner,
  ) {
    this.#owner = owner;
  }

  /** Runs a payload to its end. The promise never rejects. */
  async run(payload: Payload): Promise<void> {
    const { requests } = payload;
    const { clock, statistics } = this.#owner;
    for (const request of requests) {
      request.startExecution();
      if (request.ready) statistics.pendingCount--;
    }
    const execution = new RequestExecution(requests, this.#owner);
    const results = await this.#execute(execution);
    execution.end();
    let batchSize = 0;
    for (const request of requests) batchSize += request.rows;
    statistics.recordExecution(batchSize, execution.times, clock.wallNow());
    for (let i = 0; results !== undefined && i < requests.length; i++) {
      const result = results[i]!;
      if (result === RESCHEDULE) execution.reschedule(i);
      else if (TritonError.is(result)) execution.sendError(i, result, true);
      else execution.send(i, result, true);
    }
    for (const request of requests) {
      const again = execution.isRescheduled(request);
      if (again) statistics.pendingCount++;
      request.release(again);
    }
  }

  /** The results, or undefined when the executor answers by itself. */
  async #execute(execution: RequestExecution): Promise<readonly ExecutionResult[] | undefined> {
    try {
      return await this.executor.execute(execution);
    } catch (thrown) {
      const error = TritonError.from(thrown);
      return execution.requests.map(() => error);
    }
  }
}
