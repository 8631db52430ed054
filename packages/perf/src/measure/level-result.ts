import { availableParallelism } from "node:os";
import { countsConcurrency, type LoadLevel } from "../load/load-level.js";
import type { Instability, RequestFigures } from "./request-figures.js";
import type { MetricFigures, ServerFigures } from "./server-watch.js";

type LevelFaultKind = "no requests" | "all failed" | "generator";

export interface LevelFault {
  readonly kind: LevelFaultKind;
  readonly text: string;
}

/** A window of a level, or a piece of it. Times are milliseconds. */
export interface WindowSummary {
  readonly start: number;
  readonly end: number;
  readonly throughput: number;
  readonly requestCount: number;
  readonly failureCount: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly queueMs?: number;
}

export interface LevelResult {
  readonly level: LoadLevel;
  /** Role of the level in a spike or a ramp, for instance "peak". */
  readonly phase?: string;
  /** Figures of the windows that count: the last three, or all of a ramp. */
  readonly figures: RequestFigures;
  /** Why the level is not stable. Absent for stable levels, and where stability is not asked for. */
  readonly instability?: Instability;
  /** The latency exceeds the limit. */
  readonly overLimit: boolean;
  readonly interrupted: boolean;
  readonly fault?: LevelFault;
  /** The level from its start to its end, in pieces of a second or less. */
  readonly timeline: readonly WindowSummary[];
  readonly trials: number;
  readonly server?: ServerFigures;
  readonly metrics?: MetricFigures;
}

/** A level that was measured to its end and is stable, or whose stability is not asked for. */
export function isStable({ instability, interrupted, fault }: LevelResult): boolean {
  return instability === undefined && !interrupted && fault === undefined;
}

export function meetsLimit(result: LevelResult): boolean {
  return isStable(result) && !result.overLimit;
}

/** Shares from which the generator may have been the bottleneck. */
const LIMITS = { cpu: 0.9, eventLoop: 0.9, cores: 0.9, overhead: 0.5, delayed: 0.01 } as const;

/** Warnings that a level may have measured the generator instead of the server, with what to do. */
export function generatorWarnings({ level, figures }: LevelResult, cores = availableParallelism()): string[] {
  const warnings: string[] = [];
  if (figures.overhead > LIMITS.overhead) {
    warnings.push(
      "Perf Analyzer is not able to keep up with the desired load. The results may not be accurate. " +
        `Requests waited for the generator for ${percent(figures.overhead)} of the time; try a higher --max-threads.`,
    );
  }
  warnings.push(...threadWarnings(figures));
  if (cores > 1 && figures.cpuCores > LIMITS.cores * cores) {
    warnings.push(
      `The generator used ${figures.cpuCores.toFixed(1)} of the ${cores} CPU cores of this machine, so it may be the ` +
        "bottleneck, also for a server on this machine; start it on another machine.",
    );
  }
  if (!countsConcurrency(level) && figures.delayedShare > LIMITS.delayed) {
    warnings.push(
      "Perf Analyzer was not able to keep up with the desired request rate. " +
        `${percent(figures.delayedShare)} of the requests were delayed.`,
    );
  }
  return warnings;
}

/** An event loop can be busy without CPU time: its thread then waits for a core that other programs use. */
function threadWarnings({ cpuUtilization, eventLoopUtilization }: LevelResult["figures"]): string[] {
  const bottleneck = "so the generator may be the bottleneck";
  if (cpuUtilization > LIMITS.cpu) {
    return [
      `A thread of the generator used a CPU core for ${percent(cpuUtilization)} of the time, ${bottleneck}; try a ` +
        "higher --max-threads, or another machine for it.",
    ];
  }
  if (eventLoopUtilization <= LIMITS.eventLoop) return [];
  return [
    `A thread of the generator was busy for ${percent(eventLoopUtilization)} of the time, ${bottleneck}; try a ` +
      "higher --max-threads, or another machine for it.",
  ];
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
