import { invalidOption } from "../command/tool-errors.js";
import type { Session } from "../data/data-set.js";

/** When the next request of a level is sent. */
export type LoadLevel =
  | ConcurrencyLevel
  | RequestRateLevel
  | RequestIntervalsLevel
  | FixedScheduleLevel
  | ConcurrencyRampLevel
  | RequestRateRampLevel
  | PeriodicConcurrencyLevel
  | SessionConcurrencyLevel;

/** Keeps a number of requests in flight: a new one starts when one ends. */
interface ConcurrencyLevel {
  readonly mode: "concurrency";
  /** Requests in flight; for sequence models, live sequences. */
  readonly value: number;
}

/** Sends requests by a schedule that does not wait for responses. */
export interface RequestRateLevel {
  readonly mode: "request_rate";
  /** Requests a second. */
  readonly value: number;
  /** Gaps of equal length, or exponential gaps. */
  readonly distribution: "constant" | "poisson";
}

/** Sends requests by gaps that repeat from the first after the last. */
export interface RequestIntervalsLevel {
  readonly mode: "request_intervals";
  readonly gapsMicroseconds: readonly number[];
}

/** Sends payload `i` of the data set at the time `i`, each once. */
export interface FixedScheduleLevel {
  readonly mode: "fixed_schedule";
  /** Rising times in milliseconds from the start: `timestampsMs` of the data set. */
  readonly timestampsMs: readonly number[];
}

/** Moves linearly from one concurrency to another, and stays there. */
interface ConcurrencyRampLevel {
  readonly mode: "concurrency_ramp";
  readonly from: number;
  readonly to: number;
  readonly durationMs: number;
}

/** Moves linearly from one rate to another, and stays there. `durationMs: 0` is a spike. */
export interface RequestRateRampLevel {
  readonly mode: "request_rate_ramp";
  readonly from: number;
  readonly to: number;
  readonly distribution: "constant" | "poisson";
  readonly durationMs: number;
}

/**
 * Sends each request once, in batches. The next batch starts when each request of the last one has its responses, or has
 * ended.
 */
export interface PeriodicConcurrencyLevel {
  readonly mode: "periodic_concurrency";
  /** Requests of the first batch. */
  readonly start: number;
  /** Requests of all batches. */
  readonly end: number;
  /** Requests of the other batches. The last one is smaller where they do not add up to `end`. */
  readonly step: number;
  /** Responses of each request for which the next batch waits. */
  readonly responses: number;
}

/** Plays each session of a data set once, a number of them at a time. */
export interface SessionConcurrencyLevel {
  readonly mode: "session_concurrency";
  /** Live sessions. */
  readonly value: number;
  readonly sessions: readonly Session[];
}

/** Properties of the levels of a mode. */
interface LevelMode<Level> {
  check(level: Level): void;
  /** The number that reports show for a level: requests in flight, or requests a second. */
  value(level: Level): number;
  /** A level counts requests in flight. The other levels count requests a second. */
  readonly countsConcurrency?: true;
  /** Requests of a level that ends by itself. */
  requests?(level: Level): number;
  /** The requests depend on each other, so that one thread sends all of them. */
  readonly needsOneThread?: true;
}

type Mode = LoadLevel["mode"];

