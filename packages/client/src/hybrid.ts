import { assertOptions, LONGEST_TIMEOUT_MS, optionTypes, TritonError } from "@tritonjs/protocol";

/** The part of a clock that is used. `VirtualClock` of `@tritonjs/testing` has it. */
export interface HybridClock {
  /** Monotonic time in milliseconds. Its zero has no meaning. */
  now(): number;
  /** Calls `run` once, not before `delayMs` have passed, unless it is cancelled. */
  setTimer(delayMs: number, run: () => void): { cancel(): void };
}

const REAL_CLOCK: HybridClock = {
  now: () => performance.now(),
  setTimer(delayMs, run) {
    const timer = setTimeout(run, Math.min(LONGEST_TIMEOUT_MS, Math.ceil(delayMs)));
    return { cancel: () => clearTimeout(timer) };
  },
};

/** One place where a model runs: a handle of `bind`, or a client of the model on a server. */
export interface HybridSide<Inputs, Options, Result> {
  inferSample(inputs: Inputs, options?: Options): Promise<Result>;
  inferBatch(inputs: Inputs, options?: Options): Promise<Result>;
}

/** Options of {@link hybrid}. */
export interface HybridOptions<Inputs, LocalOptions, RemoteOptions, Result> {
  /** The model on this device, or a promise of it: calls go to the server until it is there. */
  readonly local:
    | HybridSide<Inputs, LocalOptions, Result>
    | Promise<HybridSide<Inputs, LocalOptions, Result>>;
  /** The same model on a server: `new ModelClient(url, "model")`. */
  readonly remote: HybridSide<Inputs, RemoteOptions, Result>;
  /** Time, for tests. */
  readonly clock?: HybridClock;
}

/** Options of a call, which both sides take. */
export interface HybridCallOptions {
  /** Cancels the call. */
  readonly signal?: AbortSignal;
}

/** A model that runs on this device or on a server, wherever its answers come sooner. */
export interface HybridModel<Inputs, Result> {
  inferSample(inputs: Inputs, options?: HybridCallOptions): Promise<Result>;
  inferBatch(inputs: Inputs, options?: HybridCallOptions): Promise<Result>;
  /** Where the next call goes, and the expected milliseconds of a call on each side; undefined before the first one. */
  status(): {
    readonly next: "local" | "remote";
    readonly localMs: number | undefined;
    readonly remoteMs: number | undefined;
  };
}

const OPTION_TYPES = optionTypes<HybridOptions<never, never, never, never>>({
  local: "object",
  remote: "object",
  clock: "object",
});

/**
 * Joins a model on this device and the same model on a server. Calls go where answers come sooner, as measured, and to
 * the other side if one fails, or if the server is silent. The slower side is tried again from time to time, seldom enough to cost about 5%.
 *
 * @throws TritonError INVALID_ARG for an unknown option. A call rejects with the error of the server if both sides fail
 * @example
 * ```ts
 * const model = hybrid({ local: triton.bind({ ... }), remote: new ModelClient(url, "classifier") });
 * const { scores } = await model.inferSample({ image });
 * ```
 */
export function hybrid<Inputs, LocalOptions, RemoteOptions, Result>(
  options: HybridOptions<Inputs, LocalOptions, RemoteOptions, Result>,
): HybridModel<Inputs, Result> {
  assertOptions("hybrid()", options, OPTION_TYPES, {}, ["local", "remote"]);
  return new Hybrid(options);
}

class Hybrid<Inputs, LocalOptions, RemoteOptions, Result> implements HybridModel<Inputs, Result> {
  readonly #clock: HybridClock;
  readonly #local: Side<HybridSide<Inputs, LocalOptions, Result>>;
  readonly #remote: Side<HybridSide<Inputs, RemoteOptions, Result>>;
  /** Calls since the slower side was tried. */
  #sinceTrial = 0;

  constructor(options: HybridOptions<Inputs, LocalOptions, RemoteOptions, Result>) {
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#local = new Side(options.local);
    this.#remote = new Side(options.remote);
  }

  inferSample(inputs: Inputs, options?: HybridCallOptions): Promise<Result> {
    return this.#infer("inferSample", inputs, options);
  }

  inferBatch(inputs: Inputs, options?: HybridCallOptions): Promise<Result> {
    return this.#infer("inferBatch", inputs, options);
  }

