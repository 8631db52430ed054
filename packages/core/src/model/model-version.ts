import { CachedModel } from "../cache/cached-model.js";
import type { ResponseCache } from "../cache/response-cache.js";
import type { Clock } from "../clock/clock.js";
import { DeadlineQueue } from "../clock/deadline-queue.js";
import { planInstances } from "../config/instances.js";
import { isDecoupled, type ModelConfig } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import type { ExecutorContext } from "../instance/backend.js";
import type { Executor } from "../instance/executor.js";
import { InstanceGroup } from "../instance/instance-group.js";
import { ModelInstance } from "../instance/model-instance.js";
import { type FailureReason, ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { RequestValidator } from "../request/validate-request.js";
import { OutputChecker } from "../response/check-outputs.js";
import { DirectScheduler } from "../scheduler/direct/direct-scheduler.js";
import { DynamicBatchScheduler } from "../scheduler/dynamic-batch/dynamic-batch-scheduler.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { ModelState } from "./model-state.js";
import { warmUp } from "./warm-up.js";

/** Makes the executor of one instance. */
export type ExecutorFactory = (context: ExecutorContext) => Executor;

/** What a model version is made of. */
export interface ModelVersionInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  readonly clock: Clock;
  /** Keeps responses, for models that ask for it. */
  readonly responseCache?: ResponseCache | undefined;
  /** Requests that the dynamic batcher waits for before its first batch: a hold for tests. */
  readonly holdUntil: number;
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
  state: ModelState = "LOADING";
  /** Why the version is UNAVAILABLE. */
  reason = "";
  /** Resolves when the version is READY, rejects when loading failed. */
  readonly ready: Promise<void>;

  readonly #clock: Clock;
  readonly #validator: RequestValidator;
  readonly #scheduler: Scheduler;
  readonly #cached: CachedModel | undefined;
  readonly #deadlines: DeadlineQueue;
  readonly #inflight = new Set<InferenceRequest>();
  #drained: (() => void) | undefined;
  #unloading: Promise<void> | undefined;

  constructor(init: ModelVersionInit) {
    const { name, version, config, clock } = init;
    this.name = name;
    this.version = version;
    this.config = config;
    this.labels = init.labels;
    this.#clock = clock;
    this.#deadlines = new DeadlineQueue(clock);
    this.#validator = new RequestValidator(config);
    this.instances = this.#createInstances(init);
    this.#scheduler =
      config.dynamicBatching === undefined
        ? new DirectScheduler(this.instances)
        : new DynamicBatchScheduler(config, this.instances, clock, this.#deadlines, init.holdUntil);
    if (config.responseCache?.enable && init.responseCache !== undefined) {
      const { statistics } = this;
      const enqueue = (request: InferenceRequest) => this.#scheduler.enqueue(request);
      this.#cached = new CachedModel(init.responseCache, { name, version, clock, statistics, enqueue });
    }
    this.ready = this.#load();
    this.ready.catch(() => {});
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
    request.onSettled = (error) => this.#settled(request, error);
    this.#inflight.add(request);
    this.statistics.pendingCount++;
    try {
      if (this.#cached === undefined) this.#scheduler.enqueue(request);
      else this.#cached.infer(request);
    } catch (error) {
      request.onSettled = undefined;
      this.#inflight.delete(request);
      this.statistics.pendingCount--;
      throw error;
    }
    if (request.deadline !== undefined && !request.settled) {
      request.deadlineTimer = this.#deadlines.add(request.deadline, () => request.cancel(timeoutError()));
    }
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

  #createInstances({ createExecutor }: ModelVersionInit): InstanceGroup {
    const { name, version, config } = this;
    const clock = this.#clock;
    const checker = new OutputChecker(config);
    const owner = {
      modelName: name,
      modelVersion: String(version),
      decoupled: isDecoupled(config),
      clock,
      statistics: this.statistics,
      outputNames: config.output.map((output) => output.name),
    };
    const placements = planInstances(config);
    const instances = placements.map((placement) => {
      const info = {
        modelName: name,
        modelVersion: version,
        modelConfig: config,
        instanceName: placement.name,
        instanceIndex: placement.index,
        device: { kind: placement.kind, id: placement.deviceId },
      };
      const executor = createExecutor({ placement, info, checker, clock, instanceCount: placements.length });
      return new ModelInstance(placement, executor, owner);
    });
    return new InstanceGroup(instances, clock);
  }

  async #load(): Promise<void> {
    const start = this.#clock.now();
    try {
      await this.instances.start();
      await warmUp(this.config, this.instances, this.#validator, this.statistics, () => this.#clock.now());
      this.statistics.loadDurationMs = this.#clock.now() - start;
      this.state = "READY";
    } catch (error) {
      await this.instances.stop();
      this.state = "UNAVAILABLE";
      this.reason = TritonError.from(error).message;
      throw error;
    }
  }

  async #unload(drainTimeoutMs: number): Promise<void> {
    await this.#loadedWithin(drainTimeoutMs);
    if (this.state === "LOADING") await this.instances.stop();
    if (this.state !== "READY") return;
    this.state = "UNLOADING";
    this.#scheduler.stop();
    await this.#drain(drainTimeoutMs);
    await this.instances.idle(true);
    await this.instances.stop();
    this.state = "UNAVAILABLE";
    this.reason = "unloaded";
  }

  /** Waits for loading to end, one way or the other, or for the time limit. */
  #loadedWithin(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.state !== "LOADING") return resolve();
      const timer = this.#clock.setTimer(timeoutMs, resolve);
      void this.ready
        .catch(() => {})
        .then(() => {
          timer.cancel();
          resolve();
        });
    });
  }

  /** Waits for the requests at hand and their batches, or for the time limit. */
  #drain(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(timeoutMs, () => {
        this.#abandon();
        resolve();
      });
      const answered =
        this.#inflight.size === 0
          ? Promise.resolve()
          : new Promise<void>((settled) => {
              this.#drained = settled;
            });
      void answered
        .then(() => this.instances.idle())
        .then(() => {
          timer.cancel();
          resolve();
        });
    });
  }

  #abandon(): void {
    const error = new TritonError(
      "UNAVAILABLE",
      `model '${this.name}' was stopped before the request was done`,
    );
    for (const request of [...this.#inflight]) request.cancel(error);
  }

  #settled(request: InferenceRequest, error: TritonError | undefined): void {
    this.#inflight.delete(request);
    request.deadlineTimer?.cancel();
    if (!request.executing) this.statistics.pendingCount--;
    if (error !== undefined && request.cancelReason !== undefined) {
      this.statistics.recordFailure(reasonOf(error), this.#clock.now() - request.queueStart);
    }
    if (this.#inflight.size === 0) this.#drained?.();
  }
}

function timeoutError(): TritonError {
  return new TritonError("UNAVAILABLE", "Request timeout expired");
}

function reasonOf(error: TritonError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
}
