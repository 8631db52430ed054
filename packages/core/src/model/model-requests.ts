import { queueFullError, type Tensor, TritonError, timeoutError } from "@tritonjs/protocol";
import { CachedModel } from "../cache/cached-model.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { Clock } from "../clock/clock.js";
import type { DeadlineQueue } from "../clock/deadline-queue.js";

import type { InstanceGroup } from "../instance/instance-group.js";
import {
  requestQueued,
  requestRefused,
  requestResponse,
  requestSettled,
  requestStart,
} from "../observe/diagnostics/channels.js";
import { diagnosedRequest } from "../observe/diagnostics/diagnosed-request.js";
import type { DiagnosedRequest } from "../observe/diagnostics/messages.js";
import type { Log } from "../observe/log/log.js";
import { requestFields } from "../observe/log/request-fields.js";
import type { FailureReason, ModelStatistics } from "../observe/statistics.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import type { InferInit, ResponseHandler } from "../request/inference-request-init.js";
import { PendingRequest } from "../request/pending-request.js";
import type { RequestHandle } from "../request/request-handle.js";
import type { RequestObserver } from "../request/request-observer.js";
import type { RequestValidator } from "../request/validate-request.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Callee, CallGraph } from "./call-graph.js";
import { drainTimeMs } from "./drain-time.js";
import { InflightRequests } from "./inflight-requests.js";

/** Callbacks from the requests of a model to the model. */
export interface RequestsOwner {
  readonly name: string;
  readonly version: number;
  /** Names of all outputs of the model. */
  readonly outputs: readonly string[];
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly validator: RequestValidator;
  readonly scheduler: Scheduler;
  readonly statistics: ModelStatistics;
  /** Graph of the models that wait for each other. */
  readonly calls: CallGraph;
  /** The model as a callee. */
  readonly callee: Callee;
  readonly instances: InstanceGroup;
  readonly log: Log;
  /** Set for a model whose responses are cached. */
  readonly responseCache?: ResponseCache | undefined;
}

/** The requests of one model from validation until they settle: their deadlines and statistics. */
export class ModelRequests implements RequestObserver<PendingRequest> {
  readonly #owner: RequestsOwner;
  readonly #cached: CachedModel | undefined;
  readonly #inflight = new InflightRequests();
  /** Called after each request that is over, while requests wait for room in the queue. */
  onSettled: (() => void) | undefined;

  constructor(owner: RequestsOwner) {
    this.#owner = owner;
    const { responseCache, scheduler } = owner;
    const enqueue = (request: PendingRequest) => scheduler.enqueue(request);
    this.#cached = responseCache && new CachedModel(responseCache, { ...owner, enqueue });
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
    const text = `model '${this.#owner.name}' was stopped before the request finished`;
    this.#inflight.cancel(new TritonError("UNAVAILABLE", text, { reason: "MODEL_STOPPED" }));
  }

