import { requestsOfLevel } from "../load/level-requests.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import type { LevelFault, LevelResult } from "./level-result.js";
import { COUNT_POLL_MS, PIECE_MS, SILENCE_MS } from "./measure-options.js";
import type { MeasureSession } from "./measure-session.js";
import type { RequestFigures } from "./request-figures.js";
import { RunPieces } from "./run-pieces.js";
import { type Instability, instabilityOf } from "./stability.js";
import { WindowRecorder } from "./window-recorder.js";

const NO_REQUESTS: LevelFault = {
  kind: "no requests",
  text: "No valid requests recorded within time interval. Please use a larger time window.",
};

/**
 * Measures one level until its last three windows agree, or the largest number of windows is reached. It does not throw
 * for faults of the server or the generator: the result has what was measured, and the fault.
 */
export async function measureLevel(session: MeasureSession, level: LoadLevel): Promise<LevelResult> {
  return new LevelMeasurement(session, level, undefined, false).measure(async (measurement) => {
    const count = requestsOfLevel(level) ?? session.options.requestCount;
    if (count !== undefined) await measurement.exactly(count);
    else await measurement.untilStable();
  });
}

/** Measures a level for a fixed time in windows of a second, all of which count. Stability is not asked for. */
export async function measurePhase(
  session: MeasureSession,
  level: LoadLevel,
  durationMs: number,
  phase: string,
): Promise<LevelResult> {
  return new LevelMeasurement(session, level, phase, true).measure((measurement) =>
    measurement.forTime(durationMs),
  );
}

class LevelMeasurement {
  readonly #session: MeasureSession;
  readonly #level: LoadLevel;
  readonly #phase: string | undefined;
  readonly #windows: WindowRecorder;
  #instability: Instability | undefined;
  #fault: LevelFault | undefined;
  /** Text of a failure in the last window. */
  #lastFailure: string | undefined;

  constructor(session: MeasureSession, level: LoadLevel, phase: string | undefined, keepAll: boolean) {
    this.#session = session;
    this.#level = level;
    this.#phase = phase;
    this.#windows = new WindowRecorder(session, level, keepAll);
  }

