import { queueFullError, TritonError, timeoutError } from "@tritonjs/protocol";
import { CachedModel } from "../cache/cached-model.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { Clock } from "../clock/clock.js";
import type { DeadlineQueue } from "../clock/deadline-queue.js";

import type { InstanceGroup } from "../instance/instance-group.js";
import type { FailureReason, ModelStatistics } from "../observe/statistics.js";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestObserver } from "../request/request-observer.js";
import type { RequestValidator } from "../request/validate-request.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Callee, CallGraph } from "./call-graph.js";
import { InflightRequests } from "./inflight-requests.js";

/** What the requests of a model need of it. */
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
  /** Which models wait for which. */
  readonly calls: CallGraph;
  /** The model as one that others call. */
  readonly callee: Callee;
  readonly instances: InstanceGroup;
  /** Set for a model whose responses are kept. */
  readonly responseCache?: ResponseCache | undefined;
}

/** The requests of one model from the check until they are settled: their deadlines, and how they count. */
export class ModelRequests implements RequestObserver<PendingRequest> {
  readonly #owner: RequestsOwner;
  readonly #cached: CachedModel | undefined;
  readonly #inflight = new InflightRequests();

  constructor(owner: RequestsOwner) {
    this.#owner = owner;
    const { responseCache, scheduler } = owner;
    const enqueue = (request: PendingRequest) => scheduler.enqueue(request);
    this.#cached = responseCache && new CachedModel(responseCache, { ...owner, enqueue });
  }

  /** Requests accepted and not yet answered. */
  get count(): number {
    return this.#inflight.size;
  }

  /** Resolves when there is none. */
  empty(): Promise<void> {
    return this.#inflight.empty();
  }

  /** Ends all of them. */
  cancel(error: TritonError): void {
    this.#inflight.cancel(error);
  }

  /**
   * Checks a request and queues it.
   *
   * @throws TritonError when the request is refused: it is then untouched, and its handler never called.
   */
  infer(request: PendingRequest): void {
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
    try {
      if (this.#cached === undefined) this.#owner.scheduler.enqueue(request);
      else this.#cached.infer(request);
    } catch (error) {
      request.ignore(this);
      if (call !== undefined) request.ignore(call);
      leave?.();
      this.#inflight.delete(request);
      statistics.pendingCount--;
      request.trace?.end(clock.now());
      throw this.#refused(request, error);
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = deadlines.add(request.deadline, () => request.cancel(timeoutError()));
    }
  }

  /** For the requests alone: one of them is over. */
  settled(request: PendingRequest, error: TritonError | undefined): void {
    this.#inflight.delete(request);
    request.deadlineTimer?.cancel();
    request.trace?.end(this.#owner.clock.now());
    if (!request.executing) this.#owner.statistics.pendingCount--;
    if (error !== undefined && request.cancelReason !== undefined) this.#failed(request, reasonOf(error));
  }

  /**
   * Whether a request would be refused whatever it holds, because the queue is full. A model with a response cache
   * answers some requests without its queue.
   */
  get isFull(): boolean {
    return this.#cached === undefined && this.#owner.scheduler.isFull?.() === true;
  }

  /**
   * Counts the refusal of a request that finds the model full, and gives its error; undefined when there is room.
   *
   * @param id what the client calls the request; empty for none
   */
  refusal(id: string): TritonError | undefined {
    if (!this.isFull) return undefined;
    this.#owner.statistics.refusedCount++;
    return queueFullError(id, this.#drainMs());
  }

  /**
   * Triton counts no refusals, so that they have a counter of their own. Requests that would be too late are our
   * invention: they count as rejected, and say themselves when to come again.
   */
  #refused(request: PendingRequest, error: unknown): unknown {
    if (!TritonError.is(error) || error.code !== "UNAVAILABLE") return error;
    this.#owner.statistics.refusedCount++;
    if (error.retryAfterMs !== undefined) {
      this.#failed(request, "REJECTED");
      return error;
    }
    if (this.#owner.scheduler.isFull?.(request.priority) !== true) return error;
    return queueFullError(request.id, this.#drainMs());
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

/** What a model that has answered nothing yet is thought to need. */
const UNKNOWN_MS = 1000;

/**
 * About how many milliseconds the instances need for the requests that wait, by what executions took so far: the time
 * after which a refused request is worth sending again.
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
