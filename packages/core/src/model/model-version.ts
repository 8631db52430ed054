import { type ModelConfig, type ModelInstanceGroup, type Tensor, TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { ResponseCache } from "../cache/response-cache.js";
import type { CallModels } from "../callback/infer-func.js";
import type { HostPolicies } from "../config/instance-groups.js";
import { initialStates } from "../config/sequence-batching.js";
import type { ModelControl } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { RateLimiter } from "../instance/rate-limiter.js";
import { modelState } from "../observe/diagnostics-channels.js";
import { createLatencies, type ResolvedMetricsConfig } from "../observe/latency-metrics.js";
import type { Log } from "../observe/log.js";
import { ModelStatistics } from "../observe/statistics.js";
import type { Tracing } from "../observe/tracing.js";
import type {
  InferenceRequest,
  InferInit,
  RequestHandle,
  ResponseHandler,
} from "../request/inference-request.js";
import type { EvictionListener } from "../request/request-info.js";
import { RequestValidator } from "../request/request-validator.js";
import { DynamicBatchScheduler } from "../scheduler/dynamic-batch-scheduler.js";
import { EnsembleScheduler } from "../scheduler/ensemble-scheduler.js";
import type { FindMember } from "../scheduler/ensemble-steps.js";
import { GroupingScheduler, type VariableLength } from "../scheduler/grouping-scheduler.js";
import { DirectScheduler, type Scheduler, type SequenceCounts } from "../scheduler/scheduler.js";
import { SequenceBatchScheduler } from "../scheduler/sequence-batch-scheduler.js";
import { type Clock, DeadlineQueue, settledWithin } from "../system/clock.js";
import { dataFilesOf, readFileNow } from "../system/files.js";
import { EnsembleMembers, type MemberOf } from "./ensemble-members.js";
import {
  createInstances,
  type ExecutorFactory,
  type InstanceUpdate,
  type LiveInstances,
  ModelFaults,
  warmUp,
} from "./live-instances.js";
import { type Callee, type CallGraph, ModelRequests } from "./model-requests.js";
import {
  type ModelState,
  type QueueSnapshot,
  queueSnapshot,
  type RegisteredVersion,
} from "./version-status.js";

/**
 * One version of a model: its configuration, scheduler, instances, statistics and state.
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
  /** Decides which requests of this process are traced. */
  readonly tracing: Tracing | undefined;
  /** Why the version is UNAVAILABLE, or the latest failure since it became READY. */
  reason = "";
  /** Checks instance groups that would replace those of a bound model; set for bound models. */
  instanceProblems: ((config: ModelConfig) => readonly string[]) | undefined;
  /** Called when the state has changed. */
  onStateChange: (() => void) | undefined;

  readonly #live: LiveInstances;
  readonly #faults: ModelFaults;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #requests: ModelRequests;
  #unloading: Promise<void> | undefined;
  #held: boolean;
  /** Ends the wait of `unload` for requests. */
  #onCutOff: (() => void) | undefined;
  #state: ModelState = "LOADING";
  readonly #loaded: Promise<void>;
  /** Set for an ensemble. */
  readonly #members: EnsembleMembers | undefined;

  constructor(init: ModelVersionInit) {
    this.name = init.name;
    this.namespace = init.namespace ?? "";
    this.version = init.version;
    this.directory = init.directory;
    this.#held = init.held ?? false;
    this.labels = init.labels;
    this.tracing = init.tracing;
    this.#clock = init.clock;
    this.statistics.latencies = createLatencies(init.config, init.metricsConfig);
    this.#faults = new ModelFaults(init);
    const { live, scheduler, requests, members } = createParts(init, this.statistics, this, this.#faults);
    this.#live = live;
    this.instances = live.group;
    this.#scheduler = scheduler;
    this.#requests = requests;
    this.#members = members;
    this.#loaded = this.#members === undefined ? this.#load() : Promise.resolve();
    this.#loaded.catch(() => {});
  }

  get config(): ModelConfig {
    return this.#live.config;
  }

  get state(): ModelState {
    return this.#state;
  }

  /** Resolves when the version is READY; rejects if loading failed. An ensemble waits for its members. */
  get ready(): Promise<void> {
    return this.#members?.ready ?? this.#loaded;
  }

  /** Resolves when the instances of the version are loaded and warm; rejects if that failed. */
  get loaded(): Promise<void> {
    return this.#loaded;
  }

  /** Puts a version that was held back into service, once it is loaded. */
  publish(): void {
    this.#held = false;
    if (this.#state === "LOADING" && !this.isEnsemble) this.#enter("READY");
  }

  get isEnsemble(): boolean {
    return this.#members !== undefined;
  }

  /** Key of the model as a caller of others. */
  get key(): string {
    return `${this.name}/${this.version}`;
  }

  /** False if a request would have to wait for others. */
  get hasRoom(): boolean {
    return this.isEnsemble || this.instances.freePlaces > this.instances.queuedPayloads;
  }

  /** False for work that holds the slot of a sequence, or resources of the rate limiter. */
  get mayCallItself(): boolean {
    return !this.instances.limited && this.config.sequenceBatching === undefined;
  }

  /** Checks the members of an ensemble again, after models were added, removed or changed their state. */
  followMembers(memberOf: MemberOf): void {
    if (this.#members === undefined || this.#unloading !== undefined) return;
    const { state, reason, unfit = false } = this.#members.look(memberOf);
    if (state === this.#state && reason === this.reason) return;
    this.#enter(state, reason);
    if (unfit) this.#faults.unfit(reason);
  }

  /** Snapshot of the requests and batches that wait or run. */
  queue(): QueueSnapshot {
    return queueSnapshot(this.#scheduler, this.instances, this.statistics, this.#clock.now());
  }

  /** Live sequences; undefined for a model without sequences. */
  get sequences(): SequenceCounts | undefined {
    return this.#scheduler.sequences;
  }

  /** Number of requests accepted and not yet answered. */
  get inflightCount(): number {
    return this.#requests.count;
  }

  /**
   * Constructs a request, checks it and queues it.
   *
   * @throws TritonError if the request is refused. Its handler is never called then.
   */
  send(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    return this.#requests.send(init, onResponse);
  }

  /**
   * Checks a request and queues it.
   *
   * @throws TritonError if the request is refused. It stays untouched, and its handler is never called.
   */
  infer(request: InferenceRequest): void {
    this.#requests.infer(request);
  }

  /** True if the queue is full, so that any request would be refused. */
  get isFull(): boolean {
    return this.#requests.isFull;
  }

  /** Number of requests that the queue has room for; infinite without a limit. */
  get freePlaces(): number {
    return this.#requests.freePlaces;
  }

  /** Called after each request that is over. Set while requests wait for room in the queue. */
  set onSettled(listener: (() => void) | undefined) {
    this.#requests.onSettled = listener;
  }

  /** Counts the refusal of a request that finds the model full, and returns its error; undefined if there is room. */
  refusal(id: string): TritonError | undefined {
    return this.#requests.refusal(id);
  }

  /**
   * Changes to other instance groups while the version serves. Instances that fit stay, and missing ones are loaded
   * first. Surplus instances end when their work, and the sequences that they hold, are done.
   *
   * @throws TritonError INVALID_ARG for an ensemble, UNAVAILABLE unless the version is READY, and errors of loading an
   * instance; then nothing has changed.
   */
  async updateInstances(instanceGroup: readonly ModelInstanceGroup[]): Promise<InstanceUpdate> {
    if (this.isEnsemble) {
      throw new TritonError(
        "INVALID_ARG",
        `cannot change the instances of model '${this.name}': it is an ensemble, whose steps have the instances`,
        { reason: "INVALID_CONFIG" },
      );
    }
    if (this.state !== "READY") {
      throw new TritonError(
        "UNAVAILABLE",
        `cannot change the instances of model '${this.name}': expected the state READY, got ${this.state}`,
        { reason: "MODEL_NOT_READY" },
      );
    }
    return this.#live.update({ ...this.config, instanceGroup: [...instanceGroup] });
  }

  /** Refuses new requests, except those that are part of work in flight. Resolves when no work is in flight. */
  async finish(): Promise<void> {
    if (this.state !== "READY") return;
    this.#scheduler.stop();
    await this.#requests.empty();
  }

  /**
   * Refuses new requests, drains those in flight, and releases the instances. Requests that are not done after
   * `drainTimeoutMs` end with UNAVAILABLE. A running batch is always waited for, because a model inside native code
   * cannot be stopped.
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
      this.#enter("UNAVAILABLE", this.#faults.loadFailed(error));
      throw error;
    }
  }

  async #unload(drainTimeoutMs: number): Promise<void> {
    this.#members?.close();
    if (this.state === "LOADING") await settledWithin(this.#clock, drainTimeoutMs, this.ready);
    this.#faults.stopping = true;
    const isIdle = this.#held && this.state === "LOADING";
    if (this.state === "LOADING" && !isIdle) await this.instances.stop();
    if (this.state !== "READY" && !isIdle && !this.isEnsemble) return;
    this.#enter("UNLOADING");
    this.#scheduler.stop();
    const answered = this.#requests.empty().then(() => this.instances.idle());
    const cutOff = new Promise<void>((resolve) => {
      this.#onCutOff = resolve;
    });
    const over = Promise.race([answered, cutOff]);
    if (!(await settledWithin(this.#clock, drainTimeoutMs, over))) this.#cutOff();
    await this.instances.idle(true);
    await this.instances.stop();
    this.#enter("UNAVAILABLE", "unloaded");
  }

  /** Cancels the requests in flight. */
  #cutOff(): void {
    this.#requests.cancelAll();
    this.#onCutOff?.();
  }

  #enter(state: ModelState, reason = ""): void {
    this.#state = state;
    this.reason = reason;
    if (modelState.hasSubscribers) {
      modelState.publish({ model: this.name, version: String(this.version), state, reason });
    }
    this.onStateChange?.();
  }
}

/** Everything that a model version is made from. */
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
  /** Decides whose turn it is, over all models; undefined if any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** Graph of the models that wait for each other. */
  readonly calls: CallGraph;
  /** Cache of responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Number of requests before the first batch of the dynamic batcher: a hold for tests. */
  readonly holdUntil: number;
  /** Number of requests in the sequence batcher's backlog to wait for in addition. */
  readonly backlogHoldUntil: number;
  /** True if one batch may combine requests with different optional inputs. */
  readonly mixedInputs?: boolean | undefined;
  /** True if callbacks have to return ndarrays, without any conversion. */
  readonly strict?: boolean | undefined;
  /** Log that models write to, and registry of their own metrics. */
  readonly log: Log;
  readonly metrics: () => Registry;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
  /** Decides which requests of this process are traced. */
  readonly tracing?: Tracing | undefined;
  /** Metrics of latency to record. */
  readonly metricsConfig: ResolvedMetricsConfig;
  /** Called for sequences that ended without an END. */
  readonly onSequenceEvict?: EvictionListener | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** Initial states of sequences, for a model with implicit state: see `initialStates`. */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  /** Distinguishes models of the same name; empty unless namespaces are on. */
  readonly namespace?: string;
  /** Directory of the model, if it is from a repository. */
  readonly directory?: string | undefined;
  /** If true, the version stays LOADING after loading, until `publish`. */
  readonly held?: boolean;
}

/** The parts of one model version that process its requests. */
interface ModelParts {
  readonly live: LiveInstances;
  readonly scheduler: Scheduler;
  readonly requests: ModelRequests;
  /** Set for an ensemble. */
  readonly members: EnsembleMembers | undefined;
}

/** Creates the parts of a model version from its configuration and connects them. */
function createParts(
  init: ModelVersionInit,
  statistics: ModelStatistics,
  model: Callee & { readonly config: ModelConfig },
  faults: ModelFaults,
): ModelParts {
  const { name, version, config, clock, directory } = init;
  const deadlines = new DeadlineQueue(clock);
  const validator = new RequestValidator(config);
  const live = createInstances({ ...init, statistics, faults });
  const readFile = directory === undefined ? readFileNow : dataFilesOf(directory, "warmup");
  live.warmUp = (instance) =>
    warmUp(model.config, instance, validator, statistics, () => clock.now(), readFile);
  const instances = live.group;
  const members = config.ensembleScheduling && new EnsembleMembers(config);
  const scheduler = createScheduler({ ...init, instances, deadlines, statistics });
  instances.serve(scheduler);
  const requests = new ModelRequests({
    ...{ name, version, clock, statistics, instances, deadlines, validator, scheduler },
    outputs: config.output.map((output) => output.name),
    calls: init.calls,
    log: init.log,
    callee: model,
    responseCache: config.responseCache?.enable ? init.responseCache : undefined,
  });
  return { live, scheduler, requests, members };
}

/** Everything that a scheduler may need from its model. */
interface SchedulerContext {
  readonly config: ModelConfig;
  readonly version: number;
  readonly instances: InstanceGroup;
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly statistics: ModelStatistics;
  readonly holdUntil: number;
  readonly backlogHoldUntil: number;
  readonly onSequenceEvict?: EvictionListener | undefined;
  /**
   * Initial states of sequences, for a model with implicit state.
   * @default the initial states of the configuration
   */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  readonly findMember: FindMember;
  /** True if one batch may combine requests with different optional inputs. */
  readonly mixedInputs?: boolean | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
}

/** Creates the scheduler that a configuration asks for. */
function createScheduler(context: SchedulerContext): Scheduler {
  const { config, instances, clock, deadlines, holdUntil } = context;
  if (config.ensembleScheduling !== undefined) return new EnsembleScheduler(context);
  if (config.sequenceBatching !== undefined) {
    const { backlogHoldUntil, onSequenceEvict: onEvict } = context;
    const given = context.initialStates ?? initialStates(config, readFileNow).states;
    const options = { holdUntil, backlogHoldUntil, onEvict, initialStates: given };
    return new SequenceBatchScheduler(config, clock, deadlines, options);
  }
  if (config.dynamicBatching === undefined) return new DirectScheduler(instances);
  const { variableLength } = context;
  if (variableLength !== undefined) {
    const { grouping, padded } = variableLength;
    return new GroupingScheduler(config, instances, clock, deadlines, grouping, padded, holdUntil);
  }
  const { mixedInputs: mixed } = context;
  return new DynamicBatchScheduler(config, instances, clock, deadlines, holdUntil, { mixed });
}
