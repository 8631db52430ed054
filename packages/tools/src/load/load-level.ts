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
export interface ConcurrencyLevel {
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
export interface ConcurrencyRampLevel {
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
