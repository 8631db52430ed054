import {
  errorFor,
  type ModelConfig,
  NO_PARAMETERS,
  queueFullError,
  type Tensor,
  TritonError,
  timeoutError,
} from "@tritonjs/protocol";
import { type CachedOutputs, cacheKey, type GuardedCache } from "../cache/response-cache.js";
import type { InputCheck } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import {
  type DiagnosedRequest,
  diagnosedRequest,
  requestQueued,
  requestRefused,
  requestResponse,
  requestSettled,
  requestStart,
} from "../observe/diagnostics-channels.js";
import { type Log, requestFields } from "../observe/log.js";
import type { RequestTrace } from "../observe/request-trace.js";
import {
  DeadlineCounts,
  type DeadlineOutcome,
  type FailureReason,
  type ModelStatistics,
} from "../observe/statistics.js";
import type { InferenceRequest, RequestHolder, RequestObserver } from "../request/inference-request.js";
import { selectOutputs } from "../request/inference-response.js";
import type { RequestValidator } from "../request/request-validator.js";
import type { AroundScheduling } from "../scheduler/around-scheduling.js";
import { classLevelOf } from "../scheduler/dynamic/priority-queue.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import {
  type Clock,
  type Deadline,
  type DeadlineQueue,
  everyMs,
  workBegins,
  workEnds,
} from "../system/clock.js";
import { getOrAdd, LinkedList } from "../system/collections.js";
import { copyTensor } from "../tensor-rows.js";
import type { Callee, CallGraph, ModelServer } from "./model-server.js";
import type { Residence } from "./residence.js";

interface RequestsModel extends Callee {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly outputNames: readonly string[];
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly validator: RequestValidator;
  readonly scheduler: Scheduler;
  readonly statistics: ModelStatistics;
  readonly instances: InstanceGroup;
  readonly residence: Residence | undefined;
  readonly checkInput: InputCheck | undefined;
  readonly around: AroundScheduling | undefined;
}

/** The requests of one model from validation until they settle: their deadlines and statistics. */
export class ModelRequests implements RequestObserver {
  readonly #model: RequestsModel;
  /** Set for a model whose responses are cached. */
  readonly #cached: CachedModel | undefined;
  readonly #calls: CallGraph;
  readonly #log: Log;
  readonly #inflight = new InflightRequests();
  /** Ends the record of a call in the graph of models that wait for each other, for requests that are part of others. */
  readonly #callsOf = new Map<InferenceRequest, () => void>();
  /** Called after each request that is over, while requests wait for room in the queue. */
  onSettled: (() => void) | undefined;

  /** @param cache set for a model whose responses are cached */
  constructor(model: RequestsModel, { calls, log }: ModelServer, cache: GuardedCache | undefined) {
    this.#model = model;
    this.#calls = calls;
    this.#log = log;
    this.#cached = cache && new CachedModel(cache, model, log.of("dynamic_batch_scheduler"));
  }

  get count(): number {
    return this.#inflight.size;
  }

  /** The requests in flight, oldest first. */
  get inFlight(): readonly InferenceRequest[] {
    return this.#inflight.all();
  }

  empty(): Promise<void> {
    return this.#inflight.empty();
  }

  /** Cancels all requests in flight, because the model is stopped. */
  cancelAll(): void {
    const text = `model '${this.#model.name}' was stopped before the request finished`;
    this.#inflight.cancel(errorFor("MODEL_STOPPED", text));
  }

  /**
   * Checks a request and queues it.
   *
   * @throws TritonError if the request is refused. It stays untouched, and its handler is never called.
   */
  infer(request: InferenceRequest): void {
    try {
      this.#accept(request);
    } catch (error) {
      this.#reportRefusal(request, error);
      throw error;
    }
  }

