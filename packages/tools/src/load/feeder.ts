import type { LoadRequest } from "../target/load-request.js";
import {
  type ConcurrencyGoal,
  concurrencyAt,
  nextConcurrencyChange,
  shareOf,
  type ThreadShare,
} from "./concurrency-target.js";
import type { LoadClock, WakeUp } from "./load-clock.js";
import type { SendTimes } from "./send-schedule.js";

/** Place of a request in its sequence. */
export interface SequenceStep {
  readonly id: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** What a feeder asks of its loop. */
export interface FedLoop {
  readonly inFlight: number;
  /** Time before which the server cannot be reached. */
  readonly blockedUntil: number;
  /** Sends a request. False if none can be sent before another has ended, or all are sent. */
  send(scheduled: number, index?: number, step?: SequenceStep): boolean;
  /** Text of the last lost connection. */
  readonly blockedBy: string;
  /** Records a request that could not be sent at its time as failed. */
  refuse(scheduled: number, index: number, text: string): void;
  /** The schedule is over. */
  finished(): void;
  setSequences(live: number): void;
}

/** Decides when a loop sends. */
export interface Feeder {
  start(): void;
  /** A request has ended. It is valid only during the call. */
  ended(request: LoadRequest): void;
  /** A request has the responses of its period, or has ended before. */
  reached?(): void;
  stop(): void;
}

/** Keeps requests in flight. */
export class ConcurrencyFeeder implements Feeder {
  readonly #loop: FedLoop;
  readonly #clock: LoadClock;
  readonly #level: ConcurrencyGoal;
  readonly #share: ThreadShare;
  readonly #startedAt: number;
  #target = 0;
  #isFilling = false;
  #wakeUp: WakeUp | undefined;
  #change: WakeUp | undefined;

  constructor(
    loop: FedLoop,
    clock: LoadClock,
    level: ConcurrencyGoal,
    share: ThreadShare,
    startedAt: number,
  ) {
    this.#loop = loop;
    this.#clock = clock;
    this.#level = level;
    this.#share = share;
    this.#startedAt = startedAt;
  }

  start(): void {
    const elapsed = this.#clock.now() - this.#startedAt;
    this.#target = shareOf(concurrencyAt(this.#level, elapsed), this.#share);
    this.#loop.setSequences(this.#target);
    const change = nextConcurrencyChange(this.#level, Math.max(0, elapsed));
    if (change !== undefined) this.#change = this.#clock.wakeAt(this.#startedAt + change, () => this.start());
    this.#fill();
  }

  ended(): void {
    this.#fill();
  }

  stop(): void {
    this.#wakeUp?.cancel();
    this.#change?.cancel();
    this.#target = 0;
  }

  /** Requests may end while they are sent, so this is a loop and not a recursion. */
  #fill(): void {
    if (this.#isFilling) return;
    this.#isFilling = true;
    while (this.#loop.inFlight < this.#target) {
      const now = this.#clock.now();
      const { blockedUntil } = this.#loop;
      if (now < blockedUntil) {
        this.#wakeUp ??= this.#clock.wakeAt(blockedUntil, () => {
          this.#wakeUp = undefined;
          this.#fill();
        });
        break;
      }
      if (!this.#loop.send(now)) break;
    }
    this.#isFilling = false;
  }
}

/** Requests of a schedule that one turn of the event loop sends, so that responses are read in between. */
const MOST_AT_ONCE = 64;

/** Most requests that wait for answers, or for an earlier request of their sequence. It bounds memory. */
const MOST_WAITING = 100_000;

/** Sends by a schedule. */
export class ScheduleFeeder implements Feeder {
  readonly #loop: FedLoop;
  readonly #clock: LoadClock;
  readonly #times: SendTimes;
  readonly #share: ThreadShare;
  readonly #startedAt: number;
  /** Slots whose request has to wait until another one of its sequence has ended. */
  readonly #held: { readonly scheduled: number; readonly index: number }[] = [];
  #index = -1;
  #next = 0;
  #isOver = false;
  #isStopped = false;
  #wakeUp: WakeUp | undefined;

  /** @param endsItself whether the times end */
  constructor(
    loop: FedLoop,
    clock: LoadClock,
    times: SendTimes,
    share: ThreadShare,
    startedAt: number,
    readonly endsItself: boolean,
  ) {
    this.#loop = loop;
    this.#clock = clock;
    this.#times = times;
    this.#share = share;
    this.#startedAt = startedAt;
  }

  start(): void {
    this.#advance();
    this.#arm();
  }

  ended(): void {
    while (this.#held.length > 0) {
      const { scheduled, index } = this.#held[0]!;
      if (this.#isBlocked()) this.#loop.refuse(scheduled, index, this.#loop.blockedBy);
      else if (!this.#loop.send(scheduled, index)) return;
      this.#held.shift();
    }
    if (this.#isOver) this.#loop.finished();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wakeUp?.cancel();
    this.#held.length = 0;
  }

  /** Moves on to this thread's next slot. */
  #advance(): void {
    for (;;) {
      const at = this.#times();
      this.#index++;
      if (at === undefined) {
        this.#isOver = true;
        return;
      }
      this.#next = this.#startedAt + at;
      if (this.#index % this.#share.count === this.#share.index) return;
    }
  }

  #arm(): void {
    if (this.#isStopped) return;
    if (this.#isOver) {
      if (this.#held.length === 0) this.#loop.finished();
      return;
    }
    this.#wakeUp = this.#clock.wakeAt(this.#next, () => this.#sendDue());
  }

  #sendDue(): void {
    for (let i = 0; i < MOST_AT_ONCE && !this.#isOver && this.#next <= this.#clock.now(); i++) {
      this.#sendNow(this.#next, this.#index);
      if (this.#isStopped) return;
      this.#advance();
    }
    this.#arm();
  }

  #sendNow(scheduled: number, index: number): void {
    const loop = this.#loop;
    const waiting = loop.inFlight + this.#held.length;
    if (this.#isBlocked()) loop.refuse(scheduled, index, loop.blockedBy);
    else if (waiting >= MOST_WAITING) {
      loop.refuse(scheduled, index, `not sent: ${MOST_WAITING} earlier requests have not been answered`);
    } else if (this.#held.length > 0 || !loop.send(scheduled, index)) this.#held.push({ scheduled, index });
  }

  #isBlocked(): boolean {
    return this.#clock.now() < this.#loop.blockedUntil;
  }
}
