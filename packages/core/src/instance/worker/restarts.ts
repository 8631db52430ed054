import { TritonError } from "@tritonjs/protocol";
import type { Clock, Timer } from "../../clock/clock.js";

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 30_000;

/** Restarts a worker that has died, after a pause that doubles with each failure. */
export class Restarts {
  #timer: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #over = false;
  #count = 0;

  constructor(
    private readonly clock: Clock,
    private readonly start: () => Promise<void>,
    private readonly onHealth: (healthy: boolean, reason?: TritonError) => void,
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
    this.#timer = this.clock.setTimer(pauseMs, () => {
      this.start().then(
        () => {
          this.#count++;
          this.onHealth(true);
        },
        (failure) => this.crashed(TritonError.from(failure), true),
      );
    });
  }

  /** Ends all restarts. */
  stop(): void {
    this.#over = true;
    this.#timer?.cancel();
  }
}
