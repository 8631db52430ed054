import type { Payload } from "../batch/payload.js";
import type { Clock } from "../clock/clock.js";
import type { InstancePlacement } from "../config/instances.js";
import { TritonError } from "../errors/triton-error.js";
import type { ExecutionTimes, ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { NO_PARAMETERS } from "../request/parameters.js";
import type { Tensor } from "../tensor/tensor.js";
import type { Execution, ExecutionResult, Executor } from "./executor.js";

/** What all instances of one model version share. */
export interface InstanceOwner {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  /** Names of all outputs, in the model's order. */
  readonly outputNames: readonly string[];
}

/** One instance of a model: takes a payload, has its executor run it, answers each request, counts. */
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

  /** Runs a payload to its end. Every request in it settles; the promise never rejects. */
  async run(payload: Payload): Promise<void> {
    const { requests } = payload;
    const { clock, statistics } = this.#owner;
    const start = clock.now();
    const times: ExecutionTimes = { start, inputEnd: 0, inferEnd: 0, end: 0 };
    for (const request of requests) {
      request.startExecution();
      statistics.pendingCount--;
    }
    const results = await this.#execute(requests, times);
    times.end = clock.now();
    times.inputEnd ||= times.end;
    times.inferEnd ||= times.end;
    let batchSize = 0;
    for (const request of requests) batchSize += request.rows;
    statistics.recordExecution(batchSize, times, clock.wallNow());
    for (let i = 0; i < requests.length; i++) this.#answer(requests[i]!, results[i]!, times);
  }

  async #execute(
    requests: readonly InferenceRequest[],
    times: ExecutionTimes,
  ): Promise<readonly ExecutionResult[]> {
    try {
      return await this.executor.execute(new RequestExecution(requests, this.#owner.clock, times));
    } catch (thrown) {
      const error = TritonError.from(thrown);
      return requests.map(() => error);
    }
  }

  #answer(request: InferenceRequest, result: ExecutionResult, times: ExecutionTimes): void {
    if (request.settled) return;
    const { statistics, modelName, modelVersion } = this.#owner;
    if (TritonError.is(result)) {
      statistics.recordFailure("BACKEND", times.end - request.queueStart);
      request.fail(result);
      return;
    }
    statistics.recordSuccess(request.rows, request.queueStart, times);
    request.respond({
      modelName,
      modelVersion,
      id: request.id,
      parameters: NO_PARAMETERS,
      outputs: this.#select(result, request.requestedOutputs),
    });
  }

  /** The outputs that were asked for, in the model's order. */
  #select(outputs: ReadonlyMap<string, Tensor>, requested: readonly string[]): ReadonlyMap<string, Tensor> {
    const selected = new Map<string, Tensor>();
    for (const name of this.#owner.outputNames) {
      const tensor = outputs.get(name);
      if (tensor !== undefined && (requested.length === 0 || requested.includes(name)))
        selected.set(name, tensor);
    }
    return selected;
  }
}

/** The execution of requests: hands marks on to the times, and makes the signal of the whole batch. */
class RequestExecution implements Execution {
  #controller: AbortController | undefined;

  constructor(
    readonly requests: readonly InferenceRequest[],
    private readonly clock: Clock,
    private readonly times: ExecutionTimes,
  ) {}

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const check = () => {
        if (this.requests.every((request) => request.settled))
          controller.abort(this.requests[0]!.cancelReason);
      };
      for (const request of this.requests) request.signal.addEventListener("abort", check, { once: true });
      check();
    }
    return this.#controller.signal;
  }

  inputsReady(): void {
    this.times.inputEnd = this.clock.now();
  }

  outputsReady(): void {
    this.times.inferEnd = this.clock.now();
  }
}
