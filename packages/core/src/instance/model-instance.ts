import { TritonError, timeoutError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/batch-tensors.js";
import type { Payload } from "../batch/payload.js";
import { rememberModel, type UserErrors } from "../callback/callback-error.js";
import {
  type CallModels,
  type CallOrigin,
  type ModelCaller,
  RESCHEDULE,
  type TensorCaller,
} from "../callback/infer-func.js";
import type { PlannedInstance } from "../config/instance-groups.js";
import {
  type BatchMessage,
  batchFormed,
  batchMessage,
  executionChannel,
  traceExecution,
} from "../observe/diagnostics-channels.js";
import type { RequestTrace } from "../observe/request-trace.js";
import type { ExecutionTimes, ModelStatistics, ResponseLog } from "../observe/statistics.js";
import type { InferenceRequest, RequestRunner } from "../request/inference-request.js";
import { parametersOf, selectOutputs } from "../request/inference-response.js";
import { type Clock, workBegins, workEnds } from "../system/clock.js";
import type { Execution, ExecutionResult, ExecutionWatcher, Executor } from "./backend.js";
import type { RateLimitedInstance } from "./rate-limiter.js";

/** One instance of a model: takes a payload, runs it with its executor, and ensures that each request is answered. */
export class ModelInstance {
  /** True while the executor can take a batch. */
  healthy = false;
  unhealthyReason: TritonError | undefined;
  readonly atWork: Payload[] = [];
  /** Its registration at the rate limiter, while it is loaded and there is a rate limiter. */
  lease: RateLimitedInstance | undefined;
  beingReplaced = false;
  staysUntil = Number.NEGATIVE_INFINITY;
  #served = 0;
  readonly #model: InstanceModel;

  constructor(
    readonly placement: PlannedInstance,
    readonly executor: Executor,
    model: InstanceModel,
  ) {
    this.#model = model;
  }

  /** `name/version` of its model. */
  get model(): string {
    return `${this.#model.modelName}/${this.#model.modelVersion}`;
  }

  get busy(): boolean {
    return this.atWork.length > 0;
  }

  get freePlaces(): number {
    return this.healthy ? Math.max(0, (this.executor.capacity ?? 1) - this.atWork.length) : 0;
  }

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

  get worn(): boolean {
    const recycle = this.placement.group.hosting?.recycle;
    if (recycle === undefined || this.beingReplaced || this.#model.clock.now() < this.staysUntil)
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
    if (!healthy && this.executor.restarts !== undefined) this.#model.statistics.restartCount++;
    this.unhealthyReason = healthy ? undefined : reason;
    if (!healthy && reason !== undefined && isFirst) {
      this.#model.restartFailed?.(this.placement.name, reason);
    }
  }

  /** Runs a payload to its end. The promise never rejects. */
  async run(payload: Payload): Promise<void> {
    const requests = payload.take();
    const { clock, statistics } = this.#model;
    const { cut } = payload;
    if (cut !== undefined) statistics.cuts.record(cut, payload.batchSize);
    const execution = new RequestExecution(requests, this.#model);
    for (const request of requests) {
      if (request.trace !== undefined) this.#trace(request.trace, payload);
      request.startExecution(execution);
      if (request.ready) statistics.pendingCount--;
    }
    if (hasExpired(requests, clock)) {
      execution.end(true);
      for (const request of requests) request.release(false);
      return;
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
        if (this.executor.releasesInputs === true) requests[i]!.inputsUsed(result);
        execution.send(i, result, true);
      }
    }
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i]!;
      const again = execution.isRescheduled(i);
      if (again) statistics.pendingCount++;
      request.release(again);
    }
  }

  #trace(trace: RequestTrace, { batchSize, requestCount, cut }: Payload): void {
    trace.batch({ batchSize, requestCount, cut, instance: this.placement.name });
  }

  #shown(requests: readonly InferenceRequest[], { batchSize, cut }: Payload): BatchMessage {
    const { modelName, modelVersion } = this.#model;
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

/**
 * Ends requests whose time limit passed before the batch began: a callback that held the event loop also held up their
 * timers.
 *
 * @returns true if no request of the batch is left
 */
function hasExpired(requests: readonly InferenceRequest[], clock: Clock): boolean {
  let some = false;
  for (const request of requests) {
    if (!isLate(request, clock)) continue;
    request.cancel(timeoutError());
    some = true;
  }
  return some && requests.every((request) => request.answered);
}

function isLate({ deadline }: InferenceRequest, clock: Clock): boolean {
  return deadline !== undefined && clock.now() >= deadline;
}

function failureOfAll({ requests }: RequestExecution, thrown: unknown): readonly TritonError[] {
  const error = TritonError.from(thrown);
  return requests.map(() => error);
}

export interface InstanceModel {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly decoupled: boolean;
  readonly iterative: boolean;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  readonly outputNames: readonly string[];
  readonly callModels: CallModels;
  /** Rules that join requests to a batch; undefined if they are joined by rows. */
  readonly layout?: BatchLayout | undefined;
  /** Logs the stacks of errors that the model's code throws. */
  readonly userErrors?: UserErrors;
  restartFailed?(instance: string, error: TritonError): void;
}

