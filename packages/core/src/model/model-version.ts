import type { Registry } from "prom-client";
import type { VariableLength } from "../batch/variable-length.js";
import { CachedModel } from "../cache/cached-model.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { DeadlineQueue } from "../clock/deadline-queue.js";
import { settledWithin } from "../clock/settled-within.js";
import type { HostPolicies } from "../config/host-policy.js";
import type { ModelConfig, ModelInstanceGroup } from "../config/model-config.js";
import { statusText } from "../errors/status-text.js";
import { timeoutError } from "../errors/timeout-error.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelControl } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { RateLimiter } from "../instance/rate-limiter/rate-limiter.js";
import type { ResolvedMetricsConfig } from "../observe/latency/metrics-config.js";
import type { Log } from "../observe/log/log.js";
import { type FailureReason, ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { EvictionListener } from "../request/sequence-info.js";
import { RequestValidator } from "../request/validate-request.js";
import type { FindMember } from "../scheduler/ensemble/member.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Tensor } from "../tensor/tensor.js";
import type { CallGraph } from "./call-graph.js";
import { createInstances, type ExecutorFactory } from "./create-instances.js";
import { createLatencies } from "./create-latencies.js";
import { createScheduler } from "./create-scheduler.js";
import { EnsembleMembers, type MemberOf } from "./ensemble-members.js";
import { InflightRequests } from "./inflight-requests.js";
import type { LiveInstances } from "./live-instances.js";
import type { ModelState } from "./model-state.js";
import { type QueueSnapshot, queueSnapshot } from "./queue-snapshot.js";
import type { RegisteredVersion } from "./registered-version.js";
import { warmUp } from "./warm-up.js";
import { withDataFiles } from "./warmup-files.js";

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
  /** Decides whose turn it is, over all models; undefined when any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** Which models wait for which. */
  readonly calls: CallGraph;
  /** Keeps responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Requests that the dynamic batcher waits for before its first batch: a hold for tests. */
  readonly holdUntil: number;
  /** Requests that the sequence batcher waits for in its backlog in addition. */
  readonly backlogHoldUntil: number;
  /** Whether the model takes requests with other optional inputs in one batch. */
  readonly mixedInputs?: boolean | undefined;
  /** Whether callbacks have to return ndarrays of which nothing is converted. */
  readonly strict?: boolean | undefined;
  /** Where models write to, and the metrics that they may have of their own. */
  readonly log: Log;
  readonly metrics: Registry;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
  /** Which metrics of latency there are. */
  readonly metricsConfig: ResolvedMetricsConfig;
  /** Told of sequences that are over without an END. */
  readonly onSequenceEvict?: EvictionListener | undefined;
  /** Batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** What the sequences of a model with implicit state start with: see `initialStates`. */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  /** Tells models of one name apart; empty unless namespaces are on. */
  readonly namespace?: string;
  /** Directory of the model, when it comes from a repository. */
  readonly directory?: string | undefined;
  /** When true, the version stays LOADING once it is loaded, until `publish`. */
  readonly held?: boolean;
}

/**
 * One version of a model: its configuration, scheduler, instances and statistics, and the state it is in.
 *
 * ```
 * LOADING --> READY --unload--> UNLOADING --> UNAVAILABLE (unloaded)
 *    +--load fails--> UNAVAILABLE (reason)
 * ```
 */
export class ModelVersion implements RegisteredVersion {
  readonly name: string;
  readonly namespace: string;
  readonly version: number;
  readonly directory: string | undefined;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly statistics = new ModelStatistics();
  readonly instances: InstanceGroup;
  /** Why the version is UNAVAILABLE, or what failed since it is READY. */
  reason = "";
  /** Told when the state has changed. */
  onStateChange: (() => void) | undefined;

  #config: ModelConfig;
  readonly #live: LiveInstances;
  readonly #clock: Clock;
  readonly #validator: RequestValidator;
  readonly #scheduler: Scheduler;
  readonly #cached: CachedModel | undefined;
  readonly #deadlines: DeadlineQueue;
  readonly #inflight = new InflightRequests();
  readonly #calls: CallGraph;
  #unloading: Promise<void> | undefined;
  #held: boolean;
  /** Ends the wait of `unload` for requests. */
  #onCutOff: (() => void) | undefined;
  #state: ModelState = "LOADING";
  readonly #loaded: Promise<void>;
  /** Set for an ensemble. */
  readonly #members: EnsembleMembers | undefined;

