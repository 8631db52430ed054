import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { clearTimeout, performance, setImmediate, setInterval, setQuietTimeout, setTimeout } from "#host";

/** A task scheduled on a {@link Clock}. Calling `cancel` after it ran does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time as a parameter. All code that waits or measures asks a clock, so that schedulers behave the same under the real
 * clock and under the {@link VirtualClock} of tests and simulations.
 */
export interface Clock {
  /** Monotonic time in milliseconds, with fractions. Its zero has no meaning. */
  now(): number;
  /** Wall time in milliseconds since 1970, for display. */
  wallNow(): number;
  /** Calls `run` once, not before `delayMs` have passed. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after the pending events have been handled, before any timer. */
  defer(run: () => void): void;
}

/** The clock of the running process. `defer` waits for the end of the event loop's poll phase. */
export const realClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  setTimer(delayMs, run) {
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number) => {
      handle =
        leftMs > LONGEST_TIMEOUT_MS
          ? setTimeout(() => wait(leftMs - LONGEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
          : setTimeout(run, Math.max(1, Math.ceil(leftMs)));
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  defer: (run) => {
    setImmediate(run);
  },
};

/** The real clock, with timers that do not keep the process alive. */
export const quietClock: Pick<Clock, "now" | "setTimer"> = {
  now: realClock.now,
  setTimer(delayMs, run) {
    const timer = setQuietTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Timers of a clock for tasks for which no request waits: those of the real clock do not keep the process alive. */
export function quietTimers(clock: Clock): Pick<Clock, "now" | "setTimer"> {
  return clock === realClock ? quietClock : clock;
}

/** Number of pieces of work in flight, and the handle that keeps the event loop alive while there are any. */
let inFlight = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until `workEnds` is called as often. Idle models do not: their workers and processes are
 * unreferenced, so a program that neither serves nor waits for a request ends without `close()`.
 */
export function workBegins(): void {
  if (inFlight++ > 0) return;
  if (handle === undefined) handle = setInterval(() => {}, LONGEST_TIMEOUT_MS);
  else handle.ref();
}

export function workEnds(): void {
  if (--inFlight === 0) handle?.unref();
}

/** Keeps the process alive while a task runs. */
export async function asWork<T>(task: () => Promise<T>): Promise<T> {
  workBegins();
  try {
    return await task();
  } finally {
    workEnds();
  }
}

/** Makes a function that is true at most once in an interval. It serves warnings that would repeat. */
export function everyMs(clock: Pick<Clock, "now">, intervalMs: number): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.now();
    if (now - lastMs < intervalMs) return false;
    lastMs = now;
    return true;
  };
}

/** Rounding error of sums of fractional milliseconds. */
const CLOCK_ERROR_MS = 0.001;

/** One timer that can be set, reset and cancelled. */
export class Alarm {
  readonly #ring: () => void;
  #timer: Timer | undefined;
  #at = 0;

  constructor(
    private readonly clock: Clock,
    ring: () => void,
  ) {
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Rings once after `waitMs` milliseconds. Replaces an earlier setting. */
  set(waitMs: number): void {
    const at = this.clock.now() + waitMs;
    if (this.#timer !== undefined && Math.abs(at - this.#at) < CLOCK_ERROR_MS) return;
    this.callOff();
    this.#at = at;
    this.#timer = this.clock.setTimer(waitMs, () => {
      this.#timer = undefined;
      this.#ring();
    });
  }

  callOff(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** A call scheduled for a certain time. Cancelling it takes O(log n). */
export type Deadline = Timer;

/**
 * Any number of deadlines with one timer: a binary heap whose head is the next to pass. The timer is armed again only
 * for an earlier deadline. For a cancelled one it fires without effect. Each entry knows its index, so that cancelling
 * one takes O(log n) and leaves nothing behind.
 */
export class DeadlineQueue {
  readonly #heap: Entry[] = [];
  #timer: Timer | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#heap.length;
  }

  /**
   * Calls `pass` when the clock reaches `at`, in milliseconds.
   *
   * @param subject argument of the call. With it, all requests of a queue share a function, and a long queue holds
   * three objects less for each.
   */
  add(at: number, pass: () => void): Timer;
  add<Subject>(at: number, pass: (subject: Subject) => void, subject: Subject): Timer;
  add(at: number, pass: (subject: unknown) => void, subject?: unknown): Timer {
    const entry = new Entry(at, pass, subject, this);
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
    this.#arm();
    return entry;
  }

  /** Called by entries only. */
  remove(entry: Entry): void {
    const { index } = entry;
    if (index < 0) return;
    entry.index = -1;
    const last = this.#heap.pop()!;
    if (last !== entry) {
      this.#rise(last, index);
      this.#sink(last, last.index);
    }
    this.#arm();
  }

  #passAll(): void {
    this.#timer = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.clock.now();
    for (let head = this.#heap[0]; head !== undefined && head.at <= now; head = this.#heap[0]) {
      this.remove(head);
      head.pass(head.subject);
    }
    this.#arm();
  }

  #arm(): void {
    const at = this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
    if (at === this.#armedFor || (this.#timer !== undefined && at > this.#armedFor && this.size > 0)) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedFor = at;
    if (at < Number.POSITIVE_INFINITY) {
      this.#timer = this.clock.setTimer(Math.max(0, at - this.clock.now()), () => this.#passAll());
    }
  }

  #rise(entry: Entry, from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#heap[parent]!.at <= entry.at) break;
      this.#place(this.#heap[parent]!, index);
      index = parent;
    }
    this.#place(entry, index);
  }

  #sink(entry: Entry, from: number): void {
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#heap[child + 1]!.at < this.#heap[child]!.at) child++;
      if (this.#heap[child]!.at >= entry.at) break;
      this.#place(this.#heap[child]!, index);
      index = child;
    }
    this.#place(entry, index);
  }

  #place(entry: Entry, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

