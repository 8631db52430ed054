import type { LoadLevel } from "../load/load-level.js";
import type { RequestFigures } from "./request-figures.js";
import type { MetricFigures } from "./server/metrics-watch.js";
import type { ServerFigures } from "./server/server-figures.js";
import type { Instability } from "./stability.js";

/** Why a level could not be measured to its end. */
export type LevelFaultKind = "no requests" | "all failed" | "generator";

export interface LevelFault {
  readonly kind: LevelFaultKind;
  readonly text: string;
}

/** A window of a level, or a piece of it. Times are milliseconds. */
export interface WindowSummary {
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly throughput: number;
  readonly requestCount: number;
  readonly failureCount: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Mean time in the server's queue, where the server tells. */
  readonly queueMs?: number;
}

/** What was measured at one level of load. */
export interface LevelResult {
  readonly level: LoadLevel;
  /** Role of the level in a spike or a ramp, for instance "peak". */
  readonly phase?: string;
  /** Figures of the windows that count: the last three, or all of a ramp. */
  readonly figures: RequestFigures;
  /** What kept the level from being stable. Absent for stable levels, and where stability is not asked for. */
  readonly instability?: Instability;
  /** The latency exceeds the limit. */
  readonly overLimit: boolean;
  /** The measurement was interrupted in this level. */
  readonly interrupted: boolean;
  readonly fault?: LevelFault;
  /** The level from its start to its end, in pieces of a second or less. */
  readonly timeline: readonly WindowSummary[];
  /** Number of windows. */
  readonly trials: number;
  readonly server?: ServerFigures;
  readonly metrics?: MetricFigures;
}

/** A level that was measured to its end and is stable, or whose stability is not asked for. */
export function isStable({ instability, interrupted, fault }: LevelResult): boolean {
  return instability === undefined && !interrupted && fault === undefined;
}

/** The level is stable and its latency is within the limit. */
export function meetsLimit(result: LevelResult): boolean {
  return isStable(result) && !result.overLimit;
}

/** The number that reports show for a level: requests in flight, or requests a second. */
export function levelValue(level: LoadLevel): number {
  switch (level.mode) {
    case "concurrency":
    case "request_rate":
    case "session_concurrency":
      return level.value;
    case "request_intervals": {
      const total = level.gapsMicroseconds.reduce((sum, gap) => sum + gap, 0);
      return total === 0 ? 0 : (level.gapsMicroseconds.length * 1e6) / total;
    }
    case "fixed_schedule": {
      const lastMs = level.timestampsMs.at(-1) ?? 0;
      return lastMs === 0 ? 0 : (level.timestampsMs.length * 1000) / lastMs;
    }
    case "periodic_concurrency":
      return level.end;
    case "concurrency_ramp":
    case "request_rate_ramp":
      return level.to;
  }
}

const CONCURRENCY_MODES: ReadonlySet<LoadLevel["mode"]> = new Set([
  "concurrency",
  "concurrency_ramp",
  "periodic_concurrency",
  "session_concurrency",
]);

/** Whether a level counts requests in flight. The other levels count requests a second. */
export function countsConcurrency({ mode }: LoadLevel): boolean {
  return CONCURRENCY_MODES.has(mode);
}
