import { type Linked, LinkedList } from "@tritonjs/core/internal";

/** A request to a version of a rollout, or the copy of one, from its routing to its end. */
export class RoutedCall implements Linked<RoutedCall> {
  next: RoutedCall | undefined = undefined;
  previous: RoutedCall | undefined = undefined;

  /** @param startMs when it was routed, in milliseconds on the clock */
  constructor(
    readonly isNew: boolean,
    readonly startMs: number,
  ) {}
}

/**
 * The end of a call. `answered` and `failed` are answers, `left` means that the caller has left before one. `unknown`
 * says nothing about the version: the request is invalid, or the response cache has answered it.
 */
export type CallEnd = "answered" | "failed" | "left" | "unknown";

/** Ends of calls, without the unknown ones. */
class Ends {
  /** Calls with an answer or an error. */
  answers = 0;
  left = 0;

  get total(): number {
    return this.answers + this.left;
  }

  get shareLeft(): number {
    return this.total === 0 ? 0 : this.left / this.total;
  }
}

/** Saved state of a progress, as JSON. Calls in flight for too long are saved as left, because a restart ends them. */
export interface SavedProgress {
  readonly step: readonly [answers: number, left: number];
  readonly old: readonly [answers: number, left: number];
  readonly slowestMs: number;
  readonly hasAnswered: boolean;
}

/**
 * What the new version has answered, and what it owes: a step ends with {@link obstacle} undefined only. Requests in
 * flight count for nothing, so a version that hangs does not pass, neither as a whole nor for some of the requests.
 */
export class StepProgress {
  /** Calls of the new version in flight, oldest first. */
  readonly #open = new LinkedList<RoutedCall>();
  /** Ends of the new version's calls in the present step. */
  #step = new Ends();
  /** Ends of the old version's calls in the whole rollout. */
  readonly #old = new Ends();
  /** Longest time that an answer of either version took, in milliseconds. */
  #slowestMs = 0;
  /** True once the new version has answered a call without an error. */
  #hasAnswered = false;

  /**
   * @param version number of the new version, for texts
   * @param tolerance share by which more callers of the new version than of the old one may leave, from 0 to 1
   */
  constructor(
    private readonly version: number,
    private readonly tolerance: number,
  ) {}

  /** Number of the new version's calls in flight, copies included. */
  get inFlight(): number {
    return this.#open.size;
  }

  begin(call: RoutedCall): void {
    if (call.isNew) this.#open.push(call);
  }

  end(call: RoutedCall, how: CallEnd, nowMs: number): void {
    if (call.isNew) this.#open.remove(call);
    if (how === "unknown") return;
    const ends = call.isNew ? this.#step : this.#old;
    if (how === "left") ends.left++;
    else ends.answers++;
    if (how !== "answered") return;
    if (call.isNew) this.#hasAnswered = true;
    this.#slowestMs = Math.max(this.#slowestMs, nowMs - call.startMs);
  }

  /** Begins to count for the next step. Calls in flight stay. */
  nextStep(): void {
    this.#step = new Ends();
  }

  /**
   * Why the present step cannot end now; undefined if it can.
   *
   * @param promotes true for the last step, after which the version is promoted
   */
  obstacle(minRequests: number, promotes: boolean, nowMs: number): string | undefined {
    const { version } = this;
    const { answers, left, total } = this.#step;
    if (answers < minRequests) {
      return `expected ${minRequests} answers of version ${version} in this step, got ${answers} (${this.inFlight} in flight)`;
    }
    const oldest = this.#open.head;
    if (oldest !== undefined && this.#isOverdue(oldest, nowMs)) {
      const age = `${Math.round(nowMs - oldest.startMs)} ms`;
      return (
        `version ${version} has ${this.inFlight} requests in flight, the oldest for ${age}: ` +
        `expected an answer after ${Math.ceil(this.#slowestMs)} ms, which the slowest one took`
      );
    }
    // One caller alone may have its own reasons.
    if (left > 1 + total * (this.#old.shareLeft + this.tolerance)) {
      return `the callers of ${left} of ${total} requests to version ${version} left before an answer`;
    }
    if (promotes && !this.#hasAnswered) return `version ${version} has not answered a request yet`;
    return undefined;
  }

  save(nowMs: number): SavedProgress {
    let overdue = 0;
    for (let call = this.#open.head; call !== undefined && this.#isOverdue(call, nowMs); call = call.next) {
      overdue++;
    }
    const { answers, left } = this.#step;
    return {
      step: [answers, left + overdue],
      old: [this.#old.answers, this.#old.left],
      slowestMs: this.#slowestMs,
      hasAnswered: this.#hasAnswered,
    };
  }

  restore({ step, old, slowestMs, hasAnswered }: SavedProgress): void {
    [this.#step.answers, this.#step.left] = step;
    [this.#old.answers, this.#old.left] = old;
    this.#slowestMs = slowestMs;
    this.#hasAnswered = hasAnswered;
  }

  #isOverdue({ startMs }: RoutedCall, nowMs: number): boolean {
    return nowMs - startMs > this.#slowestMs;
  }
}