class Entry implements Timer {
  /** Index in the heap, -1 outside it. */
  index = -1;

  constructor(
    readonly at: number,
    readonly pass: (subject: unknown) => void,
    readonly subject: unknown,
    private readonly queue: DeadlineQueue,
  ) {}

  cancel(): void {
    this.queue.remove(this);
  }
}

/** Waits until a promise settles or the time limit passes. Resolves to true if the promise has settled. */
export function settledWithin(clock: Clock, timeoutMs: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = Number.isFinite(timeoutMs) ? clock.setTimer(timeoutMs, () => resolve(false)) : undefined;
    void promise
      .catch(() => {})
      .then(() => {
        timer?.cancel();
        resolve(true);
      });
  });
}

/** Resolves when the time has passed, or the signal aborts. Resolves at once for a time of 0. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      signal?.removeEventListener("abort", end);
      timer.cancel();
      resolve();
    };
    const timer = clock.setTimer(ms, end);
    signal?.addEventListener("abort", end);
  });
}

interface VirtualTimer {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * A clock that moves only on command, for tests and simulations. A scenario of minutes plays in milliseconds, with the
 * same result each time.
 *
 * @example
 * ```ts
 * const clock = new VirtualClock();
 * clock.setTimer(500, () => console.log(clock.now())); // 500
 * await clock.advance(1000);
 * ```
 */
export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  #entries: VirtualTimer[] = [];
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: VirtualTimer = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#entries.push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

  /** Moves time forward by `ms` milliseconds. Runs due timers in order, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.settle();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#entries.splice(this.#entries.indexOf(next), 1);
      this.#now = Math.max(this.#now, next.at);
      next.run?.();
      await this.settle();
    }
    this.#now = end;
    await this.settle();
  }

  /** Runs deferred calls and lets promises settle, without moving time. */
  async settle(): Promise<void> {
    do {
      const batch = this.#deferred;
      this.#deferred = [];
      for (const run of batch) run();
      await new Promise<void>((resolve) => setImmediate(resolve));
    } while (this.#deferred.length > 0);
  }

  #next(): VirtualTimer | undefined {
    let best: VirtualTimer | undefined;
    this.#entries = this.#entries.filter((entry) => entry.run !== undefined);
    for (const entry of this.#entries) {
      if (best === undefined || entry.at < best.at || (entry.at === best.at && entry.order < best.order))
        best = entry;
    }
    return best;
  }
}
