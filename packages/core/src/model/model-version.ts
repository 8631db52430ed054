import { CachedModel } from "../cache/cached-model.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { DeadlineQueue } from "../clock/deadline-queue.js";
import { settledWithin } from "../clock/settled-within.js";
import type { ModelConfig } from "../config/model-config.js";
import { timeoutError } from "../errors/timeout-error.js";
import { TritonError } from "../errors/triton-error.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import { type FailureReason, ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { EvictionListener } from "../request/sequence-info.js";
import { RequestValidator } from "../request/validate-request.js";
import type { FindMember } from "../scheduler/ensemble/member.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { CallGraph } from "./call-graph.js";
import { createInstances, type ExecutorFactory } from "./create-instances.js";
import { createScheduler } from "./create-scheduler.js";
import { EnsembleMembers, type MemberOf } from "./ensemble-members.js";
import { InflightRequests } from "./inflight-requests.js";
import type { ModelState } from "./model-state.js";
import { warmUp } from "./warm-up.js";

/** What a model version is made of. */
export interface ModelVersionInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  readonly clock: Clock;
  /** Finds the members of an ensemble. */
  readonly findMember: FindMember;
  /** Calls other models for callbacks. */
  readonly callModels: CallModels;
  /** Which models wait for which. */
  readonly calls: CallGraph;
  /** Keeps responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Requests that the dynamic batcher waits for before its first batch: a hold for tests. */
  readonly holdUntil: number;
  /** Requests that the sequence batcher waits for in its backlog in addition. */
  readonly backlogHoldUntil: number;
  /** Told of sequences that are over without an END. */
  readonly onSequenceEvict?: EvictionListener | undefined;
}

/**
 * One version of a model: its configuration, scheduler, instances and statistics, and the state it is in.
 *
 * ```
 * LOADING --> READY --unload--> UNLOADING --> UNAVAILABLE (unloaded)
 *    +--load fails--> UNAVAILABLE (reason)
 * ```
 */
export class ModelVersion {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly statistics = new ModelStatistics();
  readonly instances: InstanceGroup;
  /** Why the version is UNAVAILABLE. */
  reason = "";
  /** Told when the state has changed. */
  onStateChange: (() => void) | undefined;

  readonly #clock: Clock;
  readonly #validator: RequestValidator;
  readonly #scheduler: Scheduler;
  readonly #cached: CachedModel | undefined;
  readonly #deadlines: DeadlineQueue;
  readonly #inflight = new InflightRequests();
  readonly #calls: CallGraph;
  #unloading: Promise<void> | undefined;
  #state: ModelState = "LOADING";
  readonly #loaded: Promise<void>;
  /** Set for an ensemble. */
  readonly #members: EnsembleMembers | undefined;

  constructor(init: ModelVersionInit) {
    const { name, version, config, clock } = init;
    this.name = name;
    this.version = version;
    this.config = config;
    this.labels = init.labels;
    this.#clock = clock;
    this.#calls = init.calls;
    this.#deadlines = new DeadlineQueue(clock);
    this.#validator = new RequestValidator(config);
    const { statistics } = this;
    this.instances = createInstances({ ...init, statistics });
    this.#members = config.ensembleScheduling && new EnsembleMembers(config);
    const { instances } = this;
    this.#scheduler = createScheduler({ ...init, instances, deadlines: this.#deadlines, statistics });
    if (config.responseCache?.enable && init.responseCache !== undefined) {
      const enqueue = (request: InferenceRequest) => this.#scheduler.enqueue(request);
      this.#cached = new CachedModel(init.responseCache, { name, version, clock, statistics, enqueue });
    }
    this.#loaded = this.#members === undefined ? this.#load() : Promise.resolve();
    this.#loaded.catch(() => {});
  }

  get state(): ModelState {
    return this.#state;
  }

  /** Resolves when the version is READY, rejects when loading failed. An ensemble waits for its members. */
  get ready(): Promise<void> {
    return this.#members?.ready ?? this.#loaded;
  }

  get isEnsemble(): boolean {
    return this.#members !== undefined;
  }

  /** The model as a caller of others. */
  get key(): string {
    return `${this.name}/${this.version}`;
  }

