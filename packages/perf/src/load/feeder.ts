import { Random } from "../data/random.js";
import { epochNow, type LoadRequest } from "../target/carrier.js";
import {
  type ConcurrencyGoal,
  concurrencyAt,
  type FixedScheduleLevel,
  type LoadLevel,
  nextConcurrencyChange,
  type PeriodicConcurrencyLevel,
  type RequestIntervalsLevel,
  type RequestRateLevel,
  type RequestRateRampLevel,
  type SessionConcurrencyLevel,
  shareOf,
  type ThreadShare,
} from "./load-level.js";

export interface WakeUp {
  cancel(): void;
}

/** Time for a loop: a parameter, so that tests can drive it. */
export interface LoadClock {
  now(): number;
  /** Calls back at a time, a little later at worst, never before. */
  wakeAt(time: number, run: () => void): WakeUp;
}

/** Timers of Node fire up to a millisecond late, so the rest of a wait is spent in turns of the event loop. */
const TIMER_ERROR_MS = 1.2;

/** A turn of the event loop that takes longer than this did some work. */
const IDLE_TURN_MS = 0.05;

let waitedMs = 0;

/** Time that this thread has spent on waiting in turns of the event loop, in which it had nothing else to do. */
export const waitedInTurnsMs = (): number => waitedMs;

export const realLoadClock: LoadClock = {
  now: epochNow,
  wakeAt(time, run) {
    let timer: NodeJS.Timeout | undefined;
    let immediate: NodeJS.Immediate | undefined;
    let lookedAt = Number.NEGATIVE_INFINITY;
    const look = (): void => {
      const now = epochNow();
      const waitMs = time - now;
      if (now - lookedAt < IDLE_TURN_MS) waitedMs += now - lookedAt;
      lookedAt = now;
      if (waitMs <= 0) run();
      else if (waitMs > TIMER_ERROR_MS) timer = setTimeout(look, Math.floor(waitMs - TIMER_ERROR_MS));
      else immediate = setImmediate(look);
    };
    immediate = setImmediate(look);
    return {
      cancel() {
        clearTimeout(timer);
        clearImmediate(immediate);
      },
    };
  },
};

/** Place of a request in its sequence. */
export interface SequenceStep {
  readonly id: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface FedLoop {
  readonly inFlight: number;
  readonly blockedUntil: number;
  /** Sends a request. False if none can be sent before another has ended, or all are sent. */
  send(scheduled: number, index?: number, step?: SequenceStep): boolean;
  readonly blockedBy: string;
  refuse(scheduled: number, index: number, text: string): void;
  finished(): void;
  setSequences(live: number): void;
}

export interface Feeder {
  start(): void;
  /** A request has ended. It is valid only during the call. */
  ended(request: LoadRequest): void;
  /** A request has the responses of its period, or has ended before. */
  reached?(): void;
  stop(): void;
}

class ConcurrencyFeeder implements Feeder {
  #target = 0;
  #isFilling = false;
  #wakeUp: WakeUp | undefined;
  #change: WakeUp | undefined;

  constructor(
    private readonly loop: FedLoop,
    private readonly clock: LoadClock,
    private readonly level: ConcurrencyGoal,
    private readonly share: ThreadShare,
    private readonly startedAt: number,
  ) {}

  start(): void {
    const elapsed = this.clock.now() - this.startedAt;
    this.#target = shareOf(concurrencyAt(this.level, elapsed), this.share);
    this.loop.setSequences(this.#target);
    const change = nextConcurrencyChange(this.level, Math.max(0, elapsed));
    if (change !== undefined) this.#change = this.clock.wakeAt(this.startedAt + change, () => this.start());
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
    while (this.loop.inFlight < this.#target) {
      const now = this.clock.now();
      const { blockedUntil } = this.loop;
      if (now < blockedUntil) {
        this.#wakeUp ??= this.clock.wakeAt(blockedUntil, () => {
          this.#wakeUp = undefined;
          this.#fill();
        });
        break;
      }
      if (!this.loop.send(now)) break;
    }
    this.#isFilling = false;
  }
}

/** Requests of a schedule that one turn of the event loop sends, so that responses are read in between. */
const MOST_AT_ONCE = 64;

/** Most requests that wait for answers, or for an earlier request of their sequence. It bounds memory. */
const MOST_WAITING = 100_000;

export class ScheduleFeeder implements Feeder {
  /** Slots whose request has to wait until another one of its sequence has ended. */
  readonly #held: { readonly scheduled: number; readonly index: number }[] = [];
  #index = -1;
  #next = 0;
  #isOver = false;
  #isStopped = false;
  #wakeUp: WakeUp | undefined;

