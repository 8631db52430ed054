import type { LevelResult } from "./level-result.js";
import { countsConcurrency } from "./level-result.js";

/** Shares from which the generator may have been the bottleneck. */
const LIMITS = { eventLoop: 0.9, overhead: 0.5, delayed: 0.01 } as const;

/** Warnings that a level may have measured the generator instead of the server, with what to do. */
export function generatorWarnings({ level, figures }: LevelResult): string[] {
  const warnings: string[] = [];
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  if (figures.overhead > LIMITS.overhead) {
    warnings.push(
      "Perf Analyzer is not able to keep up with the desired load. The results may not be accurate. " +
        `Requests waited for the generator for ${percent(figures.overhead)} of the time; try a higher --max-threads.`,
    );
  }
  if (figures.eventLoopUtilization > LIMITS.eventLoop) {
    warnings.push(
      `A thread of the generator was busy for ${percent(figures.eventLoopUtilization)} of the time, so the generator ` +
        "may be the bottleneck; try a higher --max-threads, or another machine for it.",
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
