import { TritonError } from "@tritonjs/protocol";
import {
  type AnalyzeLevel,
  type AnalyzeMachine,
  type Candidate,
  type CandidateResult,
  eachMetric,
  failurePercent,
  type LevelRun,
  type ModelRun,
  type SearchGoal,
} from "./candidate.js";

export interface RunContext {
  readonly machine: AnalyzeMachine;
  readonly signal: AbortSignal;
  now(): number;
}

export async function runCandidate(
  { machine, signal, now }: RunContext,
  candidate: Candidate,
  walk: LevelWalk,
  { before = [], share }: { readonly before?: readonly LevelRun[]; readonly share?: number } = {},
): Promise<Omit<TurnEnd, "turn"> & { readonly loadMs: number }> {
  const runs = [...before];
  const begin = now();
  let loadMs = 0;
  let isPartial = false;
  try {
    const opened = await machine.open(candidate);
    loadMs = now() - begin;
    try {
      for (let level = walk(runs); level !== undefined; level = walk(runs)) {
        isPartial = signal.aborted;
        if (isPartial) break;
        const run = await opened.measure(level, signal, share);
        isPartial = signal.aborted;
        if (isPartial) break;
        runs.push(run);
      }
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (signal.aborted) return { runs, isPartial: true, loadMs };
    if (!TritonError.is(error)) throw error;
    return { runs, fault: error.message, isPartial, loadMs };
  }
  return { runs, isPartial, loadMs };
}

/** Chooses the next level of a candidate from those that are measured; undefined ends its measurement. */
export type LevelWalk = (runs: readonly LevelRun[]) => AnalyzeLevel | undefined;

interface LevelWalkOptions {
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

export function throughputOf({ models }: LevelRun): number {
  return Object.values(models).reduce((sum, { figures }) => sum + figures.perf_throughput, 0);
}

/** Range of throughputs of one configuration, as a share of their mean: how much of a difference may be noise. */
export function spreadOf(throughputs: readonly number[]): number {
  const mean = throughputs.reduce((sum, one) => sum + one, 0) / throughputs.length;
  return mean > 0 ? (Math.max(...throughputs) - Math.min(...throughputs)) / mean : 0;
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

export function withRound(result: CandidateResult, round: readonly LevelRun[]): CandidateResult {
  const runs = result.runs.map((run) => {
    const other = runAt(round, run.level);
    return other === undefined ? run : meanRun(run, other);
  });
  return { ...result, runs, rounds: [...(result.rounds ?? [result.runs]), round] };
}

function meanOfTurns(turns: readonly (readonly LevelRun[])[]): LevelRun[] {
  const [first = [], ...others] = turns;
  return first.map((run) => {
    const all = others.flatMap((turn) => runAt(turn, run.level) ?? []);
    const { measurements: _, ...mean } = all.reduce(meanRun, run);
    return all.length === 0 ? mean : { ...mean, spread: spreadOf([run, ...all].map(throughputOf)) };
  });
}

export function firstRound({ rounds, ...rest }: CandidateResult): CandidateResult {
  return rounds === undefined ? rest : { ...rest, runs: rounds[0]! };
}

/**
 * The mean of two measurements of one level, weighted by how many measurements each stands for. The memory is the
 * larger one, and the processor time their sum.
 */
export function meanRun(a: LevelRun, b: LevelRun): LevelRun {
  const [countA, countB] = [a.measurements ?? 1, b.measurements ?? 1];
  const mean = (one: number, other: number) => (countA * one + countB * other) / (countA + countB);
  const models = Object.entries(a.models).map(([name, run]): [string, ModelRun] => {
    const other = b.models[name];
    if (other === undefined) return [name, run];
    const figures = eachMetric((tag) => {
      const [one, another] = [run.figures[tag], other.figures[tag]];
      return tag === "cpu_used_ram" ? Math.max(one, another) : mean(one, another);
    });
    const meanOf = (key: "medianMs" | "meanRows" | "batchesPerSecond") => {
      const [one, another] = [run[key], other[key]];
      return one === undefined || another === undefined ? {} : { [key]: mean(one, another) };
    };
    const failures = run.failures + other.failures;
    const failureText = run.failureText ?? other.failureText;
    const further = {
      ...meanOf("medianMs"),
      ...meanOf("meanRows"),
      ...meanOf("batchesPerSecond"),
      failures,
    };
    return [name, { figures, ...further, ...(failureText !== undefined && { failureText }) }];
  });
  const spread = Math.max(a.spread ?? -1, b.spread ?? -1);
  const cpu = a.cpu && b.cpu && { ms: a.cpu.ms + b.cpu.ms, requests: a.cpu.requests + b.cpu.requests };
  return {
    level: a.level,
    models: Object.fromEntries(models),
    measurements: countA + countB,
    ...(spread >= 0 && { spread }),
    ...(cpu !== undefined && { cpu }),
  };
}

/** Most turns of a candidate. A change of the speed in the middle of a round then moves a figure by little. */
const MOST_TURNS = 6;

/** Share of a measurement in the first turn, which warms the program up and shows how long the candidate loads. */
const FIRST_SHARE = 1 / 12;

export interface Turn {
  readonly candidate: Candidate;
  readonly levels: readonly AnalyzeLevel[];
  /** The levels are not those of the search: the run shows how long batches take. */
  readonly isCalibration?: boolean;
}

export interface TurnEnd {
  readonly turn: Turn;
  readonly runs: LevelRun[];
  readonly fault?: string;
  /** The search ended before its last turn. */
  readonly isPartial: boolean;
}

interface TurnContext extends RunContext {
  isOver(): boolean;
  onBegin(turn: Turn): void;
  /** Called after each turn with its share of a measurement: 0 for the first one, which does not count. */
  onTurn(share: number): void;
  onEnd(end: TurnEnd): Promise<void>;
}

interface Entry {
  readonly turn: Turn;
  readonly turns: (readonly LevelRun[])[];
  fault?: string;
}

/**
 * Number of turns after the first one. Candidates that load slowly have fewer turns, so that the time goes into
 * measuring. So do slow models: their turns last longer than their share, because each waits for enough answers.
 */
function turnCount(loadMs: number, measureMs: number, wholeMs: number | undefined): number {
  const byLoad = loadMs > 0 ? measureMs / FIRST_SHARE / loadMs : MOST_TURNS;
  const byAnswers = wholeMs === undefined || measureMs === 0 ? MOST_TURNS : wholeMs / measureMs;
  return Math.min(MOST_TURNS, Math.max(1, Math.floor(Math.min(byLoad, byAnswers))));
}

/**
 * Measures candidates in turns: each is loaded several times, and measured for a part of the time. The speed of a machine
 * may change for seconds, by its clock or by others that it serves. So it changes for all candidates alike.
 */
export async function runInTurns(context: TurnContext, turns: readonly Turn[]): Promise<void> {
  const entries = turns.map((turn): Entry => ({ turn, turns: [] }));
  const ended = new Set<Entry>();
  const end = async (entry: Entry, isPartial: boolean) => {
    ended.add(entry);
    const { turn, fault } = entry;
    if (fault === undefined && entry.turns.length === 0) return;
    const runs = fault === undefined ? meanOfTurns(entry.turns) : [];
    await context.onEnd({ turn, runs, isPartial, ...(fault !== undefined && { fault }) });
  };
  let [loadMs, measureMs] = [0, 0];
  let count = MOST_TURNS;
  for (let round = 0; round <= count; round++) {
    // Every other round goes back, so that no candidate is always the first.
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      if (ended.has(entry)) continue;
      if (context.isOver()) break;
      const { candidate, levels } = entry.turn;
      context.onBegin(entry.turn);
      const begin = context.now();
      const share = round === 0 ? FIRST_SHARE : 1 / count;
      const run = await runCandidate(context, candidate, allLevels(levels), { share });
      context.onTurn(round === 0 ? 0 : share);
      if (run.isPartial) break;
      if (run.fault !== undefined) {
        entry.fault = run.fault;
        await end(entry, false);
      } else if (round > 0) {
        entry.turns.push(run.runs);
        if (round === count) await end(entry, false);
      } else {
        loadMs = Math.max(loadMs, run.loadMs);
        measureMs = Math.max(measureMs, context.now() - begin - run.loadMs);
      }
    }
    if (round === 0) count = turnCount(loadMs, measureMs, context.machine.wholeMs);
    if (context.isOver()) break;
  }
  for (const entry of entries) if (!ended.has(entry)) await end(entry, true);
}
