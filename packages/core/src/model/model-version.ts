import {
  errorFor,
  type Isolation,
  type ModelConfig,
  type ModelInstanceGroup,
  statusText,
  TritonError,
} from "@tritonjs/protocol";
import { join, readFileNow } from "#host";
import type { Payload } from "../batch/payload.js";
import { countInstances } from "../config/instance-groups.js";
import { initialStates } from "../config/sequence-batching.js";
import type { InputCheck } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import { modelState } from "../observe/diagnostics-channels.js";
import type { Log } from "../observe/log.js";
import { createLatencies, ModelStatistics } from "../observe/statistics.js";
import type { Tracing } from "../observe/tracing.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { RequestValidator } from "../request/request-validator.js";
import type { ReadHeaders } from "../request-info.js";
import type { AroundScheduling } from "../scheduler/around-scheduling.js";
import type { BatchedModel } from "../scheduler/batcher.js";
import { DirectScheduler } from "../scheduler/direct/direct-scheduler.js";
import { DynamicBatchScheduler } from "../scheduler/dynamic/dynamic-batch-scheduler.js";
import { classifyRequest, GroupingScheduler } from "../scheduler/dynamic/grouping-scheduler.js";
import { EnsembleScheduler } from "../scheduler/ensemble/ensemble-scheduler.js";
import type { Scheduler, SequenceCounts } from "../scheduler/scheduler.js";
import { SequenceBatchScheduler } from "../scheduler/sequence/sequence-batch-scheduler.js";
import { type Clock, DeadlineQueue, settledWithin } from "../system/clock.js";
import { EnsembleMembers, type MemberOf, Pending } from "./ensemble-members.js";
import { type InstanceUpdate, LiveInstances } from "./live-instances.js";
import {
  answersInOrder,
  MOST_HELD_MS,
  migrationObstacle,
  moveWaiting,
  SequenceSuccession,
} from "./migration.js";
import { ModelRequests } from "./model-requests.js";
import type { ModelPlan, ModelServer } from "./model-server.js";
import type { Residence, TenantModel } from "./residence.js";
import type { ModelState, PayloadSnapshot, QueueSnapshot, RegisteredVersion } from "./version-status.js";

/** Decides which version of a model answers the requests that name none: the seam `route` of an extension. */
export interface VersionRouter {
  /** Version that look-ups without a version find while it is in service. */
  readonly version: number;
  /** Header that holds the key by which requests keep their version. @default no header does */
  readonly keyHeader?: string | undefined;
  /** Returns the version that answers a request. It is called once for each request, before the request is queued. */
  route(request: InferenceRequest, found: ModelVersion): ModelVersion;
}

/**
 * One version of a model: its configuration, scheduler, instances, statistics and state.
 *
 * ```
 * LOADING --> READY --unload--> UNLOADING --> UNAVAILABLE (unloaded)
 *    +--load fails--> UNAVAILABLE (reason)
 * ```
 */
export class ModelVersion implements RegisteredVersion, TenantModel {
  readonly name: string;
  readonly namespace: string;
  readonly version: number;
  readonly key: string;
  /** Directory of the version in the model repository; undefined for a bound model. */
  readonly directory: string | undefined;
  labels: ReadonlyMap<string, readonly string[]>;
  readonly outputNames: readonly string[];
  readonly isEnsemble: boolean;
  readonly clock: Clock;
  /** Decides which requests of this process are traced. */
  readonly tracing: Tracing | undefined;
  readonly statistics = new ModelStatistics();
  readonly deadlines: DeadlineQueue;
  /** Set if an extension stands around the scheduling. */
  around: AroundScheduling | undefined;
  validator: RequestValidator;
  instances: InstanceGroup;
  scheduler: Scheduler;
  state: ModelState = "LOADING";
  /** Why the version is UNAVAILABLE, or the latest failure since it became READY. */
  reason = "";
  onStateChange: (() => void) | undefined;
  /** Set while requests to the model that name no version are divided among several. */
  router: VersionRouter | undefined;

