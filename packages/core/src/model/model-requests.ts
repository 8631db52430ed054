import { queueFullError, type Tensor, TritonError, timeoutError } from "@tritonjs/protocol";
import { CachedModel } from "../cache/cached-model.js";
import type { GuardedCache } from "../cache/response-cache.js";
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
import type { FailureReason, ModelStatistics } from "../observe/statistics.js";
import {
  InferenceRequest,
  type InferInit,
  type RequestHandle,
  type RequestObserver,
  type ResponseHandler,
} from "../request/inference-request.js";
import type { RequestValidator } from "../request/request-validator.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Clock, DeadlineQueue } from "../system/clock.js";
import type { Callee, CallGraph, ModelServer } from "./model-server.js";

/** A model version as its requests see it. */
interface RequestsModel extends Callee {
  readonly name: string;
  readonly version: number;
  /** Names of all outputs of the model. */
  readonly outputNames: readonly string[];
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly validator: RequestValidator;
  readonly scheduler: Scheduler;
  readonly statistics: ModelStatistics;
  readonly instances: InstanceGroup;
}

/** The requests of one model from validation until they settle: their deadlines and statistics. */
export class ModelRequests implements RequestObserver {
  readonly #model: RequestsModel;
  /** Set for a model whose responses are cached. */
  readonly #cached: CachedModel | undefined;
  readonly #calls: CallGraph;
  readonly #log: Log;
  readonly #inflight = new InflightRequests();
  /** Called after each request that is over, while requests wait for room in the queue. */
  onSettled: (() => void) | undefined;

  /** @param cache set for a model whose responses are cached */
  constructor(model: RequestsModel, { calls, log }: ModelServer, cache: GuardedCache | undefined) {
    this.#model = model;
    this.#calls = calls;
    this.#log = log;
    this.#cached = cache && new CachedModel(cache, model);
  }

  /** Number of requests accepted and not yet answered. */
  get count(): number {
    return this.#inflight.size;
  }

  /** Resolves when no request is in flight. */
  empty(): Promise<void> {
    return this.#inflight.empty();
  }

  /** Cancels all requests in flight, because the model is stopped. */
  cancelAll(): void {
    const text = `model '${this.#model.name}' was stopped before the request finished`;
    this.#inflight.cancel(new TritonError("UNAVAILABLE", text, { reason: "MODEL_STOPPED" }));
  }

  /**
   * Constructs a request, checks it and queues it.
   *
   * @throws TritonError if the request is refused. Its handler is never called then.
   */
  send(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    const request = new InferenceRequest(init, this.#model.name, onResponse);
    this.infer(request);
    return request;
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
    const { validator, instances, clock, statistics, deadlines } = this.#model;
    validator.validate(request);
    const unhealthy = instances.unhealthyReason;
    if (unhealthy !== undefined) throw unhealthy;
    request.queueStart = clock.now();
    if (request.deadline !== undefined && request.deadline <= request.queueStart) {
      throw timeoutError();
    }
    if (request.callers.length > 0) request.leaveCallGraph = this.#calls.enter(request.callers, this.#model);
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
      request.leaveCallGraph?.();
      request.leaveCallGraph = undefined;
      this.#inflight.delete(request);
      statistics.pendingCount--;
      throw this.#refused(request, error);
    }
    if (requestQueued.hasSubscribers && !request.executing && !request.settled) {
      requestQueued.publish({ request: this.#shown(request), waiting: statistics.pendingCount });
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = deadlines.add(request.deadline, () => request.cancel(timeoutError()));
    }
  }

  /** Called by the requests when the model has made outputs for one of them. */
  outputs(request: InferenceRequest, outputs: ReadonlyMap<string, Tensor>): void {
    if (!requestResponse.hasSubscribers || request.settled) return;
    const durationMs = this.#model.clock.now() - request.queueStart;
    requestResponse.publish({ request: this.#shown(request), outputs, durationMs });
  }

  /** Called by the requests when one of them is over. */
  settled(request: InferenceRequest, error: TritonError | undefined): void {
    request.leaveCallGraph?.();
    request.leaveCallGraph = undefined;
    this.#inflight.delete(request);
    this.onSettled?.();
    request.deadlineTimer?.cancel();
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
    if (error.retryAfterMs !== undefined) {
      this.#failed(request, "REJECTED");
      return error;
    }
    if (this.#model.scheduler.freePlaces?.(request.priority) !== 0) return error;
    return queueFullError(request.id, this.#drainMs());
  }

  /** Remembers the text of an error. */
  #recordError(error: unknown): void {
    const { statistics, clock } = this.#model;
    if (TritonError.is(error)) statistics.errors.record(error, clock.wallNow());
  }

  /** Tells subscribers and the log of a request that was refused. */
  #reportRefusal(request: InferenceRequest, error: unknown): void {
    const { name, version, clock } = this.#model;
    request.trace?.end(clock.now(), TritonError.from(error));
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
  #size = 0;
  #emptied: (() => void) | undefined;

  get size(): number {
    return this.#size;
  }

  add(request: InferenceRequest): void {
    const next = this.#first;
    request.nextInflight = next;
    if (next !== undefined) next.previousInflight = request;
    this.#first = request;
    this.#size++;
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
    this.#size--;
    if (this.#size === 0) this.#emptied?.();
  }

  /** Resolves when the list is empty. */
  async empty(): Promise<void> {
    if (this.#size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }

  /** Cancels all requests, oldest first. */
  cancel(error: TritonError): void {
    const all: InferenceRequest[] = [];
    for (let one = this.#first; one !== undefined; one = one.nextInflight) all.push(one);
    for (const request of all.reverse()) request.cancel(error);
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
