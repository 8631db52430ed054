import type { Clock } from "../clock/clock.js";
import type { ResponseLog } from "../observe/response-statistics.js";

/** Counters of one request. */
interface Counted {
  /** Index of the next response. */
  next: number;
  /** Time at which the previous response was sent. */
  since: number | undefined;
  /** True if no more responses are counted. */
  over: boolean;
}

/** Counts the responses to the requests of one execution of a decoupled model. */
export class CountedResponses {
  readonly #requests: Counted[];

  constructor(
    requests: number,
    private readonly log: ResponseLog,
    private readonly clock: Clock,
  ) {
    this.#requests = Array.from({ length: requests }, () => ({ next: 0, since: undefined, over: false }));
  }

  /**
   * Counts a response that was sent.
   *
   * @param start time at which the model had its inputs
   * @param handedOver time at which the model returned the response
   */
  sent(request: number, start: number, handedOver: number, final: boolean): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    const now = this.clock.now();
    this.log.success(counted.next, handedOver - (counted.since ?? start), now - handedOver);
    this.#step(counted, now, final);
  }

  /** Counts an error that was sent. */
  failed(request: number, start: number, final: boolean): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    const now = this.clock.now();
    this.log.fail(counted.next, now - (counted.since ?? start));
    this.#step(counted, now, final);
  }

  /** Records that the model has finished the request. */
  finished(request: number, start: number): void {
    const counted = this.#requests[request]!;
    if (!counted.over && counted.next === 0) this.log.empty(0, this.clock.now() - start);
    counted.over = true;
  }

  /** Counts a response or an end that the model produced after its request was cancelled. */
  unwanted(request: number, start: number): void {
    const counted = this.#requests[request]!;
    if (counted.over) return;
    this.log.cancel(counted.next, this.clock.now() - (counted.since ?? start));
    counted.over = true;
  }

  #step(counted: Counted, now: number, final: boolean): void {
    counted.next++;
    counted.since = now;
    counted.over ||= final;
  }
}
