import { TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import type { PlannedInstance } from "../config/placement/instances.js";
import { batchFormed, executionsAreTraced, traceExecution } from "../observe/diagnostics/channels.js";
import { batchMessage } from "../observe/diagnostics/diagnosed-request.js";
import type { BatchMessage } from "../observe/diagnostics/messages.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import type { PendingRequest } from "../request/pending-request.js";
import type { ExecutionResult, Executor } from "./executor.js";
import type { InstanceOwner } from "./instance-owner.js";
import type { RateLimitedInstance } from "./rate-limiter/rate-limiter.js";
import { RequestExecution } from "./request-execution.js";

/** One instance of a model: takes a payload, runs it with its executor, and ensures that each request is answered. */
export class ModelInstance {
  /** True while the executor can take a batch. */
  healthy = false;
  /** Why the executor cannot take a batch. */
  unhealthyReason: TritonError | undefined;
  /** Payloads that are running. */
  readonly atWork: Payload[] = [];
  /** Its registration at the rate limiter, while it is loaded and there is a rate limiter. */
  lease: RateLimitedInstance | undefined;
  /** True while its replacement is being created. */
  beingReplaced = false;
  /** Earliest time of its replacement, on the model's clock. */
  staysUntil = Number.NEGATIVE_INFINITY;
  /** Number of requests that it has run. */
  #served = 0;
  readonly #owner: InstanceOwner;

  constructor(
    readonly placement: PlannedInstance,
    readonly executor: Executor,
    owner: InstanceOwner,
  ) {
    this.#owner = owner;
  }

  /** True while a payload is running. */
  get busy(): boolean {
    return this.atWork.length > 0;
  }

  /** Number of payloads that it has places for besides the running ones. */
  get freePlaces(): number {
    return this.healthy ? Math.max(0, (this.executor.capacity ?? 1) - this.atWork.length) : 0;
  }

  /** Number of payloads that it could start now. */
  get room(): number {
    return this.executor.isPausing === true ? 0 : this.freePlaces;
  }

  /** True if it may get its next payload while it is busy. */
  get takesAhead(): boolean {
    const { takesAhead = false } = this.executor;
    return this.healthy && this.busy && this.atWork.length <= Number(takesAhead);
  }

  /** True for an instance that is loaded but takes no payloads. */
  get passive(): boolean {
    return this.placement.group.passive;
  }

  /** True if it is time to replace it. */
  get worn(): boolean {
    const recycle = this.placement.group.hosting?.recycle;
    if (recycle === undefined || this.beingReplaced || this.#owner.clock.now() < this.staysUntil)
      return false;
    const { afterRequests = Number.POSITIVE_INFINITY, aboveMemoryMb = Number.POSITIVE_INFINITY } = recycle;
    return this.#served >= afterRequests || (this.executor.memoryBytes ?? 0) > aboveMemoryMb * 1024 * 1024;
  }

  /**
   * Records whether its executor can take a batch.
   *
   * @param reason why a restart failed; only the first failure since it was healthy is reported
   */
  healthChanged(healthy: boolean, reason: TritonError | undefined): void {
    const isFirst = this.unhealthyReason === undefined;
    this.healthy = healthy;
    this.unhealthyReason = healthy ? undefined : reason;
    if (!healthy && reason !== undefined && isFirst) {
      this.#owner.faults?.restartFailed(this.placement.name, reason);
    }
  }

  /** Runs a payload to its end. The promise never rejects. */
  async run(payload: Payload): Promise<void> {
    const { requests } = payload;
    const { clock, statistics } = this.#owner;
    const { cut } = payload;
    if (cut !== undefined) statistics.cuts.record(cut, payload.batchSize);
    const execution = new RequestExecution(requests, this.#owner);
    for (const request of requests) {
      if (request.trace !== undefined) this.#trace(request.trace, payload);
      request.startExecution(execution);
      if (request.ready) statistics.pendingCount--;
    }
    this.#served += requests.length;
    if (batchFormed.hasSubscribers) batchFormed.publish(this.#shown(requests, payload));
    const results = await (executionsAreTraced()
      ? this.#executeTraced(execution, this.#shown(requests, payload))
      : this.#execute(execution));
    execution.end(results !== undefined);
    let batchSize = 0;
    for (const request of requests) batchSize += request.rows;
    statistics.recordExecution(batchSize, execution.times, clock.wallNow());
    for (let i = 0; results !== undefined && i < requests.length; i++) {
      const result = results[i]!;
      if (result === RESCHEDULE) execution.reschedule(i);
      else if (TritonError.is(result)) execution.sendError(i, result, true);
      else {
        if (this.executor.releasesInputs === true) requests[i]!.inputsUsed();
        execution.send(i, result, true);
      }
    }
    for (const [i, request] of requests.entries()) {
      const again = execution.isRescheduled(i);
      if (again) statistics.pendingCount++;
      request.release(again);
    }
  }

  #trace(trace: RequestTrace, { batchSize, requestCount, cut }: Payload): void {
    trace.batch({ batchSize, requestCount, cut, instance: this.placement.name });
  }

  #shown(requests: readonly PendingRequest[], { batchSize, cut }: Payload): BatchMessage {
    const { modelName, modelVersion } = this.#owner;
    return batchMessage({ batchSize, cut, requests }, modelName, modelVersion, this.placement.name);
  }

  /** Runs the executor between the events of the tracing channel, which does not get the results. */
  async #executeTraced(
    execution: RequestExecution,
    batch: BatchMessage,
  ): Promise<readonly ExecutionResult[] | undefined> {
    let results: readonly ExecutionResult[] | undefined;
    try {
      await traceExecution(async () => {
        results = await this.executor.execute(execution);
      }, batch);
      return results;
    } catch (thrown) {
      return failureOfAll(execution, thrown);
    }
  }

  /** Runs the executor. Returns its results, or undefined if the executor answers by itself. */
  async #execute(execution: RequestExecution): Promise<readonly ExecutionResult[] | undefined> {
    try {
      return await this.executor.execute(execution);
    } catch (thrown) {
      return failureOfAll(execution, thrown);
    }
  }
}

function failureOfAll({ requests }: RequestExecution, thrown: unknown): readonly TritonError[] {
  const error = TritonError.from(thrown);
  return requests.map(() => error);
}