/**
 * The execution of a payload's requests: takes the times, answers the requests, and updates the statistics. Executors
 * see views of the requests.
 */
class RequestExecution implements Execution, CallOrigin, RequestRunner {
  #start: number;
  #inputEnd: number | undefined;
  #inferEnd: number | undefined;
  #ended: ExecutionTimes | undefined;
  /** True if the batch keeps the process alive instead of its requests. */
  #keepsAlive = false;
  #controller: AbortController | undefined;
  #watcher: ExecutionWatcher | undefined;
  /**
   * Positions of requests whose first response was sent (if that is measured), and of requests that the model
   * rescheduled.
   */
  #responded: Set<number> | undefined;
  #rescheduled: Set<number> | undefined;
  readonly #responses: CountedResponses | undefined;

  constructor(
    readonly requests: readonly InferenceRequest[],
    private readonly model: InstanceModel,
  ) {
    const { clock, decoupled, statistics } = model;
    this.#start = clock.now();
    if (decoupled) this.#responses = new CountedResponses(requests.length, statistics.responses, clock);
  }

  get clock(): Clock {
    return this.model.clock;
  }

  get layout(): BatchLayout | undefined {
    return this.model.layout;
  }

  get models(): ModelCaller & TensorCaller {
    return this.model.callModels(this);
  }

  /** Models that work on any of the requests, from the longest chain of calls, followed by this model. */
  get callers(): readonly string[] {
    const chains = this.requests.map(({ callers }) => callers);
    const longest = chains.reduce((one, other) => (other.length > one.length ? other : one));
    const others = new Set(chains.flat());
    for (const caller of longest) others.delete(caller);
    return [...others, ...longest, `${this.model.modelName}/${this.model.modelVersion}`];
  }

  /** Latest deadline of the requests; undefined if one has none. */
  get deadline(): number | undefined {
    const deadlines = this.requests.map((request) => request.deadline ?? Number.POSITIVE_INFINITY);
    const last = Math.max(...deadlines);
    return last === Number.POSITIVE_INFINITY ? undefined : last;
  }

  get trace(): RequestTrace | undefined {
    return this.requests.find(({ trace }) => trace !== undefined)?.trace;
  }

  get within(): (<T>(fn: () => T) => T) | undefined {
    const { trace } = this;
    return trace && ((fn) => trace.within(fn));
  }