  constructor(init: ModelVersionInit) {
    const { name, version, config, clock } = init;
    this.name = name;
    this.namespace = init.namespace ?? "";
    this.version = version;
    this.directory = init.directory;
    this.#held = init.held ?? false;
    this.#config = config;
    this.labels = init.labels;
    this.#clock = clock;
    this.#calls = init.calls;
    this.statistics.latencies = createLatencies(config, init.metricsConfig);
    this.#deadlines = new DeadlineQueue(clock);
    this.#validator = new RequestValidator(config);
    const { statistics } = this;
    this.#live = createInstances({ ...init, statistics });
    this.#live.warmUp = (instance) =>
      warmUp(withDataFiles(this.config, init.directory), instance, this.#validator, statistics, () =>
        clock.now(),
      );
    this.instances = this.#live.group;
    this.#members = config.ensembleScheduling && new EnsembleMembers(config);
    const { instances } = this;
    this.#scheduler = createScheduler({ ...init, instances, deadlines: this.#deadlines, statistics });
    if (config.responseCache?.enable && init.responseCache !== undefined) {
      const enqueue = (request: InferenceRequest) => this.#scheduler.enqueue(request);
      this.#cached = new CachedModel(init.responseCache, {
        name,
        version,
        clock,
        deadlines: this.#deadlines,
        statistics,
        enqueue,
      });
    }
    this.#loaded = this.#members === undefined ? this.#load() : Promise.resolve();
    this.#loaded.catch(() => {});
  }

  get config(): ModelConfig {
    return this.#config;
  }

  get state(): ModelState {
    return this.#state;
  }

  /** Resolves when the version is READY, rejects when loading failed. An ensemble waits for its members. */
  get ready(): Promise<void> {
    return this.#members?.ready ?? this.#loaded;
  }

  /** Resolves when the instances of the version are loaded and warm, rejects when that failed. */
  get loaded(): Promise<void> {
    return this.#loaded;
  }

  /** Lets a version that was held back serve, once it is loaded. */
  publish(): void {
    this.#held = false;
    if (this.#state === "LOADING" && !this.isEnsemble) this.#enter("READY");
  }

  /** Says of a version in service what went wrong since; nothing for an empty text. */
  note(reason: string): void {
    this.reason = reason;
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

  /** What the requests are waiting for. */
  queue(): QueueSnapshot {
    return queueSnapshot(this.#scheduler, this.instances, this.statistics, this.#clock.now());
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
      this.#refused(request, error);
      throw error;
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = this.#deadlines.add(request.deadline, () => request.cancel(timeoutError()));
    }
  }

  /**
   * Goes over to other instance groups while it serves: instances that fit stay, missing ones are loaded first, and
   * those that are too many end when they, and the sequences that they hold, are done.
   *
   * @throws TritonError UNAVAILABLE unless the version is READY, and what loading an instance throws; then nothing
   * has changed.
   */
  async updateInstances(instanceGroup: readonly ModelInstanceGroup[]): Promise<void> {
    if (this.state !== "READY" || this.isEnsemble) {
      throw new TritonError(
        "UNAVAILABLE",
        `model '${this.name}' has no instances to change: it is ${this.state}`,
      );
    }
    const config = { ...this.#config, instanceGroup: [...instanceGroup] };
    await this.#live.update(config);
    this.#config = { ...this.#config, instanceGroup: config.instanceGroup };
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
  async unload(drainTimeoutMs: number): Promise<void> {
    if (this.#unloading === undefined) this.#unloading = this.#unload(drainTimeoutMs);
    else if (!(await settledWithin(this.#clock, drainTimeoutMs, this.#unloading))) this.#cutOff();
    await this.#unloading;
  }

  async #load(): Promise<void> {
    const start = this.#clock.now();
    try {
      await this.#live.start();
      this.statistics.loadDurationMs = this.#clock.now() - start;
      if (!this.#held) this.#enter("READY");
    } catch (error) {
      await this.instances.stop();
      const reason = this.directory === undefined ? TritonError.from(error).message : statusText(error);
      this.#enter("UNAVAILABLE", reason);
      throw error;
    }
  }

  async #unload(drainTimeoutMs: number): Promise<void> {
    this.#members?.close();
    if (this.state === "LOADING") await settledWithin(this.#clock, drainTimeoutMs, this.ready);
    const isIdle = this.#held && this.state === "LOADING";
    if (this.state === "LOADING" && !isIdle) await this.instances.stop();
    if (this.state !== "READY" && !isIdle && !this.isEnsemble) return;
    this.#enter("UNLOADING");
    this.#scheduler.stop();
    const answered = this.#inflight.empty().then(() => this.instances.idle());
    const cutOff = new Promise<void>((resolve) => {
      this.#onCutOff = resolve;
    });
    const over = Promise.race([answered, cutOff]);
    if (!(await settledWithin(this.#clock, drainTimeoutMs, over))) this.#cutOff();
    await this.instances.idle(true);
    await this.instances.stop();
    this.#enter("UNAVAILABLE", "unloaded");
  }

  /** Ends the requests at hand. */
  #cutOff(): void {
    const text = `model '${this.name}' was stopped before the request was done`;
    this.#inflight.cancel(new TritonError("UNAVAILABLE", text));
    this.#onCutOff?.();
  }

  #enter(state: ModelState, reason = ""): void {
    this.#state = state;
    this.reason = reason;
    this.onStateChange?.();
  }

  /** Triton counts no refusals; those of requests that would be too late are ours, and say when to come again. */
  #refused(request: InferenceRequest, error: unknown): void {
    if (!TritonError.is(error) || error.retryAfterMs === undefined) return;
    this.statistics.recordFailure("REJECTED", this.#clock.now() - request.queueStart);
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
