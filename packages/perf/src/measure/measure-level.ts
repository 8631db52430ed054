import { performance } from "node:perf_hooks";
import type { LoadGenerator } from "../load/load-generator.js";
import { countsConcurrency, type LoadLevel, requestsOfLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import { type LevelFault, type LevelResult, meetsLimit, type WindowSummary } from "./level-result.js";
import {
  type FigureOptions,
  type Instability,
  instabilityOf,
  mergeFigures,
  RequestFigures,
  STABLE_WINDOWS,
  type StabilityRules,
} from "./request-figures.js";
import {
  type CounterSnapshot,
  type MetricsWatch,
  type ServerFigures,
  type ServerWatch,
  stageMs,
} from "./server-watch.js";

const NO_REQUESTS: LevelFault = {
  kind: "no requests",
  text: "No valid requests recorded within time interval. Please use a larger time window.",
};

/**
 * Measures one level until its last three windows agree, or the largest number of windows is reached. It does not throw
 * for faults of the server or the generator: the result has what was measured, and the fault.
 */
export async function measureLevel(session: MeasureSession, level: LoadLevel): Promise<LevelResult> {
  return new LevelMeasurement(session, level).measure();
}

/** Measures a level for a fixed time in windows of a second, all of which count. Stability is not asked for. */
export async function measurePhase(
  session: MeasureSession,
  level: LoadLevel,
  durationMs: number,
  phase: string,
): Promise<LevelResult> {
  return new LevelMeasurement(session, level, { name: phase, durationMs }).measure();
}

class LevelMeasurement {
  readonly #timeline: WindowSummary[] = [];
  readonly #sequences = new Set<number>();
  #open: RequestFigures;
  #count = 0;
  /** Windows that count, oldest first: the last three, or all of a phase in one sum. */
  readonly #kept: Kept[] = [];
  #counters: CounterSnapshot | undefined;
  #instability: Instability | undefined;
  #fault: LevelFault | undefined;
  #lastFailure: string | undefined;

  constructor(
    private readonly session: MeasureSession,
    private readonly level: LoadLevel,
    private readonly phase?: MeasuredPhase,
  ) {
    this.#open = new RequestFigures(session.options);
  }

  async measure(): Promise<LevelResult> {
    const { options, observer, metrics, signal } = this.session;
    observer.onLevelBegin?.(this.level, this.phase?.name);
    metrics?.begin();
    await metrics?.read();
    try {
      await this.#run();
    } catch (error) {
      this.#fault = { kind: "generator", text: error instanceof Error ? error.message : String(error) };
      if (this.#open.durationMs > 0) await this.#cut();
    }
    await metrics?.read();
    const figures = this.#merged();
    const server = this.#difference(this.#kept[0]?.before);
    const measured = metrics?.figures();
    const cuts = server && measured?.cuts.get(server.name);
    const limit = options.latencyLimitMs;
    const result: LevelResult = {
      level: this.level,
      ...(this.phase !== undefined && { phase: this.phase.name }),
      figures,
      ...(this.#instability !== undefined && { instability: this.#instability }),
      overLimit: limit !== undefined && figures.latencyAt(options.stability.percentile) > limit,
      interrupted: signal.aborted,
      ...(this.#fault !== undefined && { fault: this.#fault }),
      timeline: this.#timeline,
      trials: this.#count,
      ...(server !== undefined && { server: cuts === undefined ? server : { ...server, cuts } }),
      ...(measured !== undefined && measured.pages > 0 && { metrics: measured }),
    };
    observer.onLevel?.(result);
    return result;
  }

  async #run(): Promise<void> {
    if (this.phase !== undefined) return this.#forTime(this.phase.durationMs);
    const count = requestsOfLevel(this.level) ?? this.session.options.requestCount;
    if (count !== undefined) await this.#exactly(count);
    else await this.#untilStable();
  }

  /** One window of exactly `count` requests. An interruption ends it once the requests in flight have ended. */
  async #exactly(count: number): Promise<void> {
    const { generator, clock, signal } = this.session;
    await generator.pause();
    this.#counters = await this.#readCounters();
    const run = generator.run(this.level, count);
    // It also fails where a piece cannot be taken, whose error is the one that is reported.
    run.catch(() => {});
    const pieces = new RunPieces();
    for (;;) {
      const window = await firstOf(run, (over) => clock.sleep(PIECE_MS, AbortSignal.any([signal, over])));
      if (window !== undefined) {
        for (const piece of pieces.last(window)) await this.#add(piece);
        break;
      }
      if (signal.aborted) {
        await this.#interrupt(run);
        break;
      }
      for (const piece of pieces.next(await generator.take())) await this.#add(piece);
    }
    this.#checkRequests(await this.#cut());
  }

  async #interrupt(run: Promise<LoadWindow>): Promise<void> {
    const { generator } = this.session;
    if (this.level.mode === "fixed_schedule") {
      // A pause would play the schedule to its end.
      await this.#add(await generator.take());
    } else for (const part of await Promise.all([generator.pause(), run])) await this.#add(part);
  }

  async #untilStable(): Promise<void> {
    const { generator, options, signal } = this.session;
    await generator.begin(this.level);
    // The requests that ended before belong to the level before.
    await generator.take();
    this.#counters = await this.#readCounters();
    this.#instability = "too few windows";
    for (let trial = 1; trial <= options.maxTrials && !signal.aborted; trial++) {
      await (options.mode === "time_windows"
        ? this.#timeWindow(options.intervalMs, options.longestIntervalMs)
        : this.#countWindow());
      if (!this.#checkRequests(await this.#cut())) return;
      this.#instability = instabilityOf(this.#figures, options.stability);
      if (this.#instability === undefined || this.#isHopeless()) return;
    }
  }

  async #forTime(durationMs: number): Promise<void> {
    const { generator, clock, signal } = this.session;
    await generator.begin(this.level);
    await generator.take();
    this.#counters = await this.#readCounters();
    const end = clock.now() + durationMs;
    for (let left = durationMs; left >= 1 && !signal.aborted; left = end - clock.now()) {
      await this.#timeWindow(Math.min(PIECE_MS, left));
      await this.#cut();
    }
    this.#checkRequests(this.#merged());
  }

  async #timeWindow(durationMs: number, longestMs = durationMs): Promise<void> {
    const { generator, clock, signal } = this.session;
    const begin = clock.now();
    let isEmpty = true;
    for (;;) {
      const passed = clock.now() - begin;
      const left = (isEmpty && durationMs - passed < 1 ? longestMs : durationMs) - passed;
      if (left < 1 || signal.aborted) return;
      await clock.sleep(Math.min(PIECE_MS, left), signal);
      const piece = await generator.take();
      if (piece.records.count > 0) isEmpty = false;
      await this.#add(piece);
    }
  }

  async #countWindow(): Promise<void> {
    const { generator, clock, options, signal } = this.session;
    const silence = Math.max(SILENCE_MS, options.intervalMs);
    let count = 0;
    let last = clock.now();
    while (count < options.windowRequestCount && clock.now() - last <= silence && !signal.aborted) {
      await clock.sleep(COUNT_POLL_MS, signal);
      const piece = await generator.take();
      await this.#add(piece);
      count += piece.records.count;
      if (piece.records.count > 0) last = clock.now();
    }
  }

  #checkRequests(figures: RequestFigures): boolean {
    const [text] = figures.failures.keys();
    const before = this.#lastFailure;
    this.#lastFailure = text;
    if (figures.requestCount > 0) return true;
    if (text !== undefined) this.#fault = { kind: "all failed", text: `every request failed: ${text}` };
    else if (this.session.signal.aborted) return false;
    // Connections are tried again after pauses, which may be longer than a window.
    else if (before !== undefined)
      this.#fault = { kind: "all failed", text: `no request ended after a failure: ${before}` };
    else this.#fault = NO_REQUESTS;
    return false;
  }

  /** The latency is over its limit in a recent window, so that further windows cannot help. */
  #isHopeless(): boolean {
    const { latencyLimitMs, stability } = this.session.options;
    if (latencyLimitMs === undefined) return false;
    return (
      this.#figures.length >= 3 &&
      this.#figures.some((window) => window.latencyAt(stability.percentile) > latencyLimitMs)
    );
  }

  get #figures(): RequestFigures[] {
    return this.#kept.map(({ figures }) => figures);
  }

  async #add(piece: LoadWindow): Promise<void> {
    const { options, observer } = this.session;
    await observer.onRecords?.(this.level, piece);
    const figures = new RequestFigures(options);
    figures.addWindow(piece, this.#sequences);
    this.#open.add(figures);
    const moment = summaryOf(figures, undefined);
    this.#timeline.push(moment);
    observer.onMoment?.(this.level, moment);
  }

  async #cut(): Promise<RequestFigures> {
    const { options, observer } = this.session;
    const figures = this.#open;
    this.#open = new RequestFigures(options);
    const before = this.#counters;
    this.#counters = await this.#readCounters();
    const summary = summaryOf(figures, this.#difference(before));
    this.#count++;
    this.#keep({ figures, before });
    observer.onWindow?.(this.level, summary, this.#count);
    return figures;
  }

  #merged(): RequestFigures {
    return mergeFigures(this.#figures, this.session.options);
  }

  #keep(window: Kept): void {
    const [first] = this.#kept;
    if (this.phase !== undefined && first !== undefined) first.figures.add(window.figures);
    else this.#kept.push(window);
    if (this.#kept.length > STABLE_WINDOWS) this.#kept.shift();
  }

  #difference(before: CounterSnapshot | undefined): ServerFigures | undefined {
    const { server } = this.session;
    if (server === undefined || before === undefined || this.#counters === undefined) return undefined;
    return server.difference(before, this.#counters);
  }

  async #readCounters(): Promise<CounterSnapshot | undefined> {
    const { server } = this.session;
    try {
      return await server?.look();
    } catch (error) {
      server?.warnings.add(
        `The server's statistics could not be read: ${error instanceof Error ? error.message : String(error)}`,
      );
      return undefined;
    }
  }
}