  /** Its place in memory; undefined for a version that is always there. */
  readonly residence: Residence | undefined;
  #live: LiveInstances;
  readonly #server: ModelServer;
  /** Instances of before changes, with their schedulers, which still have requests or sequences. */
  readonly #former = new Map<LiveInstances, Scheduler>();
  /** The last change of the configuration or the instances; changes are made one at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  readonly requests: ModelRequests;
  /** Set for an ensemble. */
  readonly #members: EnsembleMembers | undefined;
  readonly #log: Log;
  /** Resolves when the instances of the version are loaded and warm; rejects if that failed. */
  readonly loaded: Promise<void>;
  #held: boolean;
  /** True once the version is stopped: if it was loading, the end of that is not a failure. */
  #stopping = false;
  #unloading: Promise<void> | undefined;
  /** Ends the wait of `unload` for requests. */
  #onCutOff: (() => void) | undefined;

  constructor(
    public plan: ModelPlan,
    server: ModelServer,
  ) {
    this.#server = server;
    const { name, namespace = "", version, config, directory, labels, held = false } = plan;
    this.name = name;
    this.namespace = namespace;
    this.version = version;
    this.key = `${name}/${version}`;
    this.directory = directory && join(directory, String(version));
    this.labels = labels;
    this.outputNames = config.output.map((output) => output.name);
    this.isEnsemble = config.ensembleScheduling !== undefined;
    this.clock = server.clock;
    this.tracing = server.tracing;
    this.#log = server.log;
    this.#held = held;
    this.statistics.latencies = createLatencies(config, server.metricsConfig);
    this.deadlines = new DeadlineQueue(server.clock);
    this.validator = new RequestValidator(config);
    this.residence = server.admit?.(this);
    const isAway = this.residence !== undefined;
    this.around = this.isEnsemble ? undefined : server.around?.(plan);
    this.#live = new LiveInstances(plan, server, this.statistics, this.validator, isAway, this.around);
    this.instances = this.#live.group;
    this.scheduler = this.#schedulerOf(plan, this.instances, this.around);
    this.instances.serve(this.scheduler);
    if (config.dynamicBatching !== undefined)
      server.log
        .of("dynamic_batch_scheduler")
        .verbose(1, `Starting dynamic-batcher thread for ${config.name} at nice 0...`, {
          model: config.name,
        });
    if (config.sequenceBatching !== undefined) logSequenceBatchers(config, server.log);
    const cache = config.responseCache?.enable ? server.responseCache : undefined;
    this.requests = new ModelRequests(this, server, cache);
    if (this.isEnsemble) this.#members = new EnsembleMembers(config);
    this.loaded = this.isEnsemble ? Promise.resolve() : this.#load();
    this.loaded.catch(() => {});
  }

  get config(): ModelConfig {
    return this.#live?.config ?? this.plan.config;
  }

  get inflightCount(): number {
    return this.requests.count;
  }

  get isolation(): Isolation | undefined {
    return this.instances.instances[0]?.executor.isolation;
  }

  arrive(): Promise<void> {
    return this.#live.arrive();
  }

  leave(): Promise<void> {
    return this.#live.leave();
  }

  failQueued(error: TritonError): void {
    this.scheduler.failQueued(error);
  }

  /** Cached outputs and keys of the cache need the elements. */
  get takesSources(): boolean {
    return (
      this.config.responseCache?.enable !== true &&
      this.residence?.isResident !== false &&
      this.instances.instances.every(({ executor }) => executor.takesSources === true)
    );
  }

  /** Refuses inputs by their shapes. Undefined without a limit, and while several versions share the requests. */
  get checkInput(): InputCheck | undefined {
    if (this.router !== undefined) return undefined;
    return this.#members === undefined
      ? this.instances.instances[0]?.executor.checkInput
      : this.#members.checkInput;
  }

  get crashReason(): string | undefined {
    return this.residence?.problem ?? this.instances.crashReason?.message;
  }

  /** Resolves when the version is READY; rejects if loading failed. An ensemble waits for its members. */
  get ready(): Promise<void> {
    return this.#members?.ready ?? this.loaded;
  }

  /** Puts a version that was held back into service, once it is loaded. */
  publish(): void {
    this.#held = false;
    if (this.state === "LOADING" && !this.isEnsemble) this.#enter("READY", this.reason);
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
    if (state === this.state && reason === this.reason) return;
    this.#enter(state, reason);
    // The repository logs the same of its own ensembles.
    if (unfit && this.directory === undefined) this.#logFailedLoad(`Invalid argument: ${reason}`);
  }