  async measure(run: (measurement: LevelMeasurement) => Promise<void>): Promise<LevelResult> {
    const { options, observer, metrics, signal } = this.#session;
    observer.onLevelBegin?.(this.#level, this.#phase);
    metrics?.begin();
    await metrics?.read();
    try {
      await run(this);
    } catch (error) {
      this.#fault = { kind: "generator", text: error instanceof Error ? error.message : String(error) };
      if (this.#windows.isOpen) await this.#windows.cut();
    }
    await metrics?.read();
    const figures = this.#windows.merged();
    const found = this.#windows.serverFigures();
    const measured = metrics?.figures();
    const cuts = found && measured?.cuts.get(found.name);
    const limit = options.latencyLimitMs;
    const result: LevelResult = {
      level: this.#level,
      ...(this.#phase !== undefined && { phase: this.#phase }),
      figures,
      ...(this.#instability !== undefined && { instability: this.#instability }),
      overLimit: limit !== undefined && figures.latencyAt(options.stability.percentile) > limit,
      interrupted: signal.aborted,
      ...(this.#fault !== undefined && { fault: this.#fault }),
      timeline: this.#windows.timeline,
      trials: this.#windows.count,
      ...(found !== undefined && { server: cuts === undefined ? found : { ...found, cuts } }),
      ...(measured !== undefined && measured.pages > 0 && { metrics: measured }),
    };
    observer.onLevel?.(result);
    return result;
  }

  /** One window of exactly `count` requests. An interruption ends it once the requests in flight have ended. */
  async exactly(count: number): Promise<void> {
    const { generator, clock, signal } = this.#session;
    await generator.pause();
    await this.#windows.begin();
    const run = generator.run(this.#level, count);
    // It also fails where a piece cannot be taken, whose error is the one that is reported.
    run.catch(() => {});
    const pieces = new RunPieces();
    for (;;) {
      const window = await firstOf(run, (over) => clock.sleep(PIECE_MS, AbortSignal.any([signal, over])));
      if (window !== undefined) {
        for (const piece of pieces.last(window)) await this.#windows.add(piece);
        break;
      }
      if (signal.aborted) {
        await this.#interrupt(run);
        break;
      }
      for (const piece of pieces.next(await generator.take())) await this.#windows.add(piece);
    }
    this.#checkRequests(await this.#windows.cut());
  }

  /** Ends a run before all its requests are sent. */
  async #interrupt(run: Promise<LoadWindow>): Promise<void> {
    const { generator } = this.#session;
    if (this.#level.mode === "fixed_schedule") {
      // A pause would play the schedule to its end.
      await this.#windows.add(await generator.take());
    } else for (const part of await Promise.all([generator.pause(), run])) await this.#windows.add(part);
  }

  async untilStable(): Promise<void> {
    const { generator, options, signal } = this.#session;
    await generator.begin(this.#level);
    // The requests that ended before belong to the level before.
    await generator.take();
    await this.#windows.begin();
    this.#instability = "too few windows";
    for (let trial = 1; trial <= options.maxTrials && !signal.aborted; trial++) {
      await (options.mode === "time_windows"
        ? this.#timeWindow(options.intervalMs, options.longestIntervalMs)
        : this.#countWindow());
      if (!this.#checkRequests(await this.#windows.cut())) return;
      this.#instability = instabilityOf(this.#windows.figures, options.stability);
      if (this.#instability === undefined || this.#isHopeless()) return;
    }
  }

  async forTime(durationMs: number): Promise<void> {
    const { generator, clock, signal } = this.#session;
    await generator.begin(this.#level);
    await generator.take();
    await this.#windows.begin();
    const end = clock.now() + durationMs;
    for (let left = durationMs; left >= 1 && !signal.aborted; left = end - clock.now()) {
      await this.#timeWindow(Math.min(PIECE_MS, left));
      await this.#windows.cut();
    }
    this.#checkRequests(this.#windows.merged());
  }

  async #timeWindow(durationMs: number, longestMs = durationMs): Promise<void> {
    const { generator, clock, signal } = this.#session;
    const begin = clock.now();
    let isEmpty = true;
    for (;;) {
      const passed = clock.now() - begin;
      const left = (isEmpty && durationMs - passed < 1 ? longestMs : durationMs) - passed;
      if (left < 1 || signal.aborted) return;
      await clock.sleep(Math.min(PIECE_MS, left), signal);
      const piece = await generator.take();
      if (piece.records.count > 0) isEmpty = false;
      await this.#windows.add(piece);
    }
  }

  /** Takes pieces until they have enough requests, or none came for long. */
  async #countWindow(): Promise<void> {
    const { generator, clock, options, signal } = this.#session;
    const silence = Math.max(SILENCE_MS, options.intervalMs);
    let count = 0;
    let last = clock.now();
    while (count < options.windowRequestCount && clock.now() - last <= silence && !signal.aborted) {
      await clock.sleep(COUNT_POLL_MS, signal);
      const piece = await generator.take();
      await this.#windows.add(piece);
      count += piece.records.count;
      if (piece.records.count > 0) last = clock.now();
    }
  }

  /** Whether a window has a successful request. Otherwise the level ends, unless it was interrupted. */
  #checkRequests(figures: RequestFigures): boolean {
    const [text] = figures.failures.keys();
    const before = this.#lastFailure;
    this.#lastFailure = text;
    if (figures.requestCount > 0) return true;
    if (text !== undefined) this.#fault = { kind: "all failed", text: `every request failed: ${text}` };
    else if (this.#session.signal.aborted) return false;
    // Connections are tried again after pauses, which may be longer than a window.
    else if (before !== undefined)
      this.#fault = { kind: "all failed", text: `no request ended after a failure: ${before}` };
    else this.#fault = NO_REQUESTS;
    return false;
  }

  /** The latency is over its limit in a recent window, so that further windows cannot help. */
  #isHopeless(): boolean {
    const { latencyLimitMs, stability } = this.#session.options;
    if (latencyLimitMs === undefined) return false;
    return (
      this.#windows.figures.length >= 3 &&
      this.#windows.figures.some((window) => window.latencyAt(stability.percentile) > latencyLimitMs)
    );
  }
}

/** Resolves to the result of a run, or to undefined if a sleep ends first. The sleep ends with the run. */
export async function firstOf<T>(
  run: Promise<T>,
  sleep: (over: AbortSignal) => Promise<void>,
): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([run, sleep(over.signal).then(() => undefined)]);
  } finally {
    over.abort();
  }
}
