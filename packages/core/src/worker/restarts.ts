import { errorFor, TritonError } from "@tritonjs/protocol";
import type { InstanceInfo } from "../callback/infer-func.js";
import { type InstanceRestartMessage, instanceRestart } from "../observe/diagnostics-channels.js";
import type { Log, LogSubject } from "../observe/log.js";
import { type Clock, quietTimers, type Timer } from "../system/clock.js";

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 30_000;

/** Pause before a restart in milliseconds: doubles with each failure in a row. */
export class RestartPause {
  #ms = FIRST_PAUSE_MS;

  next(): number {
    const ms = this.#ms;
    this.#ms = Math.min(2 * ms, LAST_PAUSE_MS);
    return ms;
  }

  reset(): void {
    this.#ms = FIRST_PAUSE_MS;
  }
}

type RestartedInstance = Pick<InstanceInfo, "modelName" | "modelVersion" | "instanceName">;

/** Restarts a worker that has died, after a pause that doubles with each failure. The log says so. */
export class Restarts {
  /** True after a crash, until the worker has worked again. */
  failed = false;
  #timer: Timer | undefined;
  readonly #pause = new RestartPause();
  /** True once the worker must not be restarted. */
  over = false;
  count = 0;

  constructor(
    private readonly clock: Clock,
    private readonly start: () => Promise<void>,
    private readonly onHealth: (healthy: boolean, reason?: TritonError) => void,
    private readonly instance: RestartedInstance,
    /** Undefined for a worker without a server. */
    private readonly log: Log | undefined,
  ) {}

  /** Records that the worker works, which resets the pause. */
  worked(): void {
    this.failed = false;
    this.#pause.reset();
  }

  /**
   * Records a crash. After the first one, queued requests may wait for the restart; if the restart fails too, the
   * instance becomes unhealthy.
   */
  crashed(error: TritonError, restartFailed = false): void {
    if (this.over) return;
    this.failed = true;
    this.onHealth(
      false,
      restartFailed ? errorFor("INSTANCES_FAILED", error.message, { cause: error }) : undefined,
    );
    const pauseMs = this.#pause.next();
    const text = `${this.#name} restarts in ${pauseMs} ms`;
    // The instance group has logged why a restart failed.
    if (restartFailed) this.log?.info(text, this.#about);
    else this.log?.error(`${text}: ${error.message}`, this.#about);
    this.#report("restarting", error, pauseMs);
    this.#timer = quietTimers(this.clock).setTimer(pauseMs, () => {
      this.start().then(
        () => {
          this.count++;
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

  get #about(): LogSubject {
    const { modelName: model, modelVersion: version, instanceName: instance } = this.instance;
    return { model, version, instance };
  }

  stop(): void {
    this.over = true;
    this.#timer?.cancel();
  }
}