  /** @param endsItself whether the times end */
  constructor(
    private readonly loop: FedLoop,
    private readonly clock: LoadClock,
    private readonly times: SendTimes,
    private readonly share: ThreadShare,
    private readonly startedAt: number,
    readonly endsItself: boolean,
  ) {}

  start(): void {
    this.#advance();
    this.#arm();
  }

  ended(): void {
    while (this.#held.length > 0) {
      const { scheduled, index } = this.#held[0]!;
      if (this.#isBlocked()) this.loop.refuse(scheduled, index, this.loop.blockedBy);
      else if (!this.loop.send(scheduled, index)) return;
      this.#held.shift();
    }
    if (this.#isOver) this.loop.finished();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wakeUp?.cancel();
    this.#held.length = 0;
  }

  /** Moves on to this thread's next slot. */
  #advance(): void {
    for (;;) {
      const at = this.times();
      this.#index++;
      if (at === undefined) {
        this.#isOver = true;
        return;
      }
      this.#next = this.startedAt + at;
      if (this.#index % this.share.count === this.share.index) return;
    }
  }

  #arm(): void {
    if (this.#isStopped) return;
    if (this.#isOver) {
      if (this.#held.length === 0) this.loop.finished();
      return;
    }
    this.#wakeUp = this.clock.wakeAt(this.#next, () => this.#sendDue());
  }

  #sendDue(): void {
    for (let i = 0; i < MOST_AT_ONCE && !this.#isOver && this.#next <= this.clock.now(); i++) {
      this.#sendNow(this.#next, this.#index);
      if (this.#isStopped) return;
      this.#advance();
    }
    this.#arm();
  }

  #sendNow(scheduled: number, index: number): void {
    const loop = this.loop;
    const waiting = loop.inFlight + this.#held.length;
    if (this.#isBlocked()) loop.refuse(scheduled, index, loop.blockedBy);
    else if (waiting >= MOST_WAITING) {
      loop.refuse(scheduled, index, `not sent: ${MOST_WAITING} earlier requests have not been answered`);
    } else if (this.#held.length > 0 || !loop.send(scheduled, index)) this.#held.push({ scheduled, index });
  }

  #isBlocked(): boolean {
    return this.clock.now() < this.loop.blockedUntil;
  }
}

export function openFeeder(
  loop: FedLoop,
  level: LoadLevel,
  { clock, share, seed }: { readonly clock: LoadClock; readonly share: ThreadShare; readonly seed: number },
  startAt: number,
): Feeder {
  switch (level.mode) {
    case "concurrency":
    case "concurrency_ramp":
      return new ConcurrencyFeeder(loop, clock, level, share, startAt);
    case "periodic_concurrency":
      return new PeriodicFeeder(loop, clock, level);
    case "session_concurrency":
      return new SessionFeeder(loop, clock, level);
    default: {
      const endsItself = level.mode === "fixed_schedule";
      return new ScheduleFeeder(loop, clock, sendTimes(level, seed), share, startAt, endsItself);
    }
  }
}

/** Sends requests in batches: the next one when all requests of the last one have had their responses, or have ended. */
class PeriodicFeeder implements Feeder {
  #sent = 0;
  /** Requests of the last batch without responses enough. */
  #waiting = 0;
  #isSending = false;
  #isStopped = false;

  constructor(
    private readonly loop: FedLoop,
    private readonly clock: LoadClock,
    private readonly level: PeriodicConcurrencyLevel,
  ) {}

  start(): void {
    this.#sendBatches();
  }

  ended(): void {}

  reached(): void {
    this.#waiting--;
    this.#sendBatches();
  }

  stop(): void {
    this.#isStopped = true;
  }

  #sendBatches(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    const { start, end, step } = this.level;
    while (this.#waiting === 0 && this.#sent < end && !this.#isStopped) {
      const count = Math.min(this.#sent === 0 ? start : step, end - this.#sent);
      this.#waiting = count;
      this.#sent += count;
      const now = this.clock.now();
      for (let i = 0; i < count && !this.#isStopped; i++) this.loop.send(now);
    }
    this.#isSending = false;
    if (this.#sent === end && !this.#isStopped) this.loop.finished();
  }
}

interface DueTurn {
  readonly session: number;
  readonly turn: number;
  readonly scheduled: number;
}

/**
 * Keeps a number of sessions alive. The turns of a session follow each other: each one after the answer to the one
 * before, and the delay of that one. A session ends with its last turn, or with a turn that fails.
 */
class SessionFeeder implements Feeder {
  readonly #live = new Map<number, number>();
  readonly #delays = new Map<number, WakeUp>();
  readonly #due: DueTurn[] = [];
  #begun = 0;
  #isSending = false;
  #isStopped = false;

  constructor(
    private readonly loop: FedLoop,
    private readonly clock: LoadClock,
    private readonly level: SessionConcurrencyLevel,
  ) {}

  start(): void {
    for (let i = 0; i < this.level.value; i++) this.#begin();
    this.#sendDue();
  }

  ended({ sequenceId, failure }: LoadRequest): void {
    const session = sequenceId - 1;
    const sent = this.#live.get(session);
    if (sent === undefined || this.#isStopped) return;
    const { turns } = this.level.sessions[session]!;
    if (failure !== undefined || sent === turns.length) {
      this.#live.delete(session);
      this.#begin();
    } else this.#wait(session, sent, turns[sent - 1]!.delayMs);
    this.#sendDue();
  }

  stop(): void {
    this.#isStopped = true;
    for (const delay of this.#delays.values()) delay.cancel();
    this.#delays.clear();
    this.#due.length = 0;
  }

  #begin(): void {
    if (this.#begun === this.level.sessions.length) return;
    const session = this.#begun++;
    this.#live.set(session, 0);
    this.#due.push({ session, turn: 0, scheduled: this.clock.now() });
  }

  #wait(session: number, turn: number, delayMs: number): void {
    const scheduled = this.clock.now() + delayMs;
    if (delayMs === 0) {
      this.#due.push({ session, turn, scheduled });
      return;
    }
    const delay = this.clock.wakeAt(scheduled, () => {
      this.#delays.delete(session);
      this.#due.push({ session, turn, scheduled });
      this.#sendDue();
    });
    this.#delays.set(session, delay);
  }

  #sendDue(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let next = this.#due.shift(); next !== undefined; next = this.#due.shift()) {
      const { session, turn, scheduled } = next;
      const { turns } = this.level.sessions[session]!;
      this.#live.set(session, turn + 1);
      this.loop.send(scheduled, turns[turn]!.payload, {
        id: session + 1,
        isFirst: turn === 0,
        isLast: turn === turns.length - 1,
      });
    }
    this.#isSending = false;
    if (this.#live.size === 0 && !this.#isStopped) this.loop.finished();
  }
}

/** A level that says when each request is sent. */
type ScheduledLevel = RequestRateLevel | RequestIntervalsLevel | FixedScheduleLevel | RequestRateRampLevel;

/** The times of requests one after the other, in milliseconds from the start of the level; undefined after the last. */
type SendTimes = () => number | undefined;

/**
 * The times of all requests of a level. Every thread computes all of them and sends its share, so the schedule does not
 * depend on the number of threads.
 */
function sendTimes(level: ScheduledLevel, seed: number): SendTimes {
  switch (level.mode) {
    case "request_rate": {
      const arrivals = arrivalsOf(level.distribution, seed);
      const gapMs = 1000 / level.value;
      return () => arrivals() * gapMs;
    }
    case "request_rate_ramp": {
      const arrivals = arrivalsOf(level.distribution, seed);
      return () => rampTime(level, arrivals());
    }
    case "request_intervals": {
      const { gapsMicroseconds } = level;
      let at = 0;
      let next = 0;
      return () => {
        at += gapsMicroseconds[next]! / 1000;
        next = (next + 1) % gapsMicroseconds.length;
        return at;
      };
    }
    case "fixed_schedule": {
      let next = 0;
      return () => level.timestampsMs[next++];
    }
  }
}

/** Arrivals of rate 1. Equal gaps begin with a request; exponential ones with a gap. */
function arrivalsOf(distribution: "constant" | "poisson", seed: number): () => number {
  let at = 0;
  if (distribution === "constant") return () => at++;
  const random = new Random(seed);
  return () => (at += random.exponential());
}

/**
 * When a ramp has offered `arrivals` requests: the inverse of the integral of its rate. With a rate that rises from `a`
 * by `s` a millisecond, `t` milliseconds offer `a*t + s*t²/2` requests.
 */
function rampTime({ from, to, durationMs }: RequestRateRampLevel, arrivals: number): number {
  const a = from / 1000;
  const b = to / 1000;
  // The form of the root below is undefined for a ramp that begins with a rate of 0.
  if (arrivals === 0) return 0;
  const offeredByRamp = ((a + b) / 2) * durationMs;
  if (arrivals >= offeredByRamp) return durationMs + (arrivals - offeredByRamp) / b;
  const slope = (b - a) / durationMs;
  // This form of the root is exact for a slope of 0 too.
  return (2 * arrivals) / (a + Math.sqrt(Math.max(0, a * a + 2 * slope * arrivals)));
}