  /** Snapshot of the requests and batches that wait or run. The cost grows with the number of these. */
  queue(): QueueSnapshot {
    const now = this.clock.now();
    const ageOf = (since: number) => Math.max(0, Math.round((now - since) * 1000));
    const describe = ({ requestCount, batchSize, oldestQueueStart, cut }: Payload): PayloadSnapshot => ({
      requests: requestCount,
      rows: batchSize,
      ageMicroseconds: ageOf(oldestQueueStart),
      cut,
    });
    const { scheduler, instances, statistics } = this;
    return {
      queued: scheduler.queuedCount,
      levels: (scheduler.levels ?? []).map(({ oldestQueueStart, ...level }) => ({
        ...level,
        oldestAgeMicroseconds: ageOf(oldestQueueStart),
      })),
      payloads: instances.waiting.map(describe),
      instances: instances.instances.map((instance) => ({
        name: instance.placement.name,
        running: instance.atWork.map(describe),
        waiting: instances.waitingFor(instance).map(describe),
      })),
      cuts: { ...statistics.cuts.counts },
      recentCuts: statistics.cuts.recent,
    };
  }

  get sequences(): SequenceCounts | undefined {
    return this.scheduler.sequences;
  }

  get inService(): boolean {
    return this.state === "READY";
  }

  infer(request: InferenceRequest): InferenceRequest {
    this.requests.infer(request);
    return request;
  }

  get keyHeader(): string | undefined {
    return this.router?.keyHeader;
  }

  /** Headers of clients that the scheduler looks at. */
  get reads(): ReadHeaders | undefined {
    return this.scheduler.limits?.reads;
  }