  #accept(request: InferenceRequest): void {
    const { validator, instances, clock, statistics, deadlines, residence } = this.#model;
    validator.validate(request);
    const { checkInput } = this.#model;
    if (checkInput !== undefined) {
      for (const [name, { shape }] of request.inputs) checkInput(name, shape);
    }
    const unhealthy = instances.unhealthyReason ?? residence?.failure;
    if (unhealthy !== undefined) throw unhealthy;
    request.queueStart = clock.now();
    if (request.deadline !== undefined && request.deadline <= request.queueStart) {
      throw timeoutError();
    }
    if (request.callers.length > 0)
      this.#callsOf.set(request, this.#calls.enter(request.callers, this.#model));
    request.enterContext();
    request.owner = this;
    this.#inflight.add(request);
    statistics.pendingCount++;
    request.trace?.begin(this.#model.name, this.#model.version, request, request.queueStart);
    if (requestStart.hasSubscribers) requestStart.publish({ request: this.#shown(request) });
    try {
      if (this.#cached === undefined) this.#model.scheduler.enqueue(request);
      else this.#cached.infer(request);
    } catch (error) {
      request.owner = undefined;
      this.#leaveCallGraph(request);
      this.#inflight.delete(request);
      statistics.pendingCount--;
      throw this.#refused(request, error);
    }
    if (residence?.isResident === false && !request.settled) residence.want(request.callers.length > 0);
    if (requestQueued.hasSubscribers && !request.executing && !request.settled) {
      requestQueued.publish({ request: this.#shown(request), waiting: statistics.pendingCount });
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = deadlines.add(request.deadline, timeOut, request);
    }
  }

  outputs(request: InferenceRequest, outputs: ReadonlyMap<string, Tensor>): void {
    if (!requestResponse.hasSubscribers || request.settled) return;
    const durationMs = this.#model.clock.now() - request.queueStart;
    requestResponse.publish({ request: this.#shown(request), outputs, durationMs });
  }

  /** Ends the record of a call that is part of other work. */
  #leaveCallGraph(request: InferenceRequest): void {
    if (request.callers.length === 0) return;
    this.#callsOf.get(request)?.();
    this.#callsOf.delete(request);
  }

  cancelling(request: InferenceRequest): void {
    this.#model.around?.cancelling(request);
  }

  cancelled(request: InferenceRequest): void {
    this.#model.around?.cancelled(request);
  }

  settled(request: InferenceRequest, error: TritonError | undefined): void {
    this.#model.around?.settled(request, error);
    this.#leaveCallGraph(request);
    this.#inflight.delete(request);
    this.onSettled?.();
    request.deadlineTimer?.cancel();
    // The trace of a late request says why.
    this.#countDeadline(request, error);
    if (request.trace !== undefined) this.#endTrace(request.trace, request, error);
    if (!request.executing) this.#model.statistics.pendingCount--;
    if (requestSettled.hasSubscribers) {
      const durationMs = this.#model.clock.now() - request.queueStart;
      requestSettled.publish({ request: this.#shown(request), error, durationMs });
    }
    if (error === undefined) return;
    this.#recordError(error);
    this.#logFailure(request, error, "failed");
    if (request.cancelReason !== undefined) this.#failed(request, reasonOf(error));
  }

  /** Ends the trace of a request, and remembers it as an example of requests that took as long. */
  #endTrace(trace: RequestTrace, request: InferenceRequest, error: TritonError | undefined): void {
    const { clock, statistics } = this.#model;
    const now = clock.now();
    trace.end(now, error);
    const { traceId } = trace;
    if (traceId === undefined || !trace.sampled || error !== undefined) return;
    statistics.requestDurations.exemplify(now - request.queueStart, traceId, clock.wallNow());
  }

  /**
   * True if the queue is full, so that any request would be refused. A model with a response cache answers some
   * requests without its queue.
   */
  get isFull(): boolean {
    return this.#cached === undefined && this.freePlaces === 0;
  }

  /** Number of requests that the queue has room for; infinite without a limit. */
  get freePlaces(): number {
    return this.#model.scheduler.freePlaces?.() ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Counts the refusal of a request that finds the model full, and returns its error; undefined if there is room.
   *
   * @param id id that the client gave the request; empty for none
   */
  refusal(id: string): TritonError | undefined {
    if (!this.isFull) return undefined;
    this.#model.statistics.refusedCount++;
    const error = queueFullError(id, this.#drainMs());
    this.#recordError(error);
    return error;
  }

  /**
   * Counts a refusal. Triton counts none, so refusals have a counter of their own. A request that would be answered too
   * late, which only this library refuses, counts as rejected, and its error carries a retry time.
   */
  #refused(request: InferenceRequest, error: unknown): unknown {
    if (!TritonError.is(error) || error.code !== "UNAVAILABLE") return error;
    this.#model.statistics.refusedCount++;
    this.#countDeadline(request, error);
    if (error.retryAfterMs !== undefined) {
      this.#failed(request, "REJECTED");
      return error;
    }
    if (this.#model.scheduler.freePlaces?.(request.priority) !== 0) return error;
    return queueFullError(request.id, this.#drainMs());
  }

  /** Counts what became of a request with a time limit that the scheduler looks at. Cancelled and failed requests do not count. */
  #countDeadline(request: InferenceRequest, error: TritonError | undefined): void {
    const { limits } = this.#model.scheduler;
    if (limits === undefined) return;
    const due = limits.dueOf(request);
    if (due === Number.POSITIVE_INFINITY) return;
    const { priority, executing } = request;
    const { statistics, clock, config } = this.#model;
    const outcome = deadlineOutcome(error, executing, clock.now() > due);
    if (outcome === undefined) return;
    statistics.deadlines ??= new DeadlineCounts();
    const isLost = outcome !== "in_time" && outcome !== "queue_full";
    const cause = isLost ? limits.lateCause(request) : undefined;
    if (cause !== undefined) request.trace?.late?.(cause);
    const { dynamicBatching } = config;
    const level = dynamicBatching === undefined ? priority : classLevelOf(dynamicBatching, priority);
    statistics.deadlines.record(level, limits.callerOf(request), outcome, cause);
  }

  #recordError(error: unknown): void {
    const { statistics, clock } = this.#model;
    if (TritonError.is(error)) statistics.errors.record(error, clock.wallNow());
  }

  #reportRefusal(request: InferenceRequest, error: unknown): void {
    const { name, version, clock } = this.#model;
    request.trace?.end(clock.now(), TritonError.from(error));
    request.refuse(error);
    if (requestRefused.hasSubscribers) {
      requestRefused.publish({ model: name, version: String(version), id: request.id, error });
    }
    this.#recordError(error);
    this.#logFailure(request, error, "was refused");
  }

  /** Writes a verbose line, because the answer to the client says the same. */
  #logFailure({ id, trace }: InferenceRequest, error: unknown, how: string): void {
    const log = this.#log;
    if (log.settings.verboseLevel < 1) return;
    const { name, version } = this.#model;
    const { code, message } = TritonError.from(error);
    log.verbose(1, `a request to model '${name}' version ${version} ${how}: ${message}`, {
      model: name,
      version,
      code,
      ...requestFields(id, trace),
    });
  }

  #shown(request: InferenceRequest): DiagnosedRequest {
    return diagnosedRequest(request, this.#model.name, String(this.#model.version));
  }

  #drainMs(): number {
    const { scheduler, instances, statistics } = this.#model;
    return drainTimeMs(statistics, scheduler.queuedCount, instances.instances.length);
  }

  #failed(request: InferenceRequest, reason: FailureReason): void {
    const { statistics, clock } = this.#model;
    statistics.recordFailure(reason, clock.now() - request.queueStart);
  }
}

function deadlineOutcome(
  error: TritonError | undefined,
  executing: boolean,
  late: boolean,
): DeadlineOutcome | undefined {
  if (error === undefined) return late ? "late" : "in_time";
  if (error.reason === "DEADLINE_TOO_CLOSE") return "hopeless";
  if (error.reason === "QUEUE_FULL") return "queue_full";
  if (error.reason === "TIMEOUT") return executing ? "late" : "expired";
  return undefined;
}

function reasonOf(error: TritonError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
}

/**
 * The requests that a model has accepted and not yet answered: a list linked through the requests themselves. A `Set`
 * that lives as long as the model would keep removed entries. Each table that V8 outgrows holds its entries and the
 * next table, and an old table is seldom collected.
 */
export class InflightRequests {
  #first: InferenceRequest | undefined;
  size = 0;
  #emptied: (() => void) | undefined;

  add(request: InferenceRequest): void {
    const next = this.#first;
    request.nextInflight = next;
    if (next !== undefined) next.previousInflight = request;
    this.#first = request;
    if (this.size++ === 0) workBegins();
  }

  /** Removes a request; has no effect if it is not in the list. */
  delete(request: InferenceRequest): void {
    const { previousInflight: previous, nextInflight: next } = request;
    if (previous !== undefined) previous.nextInflight = next;
    else if (this.#first === request) this.#first = next;
    else return;
    if (next !== undefined) next.previousInflight = previous;
    request.previousInflight = undefined;
    request.nextInflight = undefined;
    this.size--;
    if (this.size > 0) return;
    workEnds();
    this.#emptied?.();
  }

  async empty(): Promise<void> {
    if (this.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }

  /** All requests, oldest first. */
  all(): readonly InferenceRequest[] {
    const all: InferenceRequest[] = [];
    for (let one = this.#first; one !== undefined; one = one.nextInflight) all.push(one);
    return all.reverse();
  }

  cancel(error: TritonError): void {
    for (const request of this.all()) request.cancel(error);
  }
}

/** Assumed milliseconds for a request of a model that has answered none yet. */
const UNKNOWN_MS = 1000;

/**
 * Estimates the milliseconds that the instances need for the waiting requests, from the executions so far. After that
 * time, retrying a refused request is worthwhile.
 */
function drainTimeMs(
  { computeInput, computeInfer, computeOutput, executionCount }: ModelStatistics,
  waiting: number,
  instances: number,
): number {
  const answered = computeInfer.count;
  if (answered === 0) return UNKNOWN_MS;
  const executionMs = (computeInput.ns + computeInfer.ns + computeOutput.ns) / 1e6 / answered;
  const requestsPerExecution = answered / executionCount;
  return Math.max(1, Math.ceil((waiting * executionMs) / requestsPerExecution / Math.max(1, instances)));
}

/** Beginning of the line about a lookup that failed; Triton has none. */
const LOOKUP_FAILED = "Failed to look up a request in the";

/**
 * The response cache in front of one model. A request with a known answer is answered at once. Of equal requests that
 * arrive while the first one runs, only the first runs. If the cache fails, requests run.
 *
 * ```
 * known     -> answer
 * under way -> wait for it; when it fails, the next of those that wait runs
 * new       -> run, keep the outputs
 * ```
 *
 * With an asynchronous cache, a request is in flight from its lookup on.
 */
class CachedModel {
  /** Requests that wait for an equal one in flight, by key. */
  readonly #inFlight = new Map<string, WaitingRequests>();
  readonly #mayWarn: () => boolean;

  constructor(
    private readonly cache: GuardedCache,
    private readonly owner: RequestsModel,
    private readonly log: Log,
  ) {
    this.#mayWarn = everyMs(owner.clock, WARN_EVERY_MS);
  }

  /** Answers, parks or queues a request. Throws if the request is refused. */
  infer(request: InferenceRequest): void {
    const { name, version, outputNames, clock } = this.owner;
    const start = clock.now();
    const key = cacheKey(name, String(version), request, outputNames);
    const waiting = this.#inFlight.get(key);
    if (waiting !== undefined) {
      waiting.push(request);
      return;
    }
    const found = this.#lookUp(key);
    if (found instanceof Promise) this.#lookUpLater(request, key, found, start);
    else if (found === undefined) this.#run(request, key, clock.now() - start);
    else this.#answer(request, found, clock.now() - start);
  }

  /** Counts a failure of the cache, and logs it at most once a minute. */
  #cacheFailed(text: string, error: unknown): void {
    const { name, version, statistics } = this.owner;
    statistics.cacheFailures++;
    if (!this.#mayWarn()) return;
    const about = { model: name, version };
    this.log.error(`${text} response cache: ${TritonError.from(error).message}`, about);
  }

  #lookUp(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined> {
    try {
      return this.cache.get(key);
    } catch (error) {
      this.#cacheFailed(LOOKUP_FAILED, error);
      return undefined;
    }
  }

  /** Holds the request, and equal ones, until the cache has answered or its time limit has passed. */
  #lookUpLater(
    request: InferenceRequest,
    key: string,
    found: Promise<CachedOutputs | undefined>,
    start: number,
  ): void {
    const { clock, deadlines } = this.owner;
    this.#inFlight.set(key, new WaitingRequests());
    request.holder = LOOKUP;
    let timeout: Deadline | undefined;
    let over = false;
    const done = (outputs?: CachedOutputs, failure?: unknown) => {
      if (over) return;
      over = true;
      timeout?.cancel();
      if (failure !== undefined) this.#cacheFailed(LOOKUP_FAILED, failure);
      const lookupMs = clock.now() - start;
      request.holder = undefined;
      if (outputs !== undefined) {
        this.#answerAll(key, outputs);
        this.#answer(request, outputs, lookupMs);
      } else if (request.settled) {
        this.#runNext(key);
      } else {
        this.#runLate(request, key, lookupMs);
      }
    };
    const limitMs = this.cache.lookupTimeoutMs;
    if (limitMs !== undefined) {
      timeout = deadlines.add(start + limitMs, () => {
        this.cache.timedOut();
        done(undefined, `no answer within ${limitMs} ms`);
      });
    }
    found.then(done, (error: unknown) => done(undefined, error ?? "rejected"));
  }

  #run(request: InferenceRequest, key: string, lookupMs: number): void {
    const waiting = getOrAdd(this.#inFlight, key, () => new WaitingRequests());
    const run: RequestObserver = {
      outputs: (_, outputs) => this.#computed(request, key, lookupMs, outputs),
      settled: (_, error) => {
        if (error !== undefined) this.#runNext(key);
      },
    };
    request.observe(run);
    try {
      this.owner.scheduler.enqueue(request);
    } catch (error) {
      request.ignore(run);
      if (waiting.size === 0) this.#inFlight.delete(key);
      throw error;
    }
  }

  /** Runs a request that was already accepted. If the model refuses it, the request ends with the error. */
  #runLate(request: InferenceRequest, key: string, lookupMs: number): void {
    try {
      this.#run(request, key, lookupMs);
    } catch (error) {
      request.cancel(TritonError.from(error));
      this.#runNext(key);
    }
  }

  /** @param made the outputs of the model; the request may want only some of them */
  #computed(request: InferenceRequest, key: string, lookupMs: number, made: CachedOutputs): void {
    const { clock, statistics } = this.owner;
    const start = clock.now();
    const outputs = selectOutputs(made, this.owner.outputNames, request.requestedOutputs);
    const copies = new Map([...outputs].map(([name, tensor]) => [name, copyTensor(tensor)]));
    let byteSize = 0;
    for (const tensor of copies.values()) byteSize += tensor.byteLength;
    this.#insert(request, key, copies, byteSize);
    statistics.recordCacheMiss(lookupMs + clock.now() - start);
    this.#answerAll(key, copies);
  }

  #insert(request: InferenceRequest, key: string, outputs: CachedOutputs, byteSize: number): void {
    const failed = (error: unknown) =>
      this.#cacheFailed(`${request.logPrefix}Failed to insert request_hash [${key}] into`, error);
    try {
      const inserted = this.cache.set(key, outputs, byteSize);
      if (inserted instanceof Promise) inserted.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #runNext(key: string): void {
    const waiting = this.#inFlight.get(key);
    const next = waiting?.head;
    if (next === undefined) {
      this.#inFlight.delete(key);
      return;
    }
    waiting!.remove(next);
    this.#runLate(next, key, 0);
  }

  #answerAll(key: string, outputs: CachedOutputs): void {
    const waiting = this.#inFlight.get(key);
    this.#inFlight.delete(key);
    for (const request of waiting?.takeAll() ?? []) this.#answer(request, outputs, 0);
  }

  #answer(request: InferenceRequest, outputs: CachedOutputs, lookupMs: number): void {
    if (request.settled) return;
    const { name, version, clock, statistics } = this.owner;
    request.holder = undefined;
    statistics.recordCacheHit(lookupMs, clock.now() - request.queueStart, clock.wallNow());
    const { id } = request;
    request.respond({
      modelName: name,
      modelVersion: String(version),
      id,
      parameters: NO_PARAMETERS,
      outputs,
    });
  }
}

/** Shortest interval between warnings: a cache that is down fails the lookup of every request. */
const WARN_EVERY_MS = 60_000;

/** Holds a request during the lookup of its answer. A cancelled request is noticed when the lookup is over. */
const LOOKUP: RequestHolder = { remove() {} };

class WaitingRequests extends LinkedList<InferenceRequest> implements RequestHolder {
  override push(request: InferenceRequest): void {
    super.push(request);
    request.holder = this;
  }

  override remove(request: InferenceRequest): boolean {
    request.holder = undefined;
    return super.remove(request);
  }

  /** Takes all requests, in order of arrival. */
  takeAll(): readonly InferenceRequest[] {
    const all = this.all();
    for (const request of all) this.remove(request);
    return all;
  }
}

function timeOut(request: InferenceRequest): void {
  request.cancel(timeoutError());
}