  /**
   * Constructs a request, checks it and queues it.
   *
   * @throws TritonError if the request is refused. Its handler is never called then.
   */
  send(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    const request = new PendingRequest(init, this.#owner.name, onResponse);
    this.infer(request);
    return request;
  }

  /**
   * Checks a request and queues it.
   *
   * @throws TritonError if the request is refused. It stays untouched, and its handler is never called.
   */
  infer(request: PendingRequest): void {
    try {
      this.#accept(request);
    } catch (error) {
      this.#reportRefusal(request, error);
      throw error;
    }
  }

  #accept(request: PendingRequest): void {
    const { validator, instances, clock, calls, callee, statistics, deadlines } = this.#owner;
    validator.validate(request);
    const unhealthy = instances.unhealthyReason;
    if (unhealthy !== undefined) throw unhealthy;
    request.queueStart = clock.now();
    if (request.deadline !== undefined && request.deadline <= request.queueStart) {
      throw timeoutError();
    }
    const leave = request.callers.length > 0 ? calls.enter(request.callers, callee) : undefined;
    const call = leave && { settled: leave };
    if (call !== undefined) request.observe(call);
    request.observe(this);
    this.#inflight.add(request);
    statistics.pendingCount++;
    request.trace?.begin(this.#owner.name, this.#owner.version, request, request.queueStart);
    if (requestStart.hasSubscribers) requestStart.publish({ request: this.#shown(request) });
    try {
      if (this.#cached === undefined) this.#owner.scheduler.enqueue(request);
      else this.#cached.infer(request);
    } catch (error) {
      request.ignore(this);
      if (call !== undefined) request.ignore(call);
      leave?.();
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
  outputs(request: PendingRequest, outputs: ReadonlyMap<string, Tensor>): void {
    if (!requestResponse.hasSubscribers || request.settled) return;
    const durationMs = this.#owner.clock.now() - request.queueStart;
    requestResponse.publish({ request: this.#shown(request), outputs, durationMs });
  }

  /** Called by the requests when one of them is over. */
  settled(request: PendingRequest, error: TritonError | undefined): void {
    this.#inflight.delete(request);
    this.onSettled?.();
    request.deadlineTimer?.cancel();
    if (request.trace !== undefined) this.#traced(request.trace, request, error);
    if (!request.executing) this.#owner.statistics.pendingCount--;
    if (requestSettled.hasSubscribers) {
      const durationMs = this.#owner.clock.now() - request.queueStart;
      requestSettled.publish({ request: this.#shown(request), error, durationMs });
    }
    if (error === undefined) return;
    this.#noted(error);
    this.#logFailure(request, error, "failed");
    if (request.cancelReason !== undefined) this.#failed(request, reasonOf(error));
  }

  /** Ends the trace of a request, and remembers it as an example of requests that took as long. */
  #traced(trace: RequestTrace, request: PendingRequest, error: TritonError | undefined): void {
    const { clock, statistics } = this.#owner;
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
    return this.#owner.scheduler.freePlaces?.() ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Counts the refusal of a request that finds the model full, and returns its error; undefined if there is room.
   *
   * @param id id that the client gave the request; empty for none
   */
  refusal(id: string): TritonError | undefined {
    if (!this.isFull) return undefined;
    this.#owner.statistics.refusedCount++;
    const error = queueFullError(id, this.#drainMs());
    this.#noted(error);
    return error;
  }

  /**
   * Counts a refusal. Triton counts none, so refusals have a counter of their own. A request that would be answered too
   * late, which only this library refuses, counts as rejected, and its error carries a retry time.
   */
  #refused(request: PendingRequest, error: unknown): unknown {
    if (!TritonError.is(error) || error.code !== "UNAVAILABLE") return error;
    this.#owner.statistics.refusedCount++;
    if (error.retryAfterMs !== undefined) {
      this.#failed(request, "REJECTED");
      return error;
    }
    if (this.#owner.scheduler.freePlaces?.(request.priority) !== 0) return error;
    return queueFullError(request.id, this.#drainMs());
  }

  /** Remembers the text of an error. */
  #noted(error: unknown): void {
    const { statistics, clock } = this.#owner;
    if (TritonError.is(error)) statistics.errors.record(error, clock.wallNow());
  }

  /** Tells subscribers and the log of a request that was refused. */
  #reportRefusal(request: PendingRequest, error: unknown): void {
    const { name, version, clock } = this.#owner;
    request.trace?.end(clock.now(), TritonError.from(error));
    if (requestRefused.hasSubscribers) {
      requestRefused.publish({ model: name, version: String(version), id: request.id, error });
    }
    this.#noted(error);
    this.#logFailure(request, error, "was refused");
  }

  /** Writes a verbose line, because the answer to the client says the same. */
  #logFailure({ id, trace }: PendingRequest, error: unknown, how: string): void {
    const { log, name, version } = this.#owner;
    if (log.settings.verboseLevel < 1) return;
    const { code, message } = TritonError.from(error);
    log.verbose(1, `a request to model '${name}' version ${version} ${how}: ${message}`, {
      model: name,
      version,
      code,
      ...requestFields(id, trace),
    });
  }

  #shown(request: PendingRequest): DiagnosedRequest {
    return diagnosedRequest(request, this.#owner.name, String(this.#owner.version));
  }

  #drainMs(): number {
    const { scheduler, instances, statistics } = this.#owner;
    return drainTimeMs(statistics, scheduler.queuedCount, instances.instances.length);
  }

  #failed(request: PendingRequest, reason: FailureReason): void {
    const { statistics, clock } = this.#owner;
    statistics.recordFailure(reason, clock.now() - request.queueStart);
  }
}

function reasonOf(error: TritonError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
}
