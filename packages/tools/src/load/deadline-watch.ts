import type { LoadRequest } from "../target/load-request.js";
import type { LoadClock, WakeUp } from "./load-clock.js";

/** Looks at the requests in flight at least this often, in milliseconds. */
const LONGEST_INTERVAL_MS = 250;

/** Cancels requests past their deadline, with one timer for all of them. */
export class DeadlineWatch {
  readonly #clock: LoadClock;
  readonly #timeoutMs: number;
  readonly #inFlight: readonly LoadRequest[];
  readonly #cancel: (request: LoadRequest, text: string) => void;
  #wakeUp: WakeUp | undefined;

  /**
   * @param timeoutMs time limit of each request, from its scheduled time
   * @param inFlight the requests in flight, which change
   */
  constructor(
    clock: LoadClock,
    timeoutMs: number,
    inFlight: readonly LoadRequest[],
    cancel: (request: LoadRequest, text: string) => void,
  ) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#inFlight = inFlight;
    this.#cancel = cancel;
  }

  /** A request is in flight. */
  sent(): void {
    if (this.#wakeUp !== undefined) return;
    const everyMs = Math.min(LONGEST_INTERVAL_MS, Math.max(2, this.#timeoutMs / 20));
    this.#wakeUp = this.#clock.wakeAt(this.#clock.now() + everyMs, () => this.#look());
  }

  stop(): void {
    this.#wakeUp?.cancel();
  }

  #look(): void {
    this.#wakeUp = undefined;
    const latest = this.#clock.now() - this.#timeoutMs;
    for (const request of [...this.#inFlight])
      if (request.scheduled <= latest) this.#cancel(request, `no answer within ${this.#timeoutMs} ms`);
    if (this.#inFlight.length > 0) this.sent();
  }
}
