import type { AnalyzeLevel, LevelRun } from "./figures.js";
import { failurePercent, type SearchGoal } from "./goal.js";

/** Chooses the next level of a candidate from those that are measured; undefined ends its measurement. */
export type LevelWalk = (runs: readonly LevelRun[]) => AnalyzeLevel | undefined;

/** When a walk over rising levels ends. */
export interface LevelWalkOptions {
  /** Ends where the throughput no longer rises. */
  readonly endsEarly: boolean;
  /** Ends at the first level that breaks the constraints after one that meets them. */
  readonly endsAtLimit: boolean;
}

/** Values over which the throughput has to rise, and the least rise as a share. Both are Model Analyzer's. */
const PLATEAU = { values: 4, rise: 0.05 } as const;

/** Levels that are measured at most between the last one that meets the constraints and the first that does not. */
const BISECTIONS = 5;

/** Least distance of two request rates that are bisected, as a share. */
const NEAREST_RATES = 0.01;

/** Measures levels in their order. */
export function allLevels(levels: readonly AnalyzeLevel[]): LevelWalk {
  return (runs) => levels.find((level) => runAt(runs, level) === undefined);
}

/**
 * Measures rising levels, then bisects between the last level that meets the constraints and the first one that does
 * not, as Model Analyzer does.
 */
export function risingLevels(
  levels: readonly AnalyzeLevel[],
  goal: SearchGoal,
  options: LevelWalkOptions,
): LevelWalk {
  let bisections = 0;
  return (runs) => {
    const next = nextOf(levels, runs, goal, options);
    if (next !== undefined) return next;
    return bisections++ < BISECTIONS ? middleOf(runs, goal) : undefined;
  };
}

/** The throughput of the last values of an axis exceeds that of the first of them by 5% at most. */
export function isPlateau(throughputs: readonly number[]): boolean {
  if (throughputs.length < PLATEAU.values) return false;
  const last = throughputs.slice(-PLATEAU.values);
  const [first] = last;
  return (Math.max(...last) - first!) / first! <= PLATEAU.rise;
}

/** Inferences a second of all loaded models. */
export function throughputOf({ models }: LevelRun): number {
  return Object.values(models).reduce((sum, { figures }) => sum + figures.perf_throughput, 0);
}

function nextOf(
  levels: readonly AnalyzeLevel[],
  runs: readonly LevelRun[],
  goal: SearchGoal,
  { endsEarly, endsAtLimit }: LevelWalkOptions,
): AnalyzeLevel | undefined {
  const throughputs: number[] = [];
  let hasMet = false;
  for (const level of levels) {
    const run = runAt(runs, level);
    if (run === undefined) return level;
    throughputs.push(throughputOf(run));
    const meets = failurePercent(run, goal) === 0;
    if ((endsEarly && isPlateau(throughputs)) || (endsAtLimit && hasMet && !meets)) return undefined;
    hasMet ||= meets;
  }
  return undefined;
}

/** The level in the middle of the lowest gap between one that meets the constraints and one that does not. */
function middleOf(runs: readonly LevelRun[], goal: SearchGoal): AnalyzeLevel | undefined {
  const rising = runs.toSorted((a, b) => a.level.value - b.level.value);
  const meets = rising.map((run) => failurePercent(run, goal) === 0);
  const last = meets.findIndex((met, i) => met && meets[i + 1] === false);
  if (last === -1) return undefined;
  const { level: low } = rising[last]!;
  const { level: high } = rising[last + 1]!;
  const isWhole = low.mode === "concurrency";
  const value = isWhole ? Math.floor((low.value + high.value) / 2) : (low.value + high.value) / 2;
  const isTooNear = isWhole ? value <= low.value : high.value - low.value < NEAREST_RATES * low.value;
  return isTooNear ? undefined : { ...low, value };
}

export function runAt(runs: readonly LevelRun[], { mode, value }: AnalyzeLevel): LevelRun | undefined {
  return runs.find(({ level }) => level.mode === mode && level.value === value);
}
