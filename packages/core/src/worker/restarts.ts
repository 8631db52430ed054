import { TritonError } from "@tritonjs/protocol";
import type { InstanceInfo } from "../callback/infer-func.js";
import type { Execution, ExecutionResult } from "../instance/backend.js";
import { type InstanceRestartMessage, instanceRestart } from "../observe/diagnostics-channels.js";
import type { Log, LogSubject } from "../observe/log.js";
import type { Clock, Timer } from "../system/clock.js";

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 30_000;

/** The instance of the worker, as its context describes it. */
type RestartedInstance = Pick<InstanceInfo, "modelName" | "modelVersion" | "instanceName">;

/** Restarts a worker that has died, after a pause that doubles with each failure. The log says so. */
export class Restarts {
  #timer: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #over = false;
  #count = 0;

  constructor(
    private readonly clock: Clock,
    private readonly start: () => Promise<void>,
    private readonly onHealth: (healthy: boolean, reason?: TritonError) => void,
    private readonly instance: RestartedInstance,
    /** Undefined for a worker without a server. */
    private readonly log: Log | undefined,
  ) {}

  /** True once the worker must not be restarted. */
  get over(): boolean {
    return this.#over;
  }

  /** Number of times that the worker was started again. */
  get count(): number {
    return this.#count;
  }

  /** Records that the worker works, which resets the pause. */
  worked(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /**
   * Records a crash. After the first one, queued requests may wait for the restart; if the restart fails too, the
   * instance becomes unhealthy.
   */
  crashed(error: TritonError, restartFailed = false): void {
    if (this.#over) return;
    this.onHealth(
      false,
      restartFailed
        ? new TritonError("UNAVAILABLE", error.message, { reason: "INSTANCES_FAILED", cause: error })
        : undefined,
    );
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS);
    const text = `${this.#name} restarts in ${pauseMs} ms`;
    // The instance group has logged why a restart failed.
    if (restartFailed) this.log?.info(text, this.#about);
    else this.log?.error(`${text}: ${error.message}`, this.#about);
    this.#report("restarting", error, pauseMs);
    this.#timer = this.clock.setTimer(pauseMs, () => {
      this.start().then(
        () => {
          this.#count++;
          this.onHealth(true);
          this.log?.info(`${this.#name} has restarted`, this.#about);
          this.#report("restarted", undefined, 0);
        },
        (failure) => this.crashed(TritonError.from(failure), true),
      );
    });
  }

  #report(phase: InstanceRestartMessage["phase"], error: TritonError | undefined, pauseMs: number): void {
    if (!instanceRestart.hasSubscribers) return;
    const { modelName: model, modelVersion, instanceName: instance } = this.instance;
    instanceRestart.publish({ model, version: String(modelVersion), instance, phase, error, pauseMs });
  }

  get #name(): string {
    const { modelName, modelVersion, instanceName } = this.instance;
    return `instance '${instanceName}' of model '${modelName}' version ${modelVersion}`;
  }

  /** Fields of lines about the instance. */
  get #about(): LogSubject {
    const { modelName: model, modelVersion: version, instanceName: instance } = this.instance;
    return { model, version, instance };
  }

  /** Ends all restarts. */
  stop(): void {
    this.#over = true;
    this.#timer?.cancel();
  }
}

/** A batch that was sent to a worker. */
export interface BatchOfWorker {
  readonly batch: number;
  readonly execution: Execution;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: unknown): void;
}

/**
 * The batches of a worker: the running one, and those that it starts afterwards, in order. It also answers in this
 * order.
 */
export class BatchesOfWorker {
  readonly #batches: BatchOfWorker[] = [];
  #limit: Timer | undefined;
  readonly #startLimit: () => Timer | undefined;

  /** @param startLimit sets a timer for the batch that starts now */
  constructor(startLimit: () => Timer | undefined) {
    this.#startLimit = startLimit;
  }

  /** The running batch. */
  get running(): BatchOfWorker | undefined {
    return this.#batches[0];
  }

  /** All batches, running one first. */
  get all(): readonly BatchOfWorker[] {
    return [...this.#batches];
  }

  find(batch: number): BatchOfWorker | undefined {
    return this.#batches.find((one) => one.batch === batch);
  }

  add(batch: BatchOfWorker): void {
    this.#batches.push(batch);
    if (this.#batches.length === 1) this.limitBy(this.#startLimit());
  }

  /** Removes the batch that the worker has finished; the worker has started the next one. */
  takeDone(): BatchOfWorker | undefined {
    const done = this.takeLost();
    this.begin();
    return done;
  }

  /** Removes the batch that was running when the worker died. */
  takeLost(): BatchOfWorker | undefined {
    this.limitBy(undefined);
    return this.#batches.shift();
  }

  /** Removes a batch that never reached the worker. */
  remove(batch: BatchOfWorker): void {
    if (batch === this.running) this.takeDone();
    else if (this.#batches.includes(batch)) this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  /** Records that the worker starts the first of the batches held ahead. */
  begin(): void {
    if (this.running === undefined) return;
    this.running.execution.postponed?.();
    this.limitBy(this.#startLimit());
  }

  /** Sets another time limit for the running batch. */
  limitBy(limit: Timer | undefined): void {
    this.#limit?.cancel();
    this.#limit = limit;
  }

  /** Fails all batches. */
  fail(error: unknown): void {
    this.limitBy(undefined);
    for (const { reject } of this.#batches.splice(0)) reject(error);
  }
}