  /** The version that answers a request without a version, for which a look-up has found this one. */
  chosen(request: InferenceRequest): ModelVersion {
    return this.router === undefined ? this : this.router.route(request, this);
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
      throw errorFor(
        "INVALID_CONFIG",
        `cannot change the instances of model '${this.name}': it is an ensemble, whose steps have the instances`,
      );
    }
    if (this.state !== "READY") {
      throw errorFor(
        "MODEL_NOT_READY",
        `cannot change the instances of model '${this.name}': expected the state READY, got ${this.state}`,
      );
    }
    return this.#next(() => this.#live.update({ ...this.config, instanceGroup: [...instanceGroup] }));
  }

  /**
   * Changes the batcher, the instances, where they run, or the backend, while the version serves. New instances are loaded
   * first. Then the requests that wait move to the new queue in their order, and open sequences go on where they are.
   *
   * @returns promise of the release of the old instances; those with open sequences are not waited for
   * @throws TritonError INVALID_ARG for a plan with other tensors, UNAVAILABLE unless the version is READY, and errors of
   * loading an instance; then nothing has changed
   */
  migrate(plan: ModelPlan): Promise<InstanceUpdate> {
    return this.#next(() => this.#migrate(plan));
  }

  async #migrate(given: ModelPlan): Promise<InstanceUpdate> {
    const plan = this.#server.adapt?.(given) ?? given;
    const cannot = `cannot change model '${this.name}' version ${this.version} while it serves`;
    const obstacle = migrationObstacle(this.config, plan.config);
    if (obstacle !== undefined) throw errorFor("INVALID_CONFIG", `${cannot}: ${obstacle}`);
    await this.residence?.pin?.();
    try {
      const isAway = this.residence?.isResident === false;
      const validator = new RequestValidator(plan.config);
      const around = this.#server.around?.(plan);
      const live = new LiveInstances(plan, this.#server, this.statistics, validator, isAway, around);
      const scheduler = this.#schedulerOf(plan, live.group, around);
      live.group.serve(scheduler);
      if (!isAway) await live.start();
      if (this.state !== "READY") {
        await live.group.stop();
        throw errorFor("MODEL_NOT_READY", `${cannot}: expected the state READY, got ${this.state}`);
      }
      this.around = around;
      return this.#replaceWith(plan, live, scheduler, validator);
    } finally {
      this.residence?.unpin?.();
    }
  }

  #schedulerOf(plan: ModelPlan, instances: InstanceGroup, around: AroundScheduling | undefined): Scheduler {
    if (around === undefined) return createScheduler(plan, instances, this, this.#server);
    const { clock } = around;
    const deadlines = new DeadlineQueue(clock);
    const { statistics } = this;
    const inner = createScheduler(plan, instances, { clock, deadlines, statistics }, this.#server);
    return around.scheduler(inner, instances);
  }

  /** Puts loaded instances in the place of the present ones. Nothing waits in between. */
  #replaceWith(
    plan: ModelPlan,
    live: LiveInstances,
    scheduler: Scheduler,
    validator: RequestValidator,
  ): InstanceUpdate {
    const [oldLive, group] = [this.#live, this.instances];
    const old = this.scheduler instanceof SequenceSuccession ? this.scheduler.newest : this.scheduler;
    if (answersInOrder(this.config, group)) {
      const groups = [group, ...[...this.#former.keys()].map((former) => former.group)];
      const idle = Promise.all(groups.map((one) => one.idle()));
      live.group.hold(settledWithin(this.clock, MOST_HELD_MS, idle));
    }
    Object.assign(this, { plan, validator, labels: plan.labels });
    this.#live = live;
    this.instances = live.group;
    this.#former.set(oldLive, old);
    this.#schedule(scheduler);
    const isSequential = plan.config.sequenceBatching !== undefined;
    if (!isSequential) {
      // An idle instance must not take a batch that the old batcher forms of the requests behind those that have left.
      const moved = new Pending();
      group.hold(moved.promise);
      moveWaiting(this.requests.inFlight, scheduler, plan.config.maxBatchSize || Number.POSITIVE_INFINITY);
      old.stop();
      moved.resolve();
    }
    const removed = this.#endFormer(oldLive, old).catch((error) => this.#log.error(statusText(error)));
    this.onStateChange?.();
    return { removed: isSequential ? Promise.resolve() : removed };
  }

  /** Releases instances of before once they have no work. */
  async #endFormer(live: LiveInstances, scheduler: Scheduler): Promise<void> {
    await scheduler.whenEmpty?.();
    await live.group.idle();
    // Requests that are too large for the new queue have stayed.
    while (scheduler.queuedCount + live.group.queuedPayloads > 0) {
      await new Promise<void>((resolve) => this.clock.defer(resolve));
      await live.group.idle();
    }
    await live.leave();
    await live.group.stop();
    this.#former.delete(live);
    this.#schedule(this.scheduler instanceof SequenceSuccession ? this.scheduler.newest : this.scheduler);
  }

  #schedule(newest: Scheduler): void {
    const former = [...this.#former.values()].filter(({ hasSequence }) => hasSequence !== undefined);
    this.scheduler = former.length === 0 ? newest : new SequenceSuccession(newest, former);
  }

  #next<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => {});
    return done;
  }

  /** Refuses new requests, except those that are part of work in flight. Resolves when no work is in flight. */
  async finish(): Promise<void> {
    if (this.state !== "READY") return;
    this.scheduler.stop();
    await this.requests.empty();
  }

  /**
   * Refuses new requests, drains those in flight, and releases the instances. Requests that are not done after
   * `drainTimeoutMs` end with UNAVAILABLE. A running batch is always waited for, because a model inside native code
   * cannot be stopped.
   */
  async unload(drainTimeoutMs: number): Promise<void> {
    if (this.#unloading === undefined) this.#unloading = this.#unload(drainTimeoutMs);
    else if (!(await settledWithin(this.clock, drainTimeoutMs, this.#unloading))) this.#cutOff();
    await this.#unloading;
  }

  async #load(): Promise<void> {
    const start = this.clock.now();
    try {
      if (this.residence === undefined) await this.#live.start();
      else await this.residence.start(this.plan.loadsNow === true);
      this.statistics.loadDurationMs = this.clock.now() - start;
      if (!this.#held) this.#enter("READY", this.reason);
    } catch (error) {
      this.residence?.end?.();
      await this.instances.stop();
      this.#enter("UNAVAILABLE", this.#loadFailed(error));
      throw error;
    }
  }

  async #unload(drainTimeoutMs: number): Promise<void> {
    this.#members?.close();
    if (this.state === "LOADING") await settledWithin(this.clock, drainTimeoutMs, this.ready);
    this.#stopping = true;
    const isIdle = this.#held && this.state === "LOADING";
    if (this.state === "LOADING" && !isIdle) await this.instances.stop();
    if (this.state !== "READY" && !isIdle && !this.isEnsemble) return;
    this.#enter("UNLOADING");
    this.scheduler.stop();
    const groups = [this.instances, ...[...this.#former.keys()].map(({ group }) => group)];
    const answered = this.requests.empty().then(() => Promise.all(groups.map((group) => group.idle())));
    const cutOff = new Promise<void>((resolve) => {
      this.#onCutOff = resolve;
    });
    const over = Promise.race([answered, cutOff]);
    if (!(await settledWithin(this.clock, drainTimeoutMs, over))) this.#cutOff();
    await Promise.all(groups.map((group) => group.idle(true)));
    this.residence?.end?.();
    await Promise.all(groups.map((group) => group.stop()));
    this.#enter("UNAVAILABLE", "unloaded");
  }

  /** Logs a failed load, because no caller needs to wait for it. @returns its reason for the repository index */
  #loadFailed(error: unknown): string {
    const { userErrors } = this.#live;
    // The loader of a repository logs its own failures.
    if (this.directory !== undefined) {
      if (!this.#stopping) userErrors.whileLoading(error);
      return statusText(error);
    }
    if (!this.#stopping) this.#logFailedLoad(statusText(error) + userErrors.stackWhileLoading(error));
    return TritonError.from(error).message;
  }

  #logFailedLoad(why: string): void {
    this.#log.error(`failed to load '${this.name}' version ${this.version}: ${why}`);
  }

  #cutOff(): void {
    this.requests.cancelAll();
    this.#onCutOff?.();
  }

  #enter(state: ModelState, reason = ""): void {
    this.state = state;
    this.reason = reason;
    if (modelState.hasSubscribers) {
      modelState.publish({ model: this.name, version: String(this.version), state, reason });
    }
    this.onStateChange?.();
  }
}

/** Reports the batchers of a sequence model in Triton's words. There is one for each instance, without a thread. */
function logSequenceBatchers(config: ModelConfig, serverLog: Log): void {
  const log = serverLog.of("sequence_batch_scheduler");
  const about = { model: config.name };
  const started = (what: string) => log.verbose(1, `Starting ${what} at nice 0...`, about);
  started("sequence-batcher reaper thread");
  if (config.sequenceBatching?.oldest !== undefined) return;
  for (let i = 0; i < countInstances(config); i++) started(`Direct sequence-batch scheduler thread ${i}`);
}

type SchedulerPlan = Pick<
  ModelPlan,
  "config" | "version" | "variableLength" | "mixedInputs" | "onSequenceEvict" | "initialStates" | "batcher"
>;

/** Makes the scheduler that a configuration asks for. */
export function createScheduler(
  plan: SchedulerPlan,
  instances: InstanceGroup,
  { clock, deadlines, statistics }: Pick<ModelVersion, "clock" | "deadlines" | "statistics">,
  server: Pick<ModelServer, "holdUntil" | "backlogHoldUntil" | "findMember">,
): Scheduler {
  const { config, variableLength, mixedInputs, batcher } = plan;
  const { holdUntil, backlogHoldUntil, findMember } = server;
  if (config.ensembleScheduling !== undefined) {
    return new EnsembleScheduler(config, plan.version, findMember, clock, statistics);
  }
  if (config.sequenceBatching !== undefined) {
    const given = plan.initialStates ?? initialStates(config, readFileNow).states;
    const { onSequenceEvict: onEvict } = plan;
    const options = { holdUntil, backlogHoldUntil, onEvict, initialStates: given, batcher };
    return new SequenceBatchScheduler({ config, clock, deadlines }, options);
  }
  const { grouping, padded } = variableLength ?? {};
  const classifies = grouping?.batchBy !== undefined || grouping?.cost !== undefined;
  const model: BatchedModel = {
    config,
    instances,
    clock,
    deadlines,
    holdUntil,
    mixedInputs,
    padded,
    maxBatchCost: grouping?.maxBatchCost,
    classify: classifies ? (request) => classifyRequest(request, grouping!) : undefined,
  };
  if (batcher !== undefined) return batcher.open(model);
  if (config.dynamicBatching === undefined) return new DirectScheduler(instances);
  return grouping?.batchBy === undefined ? new DynamicBatchScheduler(model) : new GroupingScheduler(model);
}
