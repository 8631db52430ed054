import { type LoadLevel, requestsOfLevel } from "../load/load-level.js";
import { countsConcurrency, type LevelResult, meetsLimit } from "./level-result.js";
import { firstOf, type MeasureSession, measureLevel, measurePhase } from "./measure-level.js";

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
 *
 * @param drained is called after a level that does not meet the limit, before a lower one is measured
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

/** A part of a ramp or of a spike. */
interface LoadPhase {
  readonly name: string;
  readonly level: LoadLevel;
  readonly durationMs: number;
}

/** The levels to measure, in their order. */
export type LoadPlan =
  | { readonly kind: "single"; readonly level: LoadLevel }
  | { readonly kind: "sweep"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "search"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "phases"; readonly phases: readonly LoadPhase[] };
