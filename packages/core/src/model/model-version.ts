import { type ModelConfig, type ModelInstanceGroup, TritonError } from "@tritonjs/protocol";
import { settledWithin } from "../clock/bounded-wait.js";
import type { Clock } from "../clock/clock.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import { modelState } from "../observe/diagnostics/channels.js";
import { createLatencies } from "../observe/latency/latency-metrics.js";
import { ModelStatistics } from "../observe/statistics.js";
import type { Tracing } from "../observe/trace/tracing.js";
import type { InferInit, ResponseHandler } from "../request/inference-request-init.js";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestHandle } from "../request/request-handle.js";
import type { Scheduler, SequenceCounts } from "../scheduler/scheduler.js";
import type { EnsembleMembers, MemberOf } from "./ensemble-members.js";
import type { InstanceUpdate, LiveInstances } from "./live-instances.js";
import { ModelFaults } from "./model-faults.js";
import { createParts } from "./model-parts.js";
import type { ModelRequests } from "./model-requests.js";
import type { ModelVersionInit } from "./model-version-init.js";
import { type QueueSnapshot, queueSnapshot } from "./queue-snapshot.js";
import type { ModelState, RegisteredVersion } from "./registered-version.js";

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
  infer(request: PendingRequest): void {
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