/** A phase of a plan: all of its windows count. */
interface MeasuredPhase {
  readonly name: string;
  readonly durationMs: number;
}

/** Resolves to the result of a run, or to undefined if a sleep ends first. The sleep ends with the run. */
async function firstOf<T>(
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

export interface MeasureObserver {
  onLevelBegin?(level: LoadLevel, phase: string | undefined): void;
  /**
   * Called for each piece of records before it is summed up. A window may come in several pieces. The next piece waits
   * for the promise, so that an export holds no more than one.
   */
  onRecords?(level: LoadLevel, window: LoadWindow): Promise<void> | undefined;
  onMoment?(level: LoadLevel, summary: WindowSummary): void;
  onWindow?(level: LoadLevel, summary: WindowSummary, trial: number): void;
  onLevel?(result: LevelResult): void;
}

export interface MeasureSession {
  readonly generator: LoadGenerator;
  readonly clock: MeasureClock;
  readonly options: MeasureOptions;
  readonly server?: ServerWatch;
  readonly metrics?: MetricsWatch;
  readonly observer: MeasureObserver;
  /** Ends the measurement early. The level that runs is reported as interrupted. */
  readonly signal: AbortSignal;
}

/** How levels are measured. Times are milliseconds. */
export interface MeasureOptions extends FigureOptions {
  /** Windows of equal time, or of an equal number of requests. */
  readonly mode: "time_windows" | "count_windows";
  readonly intervalMs: number;
  /** A time window in which no request has ended continues until one has, at most to this length. */
  readonly longestIntervalMs?: number;
  /** Fewest requests in a count window. */
  readonly windowRequestCount: number;
  /** Measures exactly this number of requests in one window, which counts as stable. */
  readonly requestCount?: number;
  readonly warmupRequestCount: number;
  readonly maxTrials: number;
  readonly stability: StabilityRules;
  /** Limit on the latency: its mean, or the percentile of `stability`. */
  readonly latencyLimitMs?: number;
}

/** A count window in which no request ends for this time, or for an interval if that is longer, has none. */
const SILENCE_MS = 60_000;

/** Time between two looks at a count window. */
const COUNT_POLL_MS = 100;

/** Windows are taken in pieces of this length, for the progress and the timeline. A window of a ramp has one. */
const PIECE_MS = 1000;

/** The time by which windows are cut. */
export interface MeasureClock {
  /** Milliseconds since the epoch, with fractions, as in the generator's records. */
  now(): number;
  /** Resolves after `ms` milliseconds, or as soon as the signal aborts. It never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const processClock: MeasureClock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
    }),
};

interface Kept {
  readonly figures: RequestFigures;
  readonly before: CounterSnapshot | undefined;
}

function summaryOf(figures: RequestFigures, server: ServerFigures | undefined): WindowSummary {
  return {
    start: figures.start,
    end: figures.end,
    throughput: figures.throughput,
    requestCount: figures.requestCount,
    failureCount: figures.failureCount,
    meanMs: figures.latency.mean,
    p50Ms: figures.latency.percentile(50),
    p99Ms: figures.latency.percentile(99),
    ...(server !== undefined && { queueMs: stageMs(server, "queue") }),
  };
}

/**
 * The pieces of a run with an exact number of requests. Together they last from the first scheduled send to the last
 * end, so that a run is not diluted by the time before and after it.
 */
export class RunPieces {
  #hasBegun = false;

  /** A piece while the run continues. None before the first request has ended. */
  next(window: LoadWindow): LoadWindow[] {
    const { records } = window;
    if (records.count === 0) return this.#hasBegun ? [window] : [];
    if (this.#hasBegun) return [window];
    this.#hasBegun = true;
    let start = Number.POSITIVE_INFINITY;
    for (let i = 0; i < records.count; i++) {
      // A request that never reached a connection has no time of sending.
      const sent = records.sent[i]!;
      start = Math.min(start, records.scheduled[i]!, Number.isNaN(sent) ? start : sent);
    }
    return [start < window.end ? { ...window, start } : window];
  }

  /** The last piece. None if all requests are in those before. */
  last(window: LoadWindow): LoadWindow[] {
    const { records } = window;
    if (records.count === 0) return this.#hasBegun ? [] : [window];
    const [piece] = this.next(window);
    let end = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < records.count; i++) end = Math.max(end, records.end[i]!);
    return [end > piece!.start ? { ...piece!, end } : piece!];
  }
}

/** Level of the warm-up requests: a schedule is kept for the measurement. */
const WARM_UP_LEVEL: LoadLevel = { mode: "concurrency", value: 1 };

/** Longest wait for the requests of a rate that was too high. */
const DRAIN_MS = 60_000;

/** Rounding error of repeated additions of a step. */
const STEP_ERROR = 1e-9;

type MeasureAt = (value: number) => Promise<LevelResult>;

/**
 * Measures the levels of a plan. Every level that was measured is in the result, in the order of measurement. A fault
 * or an interruption ends the plan.
 */
export async function measurePlan(session: MeasureSession, plan: LoadPlan): Promise<LevelResult[]> {
  const { generator, options } = session;
  const results: LevelResult[] = [];
  const measureOne = async (result: Promise<LevelResult>) => {
    const measured = await result;
    results.push(measured);
    return measured;
  };
  if (options.warmupRequestCount > 0) {
    await generator.run(firstLevel(plan), options.warmupRequestCount);
  }
  if (plan.kind === "single") await measureOne(measureLevel(session, plan.level));
  else if (plan.kind === "phases") {
    for (const { level, durationMs, name } of plan.phases) {
      if (hasEnded(await measureOne(measurePhase(session, level, durationMs, name)))) break;
    }
  } else {
    const measureAt: MeasureAt = (value) => measureOne(measureLevel(session, plan.levelAt(value)));
    if (plan.kind === "sweep") await sweep(plan.range, measureAt);
    else await search(plan.range, measureAt, (result) => drain(session, result));
  }
  return results;
}

/** Measures the levels of a range until one exceeds the latency limit. Unstable levels do not end it. */
async function sweep({ start, end, step }: LevelRange, measureAt: MeasureAt): Promise<void> {
  for (let i = 0; ; i++) {
    const value = start + i * step;
    if (end !== 0 && value > end + STEP_ERROR) return;
    const result = await measureAt(value);
    if (hasEnded(result) || result.overLimit || (step === 0 && end !== 0)) return;
  }
}

/**
 * Bisects a range for the highest level that meets the latency limit. An unstable level counts as not meeting it.
 */
async function search(
  { start, end, step }: LevelRange,
  measureAt: MeasureAt,
  drained: (result: LevelResult) => Promise<void>,
): Promise<void> {
  const first = await measureAt(start);
  if (hasEnded(first) || !meetsLimit(first) || end <= start) return;
  const last = await measureAt(end);
  if (hasEnded(last) || meetsLimit(last)) return;
  await drained(last);
  let low = start;
  let high = end;
  while (high - low > step + STEP_ERROR) {
    const middle = Number.isInteger(step) ? Math.floor((low + high) / 2) : (low + high) / 2;
    if (middle <= low || middle >= high) return;
    const result = await measureAt(middle);
    if (hasEnded(result)) return;
    if (meetsLimit(result)) low = middle;
    else {
      high = middle;
      await drained(result);
    }
  }
}

/**
 * Waits until the requests of a rate that was too high have ended. Otherwise they would delay those of the next rate, and
 * their latencies would count there.
 */
async function drain({ generator, clock, signal }: MeasureSession, { level }: LevelResult): Promise<void> {
  if (countsConcurrency(level)) return;
  await firstOf(generator.pause(), (over) => clock.sleep(DRAIN_MS, AbortSignal.any([signal, over])));
}

function hasEnded({ interrupted, fault }: LevelResult): boolean {
  return interrupted || fault !== undefined;
}

function firstLevel(plan: LoadPlan): LoadLevel {
  if (plan.kind === "single") return requestsOfLevel(plan.level) === undefined ? plan.level : WARM_UP_LEVEL;
  if (plan.kind === "phases") return plan.phases[0]!.level;
  return plan.levelAt(plan.range.start);
}

/** A range of levels: `end` 0 has no end. */
export interface LevelRange {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

interface LoadPhase {
  readonly name: string;
  readonly level: LoadLevel;
  readonly durationMs: number;
}

export type LoadPlan =
  | { readonly kind: "single"; readonly level: LoadLevel }
  | { readonly kind: "sweep"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "search"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "phases"; readonly phases: readonly LoadPhase[] };
