import { type Clock, realClock, type Timer } from "../../clock/clock.js";

/** Each holds about 10 MB, and is started by a processor that has other things to do. */
export const MOST_SPARE_THREADS = 4;

/** As many as a model has instances unless told otherwise. */
const STARTED_AHEAD = 2;

/** A repository that changes often changes again within this time. */
const KEPT_FOR_MS = 10_000;

/** What {@link SpareThreads} needs of a thread. */
export interface SpareThread {
  kill(): void;
}

/**
 * Threads that have closed a model, or were started ahead, and wait for another model for a while. Most of the time that
 * a small model takes to load is that of its thread: starting it, importing modules, loading ONNX Runtime.
 */
export class SpareThreads<Thread extends SpareThread> {
  /** The one that became spare last is the last. */
  #threads: Thread[] = [];
  #timer: Timer | undefined;
  /** Threads with a model that loads. */
  #loading = 0;
  #lastLoadAt = Number.NEGATIVE_INFINITY;

  /** @param clock with timers that do not keep the process alive */
  constructor(private readonly clock: Pick<Clock, "now" | "setTimer"> = quietClock) {}

  get count(): number {
    return this.#threads.length;
  }

  /** A model begins to load in a thread. */
  loadBegins(): void {
    this.#loading++;
  }

  /**
   * A model has loaded in a thread, or failed to.
   *
   * @returns how many threads to start ahead: loads that follow one another, unlike those at the start of a server, are
   * likely to be followed by a next one
   */
  loadEnds(): number {
    if (--this.#loading > 0) return 0;
    const now = this.clock.now();
    const follows = now - this.#lastLoadAt < KEPT_FOR_MS;
    this.#lastLoadAt = now;
    return follows ? Math.max(0, STARTED_AHEAD - this.count) : 0;
  }

  /** The thread that became spare last, whose memory is warm; undefined when there is none. */
  take(): Thread | undefined {
    return this.#threads.pop();
  }

  /** Keeps a thread that has closed a model; ends the oldest one when there are enough. */
  keep(thread: Thread): void {
    this.#threads.push(thread);
    if (this.#threads.length > MOST_SPARE_THREADS) this.#threads.shift()!.kill();
    this.#endLater();
  }

  /** Keeps a thread that has just been started, and is taken after all others. */
  add(thread: Thread): void {
    this.#threads.unshift(thread);
    this.#endLater();
  }

  /** The thread is gone. */
  forget(thread: Thread): void {
    this.#threads = this.#threads.filter((one) => one !== thread);
  }

  #endLater(): void {
    this.#timer?.cancel();
    this.#timer = this.clock.setTimer(KEPT_FOR_MS, () => {
      for (const thread of this.#threads.splice(0)) thread.kill();
    });
  }
}

const quietClock: Pick<Clock, "now" | "setTimer"> = {
  now: realClock.now,
  setTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
