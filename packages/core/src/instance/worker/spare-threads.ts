import { type Clock, quietClock, type Timer } from "../../clock/clock.js";

/** Most spare threads. Each takes about 10 MB, and its start takes processor time from other work. */
export const MOST_SPARE_THREADS = 4;

/** Number of threads started ahead: the default number of instances of a model. */
const STARTED_AHEAD = 2;

/** Milliseconds that a thread is kept: a repository that changes often changes again within this time. */
const KEPT_FOR_MS = 10_000;

/** Methods of a thread that {@link SpareThreads} needs. */
export interface SpareThread {
  /** Ends the thread once nothing is loading in it. */
  retire(): void;
}

/**
 * Pool of threads that have closed a model or were started ahead, and wait a while for another model. The thread takes
 * most of the time that a small model needs to load: starting it, importing modules, loading ONNX Runtime.
 */
export class SpareThreads<Thread extends SpareThread> {
  /** Spare threads; the most recent one is last. */
  #threads: Thread[] = [];
  #timer: Timer | undefined;
  /** Number of threads in which a model is loading. */
  #loading = 0;
  #lastLoadAt = Number.NEGATIVE_INFINITY;

  /** @param clock with timers that do not keep the process alive */
  constructor(private readonly clock: Pick<Clock, "now" | "setTimer"> = quietClock) {}

  get count(): number {
    return this.#threads.length;
  }

  /** Records that a model begins to load in a thread. */
  loadBegins(): void {
    this.#loading++;
  }

  /**
   * Records that a model has loaded in a thread, or failed to.
   *
   * @returns number of threads to start ahead. Loads that follow one another, unlike those at the start of a server,
   * are likely to be followed by another.
   */
  loadEnds(): number {
    if (--this.#loading > 0) return 0;
    const now = this.clock.now();
    const follows = now - this.#lastLoadAt < KEPT_FOR_MS;
    this.#lastLoadAt = now;
    return follows ? Math.max(0, STARTED_AHEAD - this.count) : 0;
  }

  /** Takes the most recent spare thread, whose memory is warm; undefined if there is none. */
  take(): Thread | undefined {
    return this.#threads.pop();
  }

  /** Keeps a thread that has closed a model; ends the oldest one if there are enough. */
  keep(thread: Thread): void {
    this.#threads.push(thread);
    if (this.#threads.length > MOST_SPARE_THREADS) this.#threads.shift()!.retire();
    this.#endLater();
  }

  /** Keeps a thread that has just been started; it is taken after all others. */
  add(thread: Thread): void {
    this.#threads.unshift(thread);
    this.#endLater();
  }

  /** Removes a thread that has ended. */
  forget(thread: Thread): void {
    this.#threads = this.#threads.filter((one) => one !== thread);
  }

  #endLater(): void {
    this.#timer?.cancel();
    this.#timer = this.clock.setTimer(KEPT_FOR_MS, () => {
      for (const thread of this.#threads.splice(0)) thread.retire();
    });
  }
}