  status() {
    const next: "local" | "remote" = this.#choose() === this.#local ? "local" : "remote";
    return { next, localMs: this.#local.expectedMs, remoteMs: this.#remote.expectedMs };
  }

  async #infer(
    method: "inferSample" | "inferBatch",
    inputs: Inputs,
    options: HybridCallOptions | undefined,
  ): Promise<Result> {
    const first = this.#choose();
    const second = first === this.#local ? this.#remote : this.#local;
    const isSlower = (first.expectedMs ?? 0) > (second.expectedMs ?? Number.POSITIVE_INFINITY);
    this.#sinceTrial = isSlower ? 0 : this.#sinceTrial + 1;
    const other = second.isUsable(this.#clock.now()) ? second : undefined;
    try {
      const answer = this.#run(first, method, inputs, options);
      if (first === this.#local || other === undefined) return await answer;
      const patienceMs = PATIENCE * Math.max(first.expectedMs ?? 0, second.expectedMs ?? 0, SHORTEST_MS);
      return await this.#withoutServer(answer, patienceMs, () => this.#run(second, method, inputs, options));
    } catch (error) {
      if (!mayPassElsewhere(error) || second.model === undefined) throw error;
      return await this.#run(second, method, inputs, options);
    }
  }

  /** Also runs the model here if the server is silent for too long: it may be gone without a word. */
  #withoutServer(
    answer: Promise<Result>,
    patienceMs: number,
    runHere: () => Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(patienceMs, () => {
        this.#remote.failed(this.#clock.now());
        // If that fails too, the server may still answer.
        runHere().then(resolve, () => {});
      });
      answer.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  async #run(
    side: Side<HybridSide<Inputs, LocalOptions, Result>> | Side<HybridSide<Inputs, RemoteOptions, Result>>,
    method: "inferSample" | "inferBatch",
    inputs: Inputs,
    options: HybridCallOptions | undefined,
  ): Promise<Result> {
    const started = this.#clock.now();
    try {
      const answer = await side.model![method](inputs, options as never);
      side.answered(this.#clock.now() - started);
      return answer;
    } catch (error) {
      if (mayPassElsewhere(error)) side.failed(this.#clock.now());
      throw error;
    }
  }

  #choose() {
    const now = this.#clock.now();
    const [local, remote] = [this.#local, this.#remote];
    if (!local.isUsable(now)) return remote;
    if (!remote.isUsable(now) || local.expectedMs === undefined) return local;
    if (remote.expectedMs === undefined) return remote;
    const [faster, slower] =
      local.expectedMs <= remote.expectedMs ? [local, remote] : ([remote, local] as const);
    // A trial of the slower side costs as many calls of the faster one as it is slower.
    const ratio = slower.expectedMs! / Math.max(faster.expectedMs!, 0.001);
    return this.#sinceTrial >= Math.max(CALLS_BETWEEN_TRIALS, CALLS_BETWEEN_TRIALS * (ratio - 1))
      ? slower
      : faster;
  }
}

/** How many times the expected duration the server may be silent before the model also runs here, and the least. */
const PATIENCE = 4;
const SHORTEST_MS = 50;

/** Calls of the faster side between two of the slower one, if that takes up to twice as long. */
const CALLS_BETWEEN_TRIALS = 20;

/** Milliseconds for which a side that failed is left alone; they double with each further failure. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/** Calls of which the median is expected of the next one: a single slow call does not change the side. */
const RECENT_CALLS = 3;

/** A side with what was measured of it. */
class Side<Model> {
  /** Undefined until it is there. */
  model: Model | undefined;
  expectedMs: number | undefined;
  #calls = 0;
  readonly #recentMs: number[] = [];
  #pauseMs = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(model: Model | Promise<Model>) {
    if (!(model instanceof Promise)) this.model = model;
    else {
      model.then(
        (there) => {
          this.model = there;
        },
        // A device that cannot run the model leaves it to the server.
        () => {},
      );
    }
  }

  isUsable(now: number): boolean {
    return this.model !== undefined && now >= this.#pausedUntil;
  }

  answered(durationMs: number): void {
    this.#pauseMs = 0;
    this.#calls++;
    // The first call prepares the session or the connection, and says little about the others.
    if (this.#calls === 2 || this.#recentMs.length === RECENT_CALLS) this.#recentMs.shift();
    this.#recentMs.push(durationMs);
    const sorted = this.#recentMs.toSorted((a, b) => a - b);
    this.expectedMs = sorted[(sorted.length - 1) >> 1];
  }

  failed(now: number): void {
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs === 0 ? FIRST_PAUSE_MS : 2 * this.#pauseMs);
    this.#pausedUntil = now + this.#pauseMs;
  }
}

/** False for faults of the request, which every side would refuse, and for a caller that has left. */
function mayPassElsewhere(error: unknown): boolean {
  const { code } = TritonError.from(error);
  return code !== "INVALID_ARG" && code !== "CANCELLED";
}