  get decoupled(): boolean {
    return this.model.decoupled;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#abortIfOver();
    }
    return this.#controller.signal;
  }

  watch(watcher: ExecutionWatcher): void {
    this.#watcher = watcher;
  }

  /** A request is over. Native code of a batch that is not must not be running when the process ends. */
  #keepAlive(): void {
    if (this.#keepsAlive || this.#ended !== undefined) return;
    this.#keepsAlive = true;
    workBegins();
  }

  givenUp(request: InferenceRequest): void {
    this.#keepAlive();
    this.#abortIfOver();
    this.#watcher?.givenUp(this.requests.indexOf(request));
  }

  askedToStop(request: InferenceRequest): boolean {
    if (this.#watcher?.askedToStop === undefined) return false;
    this.#watcher.askedToStop(this.requests.indexOf(request));
    return true;
  }

  inputsReady(): void {
    this.#inputEnd = this.model.clock.now();
  }

  postponed(): void {
    if (this.#inputEnd === undefined) return;
    const waitedMs = this.model.clock.now() - this.#inputEnd;
    this.#start += waitedMs;
    this.#inputEnd += waitedMs;
  }

  outputsReady(): void {
    this.#inferEnd = this.model.clock.now();
  }

  /** Times of the batch. Events that have not happened yet count as happening now. */
  get times(): ExecutionTimes {
    if (this.#ended !== undefined) return this.#ended;
    const end = this.model.clock.now();
    return { start: this.#start, inputEnd: this.#inputEnd ?? end, inferEnd: this.#inferEnd ?? end, end };
  }

  /**
   * Ends the batch.
   *
   * @param hasResults true if the executor has finished with the requests, and needs no notice of cancellations
   */
  end(hasResults: boolean): void {
    this.#ended = this.times;
    if (this.#keepsAlive) workEnds();
    if (hasResults) this.#watcher = undefined;
  }

  isOpen(index: number): boolean {
    return !this.requests[index]!.answered && !this.#rescheduled?.has(index);
  }

  writable(index: number): Promise<void> | undefined {
    return this.requests[index]!.writable;
  }

  send(index: number, outputs: Tensors, final = false): void {
    const request = this.requests[index]!;
    request.made(outputs);
    if (this.#isOver(request)) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    const handedOver = this.#responses === undefined ? 0 : this.model.clock.now();
    const selected = selectOutputs(outputs, this.model.outputNames, request.requestedOutputs);
    if (this.model.statistics.latencies !== undefined) this.#observeFirstResponse(request, index);
    const { modelName, modelVersion } = this.model;
    const parameters = parametersOf(outputs);
    request.respond({ modelName, modelVersion, id: request.id, parameters, outputs: selected }, final);
    this.#responses?.sent(index, this.#computeStart, handedOver, final);
  }

  sendError(index: number, error: TritonError, final = false): void {
    const request = this.requests[index]!;
    if (error.cause !== undefined && !request.answered) {
      rememberModel(error, this.model.modelName);
      // The requests of a warm-up have no owner: the line about the failed load has the stack.
      if (request.owner !== undefined) this.model.userErrors?.inRequest(error, request);
    }
    if (this.#isOver(request)) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    // The end of the request notes a final error.
    if (!final) this.model.statistics.errors.record(error, this.model.clock.wallNow());
    request.respondError(error, final);
    this.#responses?.failed(index, this.#computeStart, final);
  }

  reschedule(index: number): void {
    const request = this.requests[index]!;
    if (request.answered) return;
    if (!this.model.iterative) {
      const { modelName } = this.model;
      const text = `model '${modelName}' returned RESCHEDULE, which needs sequence batching with iterative sequences`;
      this.sendError(index, new TritonError("INTERNAL", text), true);
      return;
    }
    this.#rescheduled ??= new Set();
    this.#rescheduled.add(index);
    this.#countSuccess(request);
  }

  isRescheduled(index: number): boolean {
    return this.#rescheduled?.has(index) === true && !this.requests[index]!.answered;
  }

  finish(index: number): void {
    const request = this.requests[index]!;
    if (this.#rescheduled?.has(index)) return;
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    request.finish();
    this.#responses?.finished(index, this.#computeStart);
  }

  answered(request: InferenceRequest, error: TritonError | undefined): void {
    this.#keepAlive();
    request.trace?.compute(this.times);
    if (error === undefined) this.#countSuccess(request);
    else this.model.statistics.recordFailure("BACKEND", this.model.clock.now() - request.queueStart);
  }

  /**
   * True if the request takes no more answers. An answer after its time limit comes too late, even if the limit's timer
   * has not fired yet because a callback held the event loop.
   */
  #isOver(request: InferenceRequest): boolean {
    if (!request.answered && isLate(request, this.model.clock)) request.cancel(timeoutError());
    return request.answered;
  }

  /** Time at which the model began to compute. */
  get #computeStart(): number {
    return this.#inputEnd ?? this.#start;
  }

  #abortIfOver(): void {
    if (this.#controller === undefined || !this.requests.every((request) => request.answered)) return;
    this.#controller.abort(this.requests.find((request) => request.ready)?.cancelReason);
  }

  #observeFirstResponse(request: InferenceRequest, index: number): void {
    this.#responded ??= new Set();
    if (this.#responded.has(index)) return;
    this.#responded.add(index);
    const { clock, statistics } = this.model;
    statistics.latencies?.firstResponse?.observe(clock.now() - request.queueStart);
  }

  #countSuccess(request: InferenceRequest): void {
    // A decoupled request may end before its batch does, or long after.
    const { times } = this;
    this.model.statistics.recordSuccess(request.rows, request.queueStart, times);
    request.computed(
      times.inputEnd - times.start,
      times.inferEnd - times.inputEnd,
      times.end - times.inferEnd,
    );
  }
}

interface Counted {
  next: number;
  since: number | undefined;
  over: boolean;
}

/** Counts the responses to the requests of one execution of a decoupled model. */
class CountedResponses {
  readonly #requests: Counted[];

  constructor(
    requests: number,
    private readonly log: ResponseLog,
    private readonly clock: Clock,
  ) {
    this.#requests = Array.from({ length: requests }, () => ({ next: 0, since: undefined, over: false }));
  }

  /**
   * Counts a response that was sent.
   *
   * @param start time at which the model had its inputs
   * @param handedOver time at which the model returned the response
   */
  sent(request: number, start: number, handedOver: number, final: boolean): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    const now = this.clock.now();
    this.log.success(counted.next, handedOver - (counted.since ?? start), now - handedOver);
    this.#step(counted, now, final);
  }

  failed(request: number, start: number, final: boolean): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    const now = this.clock.now();
    this.log.fail(counted.next, now - (counted.since ?? start));
    this.#step(counted, now, final);
  }

  finished(request: number, start: number): void {
    const counted = this.#requests[request]!;
    if (!counted.over && counted.next === 0) this.log.empty(0, this.clock.now() - start);
    counted.over = true;
  }

  /** Counts a response or an end that the model produced after its request was cancelled. */
  unwanted(request: number, start: number): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    this.log.cancel(counted.next, this.clock.now() - (counted.since ?? start));
    counted.over = true;
  }

  #step(counted: Counted, now: number, final: boolean): void {
    counted.next++;
    counted.since = now;
    counted.over ||= final;
  }
}

/** True if anybody listens to the start or the end of executions. `TracingChannel.hasSubscribers` needs Node 20.13. */
function executionsAreTraced(): boolean {
  const { start, end, asyncStart, asyncEnd, error } = executionChannel;
  return (
    start.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers
  );
}