  /** False while a request would have to wait for others. */
  get hasRoom(): boolean {
    return this.isEnsemble || this.instances.idleInstances > this.instances.queuedPayloads;
  }

  /** For an ensemble: models have come, gone, or changed their state. */
  followMembers(memberOf: MemberOf): void {
    if (this.#members === undefined || this.#unloading !== undefined) return;
    const { state, reason } = this.#members.look(memberOf);
    if (state !== this.#state || reason !== this.reason) this.#enter(state, reason);
  }

  /** Requests accepted and not yet answered. */
  get inflightCount(): number {
    return this.#inflight.size;
  }

  /**
   * Checks a request and queues it.
   *
   * @throws TritonError when the request is refused: it is then untouched, and its handler never called.
   */
  infer(request: InferenceRequest): void {
    this.#validator.validate(request);
    const unhealthy = this.instances.unhealthyReason;
    if (unhealthy !== undefined) throw unhealthy;
    request.queueStart = this.#clock.now();
    if (request.deadline !== undefined && request.deadline <= request.queueStart) {
      throw timeoutError();
    }
    const leave = request.callers.length > 0 ? this.#calls.enter(request.callers, this) : undefined;
    request.onSettled = (error) => {
      leave?.();
      this.#settled(request, error);
    };
    this.#inflight.add(request);
    this.statistics.pendingCount++;
    try {
      if (this.#cached === undefined) this.#scheduler.enqueue(request);
      else this.#cached.infer(request);
    } catch (error) {
      request.onSettled = undefined;
      leave?.();
      this.#inflight.delete(request);
      this.statistics.pendingCount--;
      throw error;
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = this.#deadlines.add(request.deadline, () => request.cancel(timeoutError()));
    }
  }

  /** Refuses new requests, but for those that are part of work at hand. Resolves when there is none at hand. */
  async finish(): Promise<void> {
    if (this.state !== "READY") return;
    this.#scheduler.stop();
    await this.#inflight.empty();
  }

  /**
   * Refuses new requests, lets those at hand finish, and releases the instances. Requests that are not done
   * after `drainTimeoutMs` end with UNAVAILABLE; a batch that is running is waited for all the same, because a
   * model inside native code cannot be stopped.
   */
  unload(drainTimeoutMs: number): Promise<void> {
    this.#unloading ??= this.#unload(drainTimeoutMs);
    return this.#unloading;
  }

  async #load(): Promise<void> {
    const start = this.#clock.now();
    try {
      await this.instances.start();
      await warmUp(this.config, this.instances, this.#validator, this.statistics, () => this.#clock.now());
      this.statistics.loadDurationMs = this.#clock.now() - start;
      this.#enter("READY");
    } catch (error) {
      await this.instances.stop();
      this.#enter("UNAVAILABLE", TritonError.from(error).message);
      throw error;
    }
  }

  async #unload(drainTimeoutMs: number): Promise<void> {
    this.#members?.close();
    if (this.state === "LOADING") await settledWithin(this.#clock, drainTimeoutMs, this.ready);
    if (this.state === "LOADING") await this.instances.stop();
    if (this.state !== "READY" && !this.isEnsemble) return;
    this.#enter("UNLOADING");
    this.#scheduler.stop();
    const answered = this.#inflight.empty().then(() => this.instances.idle());
    if (!(await settledWithin(this.#clock, drainTimeoutMs, answered))) {
      const text = `model '${this.name}' was stopped before the request was done`;
      this.#inflight.cancel(new TritonError("UNAVAILABLE", text));
    }
    await this.instances.idle(true);
    await this.instances.stop();
    this.#enter("UNAVAILABLE", "unloaded");
  }

  #enter(state: ModelState, reason = ""): void {
    this.#state = state;
    this.reason = reason;
    this.onStateChange?.();
  }

  #settled(request: InferenceRequest, error: TritonError | undefined): void {
    this.#inflight.delete(request);
    request.deadlineTimer?.cancel();
    if (!request.executing) this.statistics.pendingCount--;
    if (error !== undefined && request.cancelReason !== undefined) {
      this.statistics.recordFailure(reasonOf(error), this.#clock.now() - request.queueStart);
    }
  }
}

function reasonOf(error: TritonError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
}