const MODES: { readonly [M in Mode]: LevelMode<Extract<LoadLevel, { readonly mode: M }>> } = {
  concurrency: {
    check: ({ value }) => count("concurrency", value),
    value: ({ value }) => value,
    countsConcurrency: true,
  },
  request_rate: {
    check: ({ value }) => positive("request rate", value),
    value: ({ value }) => value,
  },
  request_intervals: {
    check: ({ gapsMicroseconds: gaps }) => {
      if (gaps.length === 0) throw invalidOption("request intervals: expected at least one gap, got none");
      for (const gap of gaps) atLeastZero("request interval", gap);
      if (gaps.every((gap) => gap === 0))
        throw invalidOption("request intervals: expected a gap above 0, got only zeros");
    },
    value: ({ gapsMicroseconds: gaps }) => {
      const total = gaps.reduce((sum, gap) => sum + gap, 0);
      return total === 0 ? 0 : (gaps.length * 1e6) / total;
    },
  },
  fixed_schedule: {
    check: ({ timestampsMs: times }) => {
      if (times.length === 0) throw invalidOption("fixed schedule: expected at least one time, got none");
      times.forEach((time, i) => {
        atLeastZero("time of the fixed schedule", time);
        if (i > 0 && time < times[i - 1]!)
          throw invalidOption(`fixed schedule: expected rising times, got ${time} after ${times[i - 1]}`);
      });
    },
    value: ({ timestampsMs: times }) => {
      const lastMs = times.at(-1) ?? 0;
      return lastMs === 0 ? 0 : (times.length * 1000) / lastMs;
    },
    requests: ({ timestampsMs }) => timestampsMs.length,
  },
  concurrency_ramp: {
    check: ({ from, to, durationMs }) => {
      atLeastZero("concurrency at the start of the ramp", from);
      count("concurrency at the end of the ramp", to);
      atLeastZero("duration of the ramp", durationMs);
    },
    value: ({ to }) => to,
    countsConcurrency: true,
  },
  request_rate_ramp: {
    check: ({ from, to, durationMs }) => {
      atLeastZero("request rate at the start of the ramp", from);
      positive("request rate at the end of the ramp", to);
      atLeastZero("duration of the ramp", durationMs);
    },
    value: ({ to }) => to,
  },
  periodic_concurrency: {
    check: ({ start, end, step, responses }) => {
      count("periodic concurrency at the start", start);
      count("periodic concurrency at the end", end);
      count("step of the periodic concurrency", step);
      count("responses of a request period", responses);
    },
    value: ({ end }) => end,
    countsConcurrency: true,
    requests: ({ end }) => end,
    needsOneThread: true,
  },
  session_concurrency: {
    check: ({ value, sessions }) => {
      count("session concurrency", value);
      if (sessions.length < value)
        throw invalidOption(
          `session concurrency: expected data with at least ${value} sessions, got ${sessions.length}`,
        );
    },
    value: ({ value }) => value,
    countsConcurrency: true,
    requests: ({ sessions }) => sessions.reduce((sum, { turns }) => sum + turns.length, 0),
    needsOneThread: true,
  },
};

const modeOf = ({ mode }: LoadLevel) => MODES[mode] as LevelMode<LoadLevel>;

/** @throws TritonError INVALID_ARG for a level that cannot be sent. */
export const checkLevel = (level: LoadLevel): void => modeOf(level).check(level);
export const levelValue = (level: LoadLevel): number => modeOf(level).value(level);
export const countsConcurrency = (level: LoadLevel): boolean => modeOf(level).countsConcurrency ?? false;
export const requestsOfLevel = (level: LoadLevel): number | undefined => modeOf(level).requests?.(level);
export const needsOneThread = (level: LoadLevel): boolean => modeOf(level).needsOneThread ?? false;

function count(what: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1)
    throw invalidOption(`${what}: expected a whole number of at least 1, got ${value}`);
}

function positive(what: string, value: number): void {
  if (!(Number.isFinite(value) && value > 0))
    throw invalidOption(`${what}: expected a number above 0, got ${value}`);
}

function atLeastZero(what: string, value: number): void {
  if (!(Number.isFinite(value) && value >= 0))
    throw invalidOption(`${what}: expected a number of at least 0, got ${value}`);
}

export type ConcurrencyGoal = ConcurrencyLevel | ConcurrencyRampLevel;

export interface ThreadShare {
  readonly index: number;
  readonly count: number;
}

/** Requests in flight of all threads, `elapsedMs` after the start of the level. */
export function concurrencyAt(level: ConcurrencyGoal, elapsedMs: number): number {
  if (level.mode === "concurrency") return level.value;
  const { from, to, durationMs } = level;
  if (elapsedMs >= durationMs) return to;
  return Math.round(from + ((to - from) * Math.max(0, elapsedMs)) / durationMs);
}

export function nextConcurrencyChange(level: ConcurrencyGoal, elapsedMs: number): number | undefined {
  if (level.mode === "concurrency" || elapsedMs >= level.durationMs) return undefined;
  const { from, to, durationMs } = level;
  if (from === to) return undefined;
  const msPerStep = durationMs / Math.abs(to - from);
  return Math.min(durationMs, elapsedMs + msPerStep);
}

/** The part of a whole number that one thread gets. The parts of all threads add up to the number. */
export function shareOf(total: number, { index, count }: ThreadShare): number {
  return Math.floor((total * (index + 1)) / count) - Math.floor((total * index) / count);
}

/**
 * Requests that a thread sends of `count`, in proportion to its part of the concurrency: threads without a part send
 * none.
 */
export function countShare(
  count: number,
  concurrency: number,
  { index, count: threads }: ThreadShare,
): number {
  const before = Math.floor((concurrency * index) / threads);
  const after = Math.floor((concurrency * (index + 1)) / threads);
  return Math.floor((count * after) / concurrency) - Math.floor((count * before) / concurrency);
}
