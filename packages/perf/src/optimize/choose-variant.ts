import type { LayerError, VariantComparison } from "@tritonjs/backends/optimize";
import type { LevelRun } from "../analyze/candidate.js";

/** Property in which the chosen variant is best, among those that are accurate enough. */
export type OptimizeGoal = "latency" | "rate" | "size";

/** Limits of a variant's errors, and of its latency and file. */
export interface VariantLimits {
  /** Points of accuracy that a variant may lose, where labels are given. @default 0.5 */
  readonly accuracyFloor?: number;
  /** Largest relative error of an output, where no labels are given. @default 0.1 */
  readonly maxError?: number;
  /** Largest p99 latency of a request in milliseconds. @default none */
  readonly latencyBudgetMs?: number;
  /** Largest size of the written files in bytes. @default none */
  readonly maxBytes?: number;
  /** Largest memory of the program that serves a form, in megabytes. @default none */
  readonly maxMemoryMb?: number;
}

/** Figures of a variant under one load. */
export interface VariantRun {
  /** Rows of a request. */
  readonly batchSize: number;
  /** Threads of a session; 0 for the default. */
  readonly threads: number;
  /** Requests in flight. */
  readonly concurrency: number;
  /** Rows a second of the clock. Other programs on the machine make it smaller. */
  readonly rate: number;
  /** Processor time of the whole program for one row, by which the goal `rate` compares. */
  readonly cpuMs: number;
  /** Latency that half of the requests do not exceed, by which the goal `latency` compares. */
  readonly latencyMs: number;
  readonly p99Ms: number;
  readonly memoryMb: number;
  /** Range of the rates while it was measured, as a share of their mean. */
  readonly spread: number;
}

/** A form of the model, with all that is known of it. */
export interface VariantReport {
  readonly name: string;
  readonly text: string;
  /** Layers that were changed. */
  readonly layers: readonly string[];
  /** Layers that were left as they are, because a variant without them broke the limits. */
  readonly kept: readonly string[];
  /** Bytes of its files. */
  readonly bytes: number;
  readonly comparison?: VariantComparison;
  /** Time of the processor for one row, run alone on the samples. */
  readonly cpuMs?: number;
  /** The layers that add most of its error, if it breaks a limit. */
  readonly worstLayers: readonly LayerError[];
  readonly runs: readonly VariantRun[];
  /** Why it cannot be chosen. */
  readonly fault?: string;
}

/** Rates that differ by less count as equal: the smaller file is chosen. */
const EQUAL = 0.02;

export function runOf(
  { level, models, cpu, spread = 0 }: LevelRun,
  batchSize: number,
  threads: number,
): VariantRun {
  const [run] = Object.values(models);
  const { figures, medianMs = Number.NaN } = run!;
  return {
    batchSize,
    threads,
    concurrency: level.value,
    rate: figures.perf_throughput,
    cpuMs: cpu!.ms / cpu!.requests / batchSize,
    latencyMs: medianMs,
    p99Ms: figures.perf_latency_p99,
    memoryMb: figures.cpu_used_ram,
    spread,
  };
}

/** The limit that a comparison breaks, as text; undefined if it breaks none. */
export function errorFault(
  { outputs, accuracy }: VariantComparison,
  original: VariantComparison,
  { accuracyFloor = 0.5, maxError = 0.1 }: VariantLimits,
): string | undefined {
  if (accuracy !== undefined && original.accuracy !== undefined) {
    const lost = (original.accuracy - accuracy) * 100;
    if (lost <= accuracyFloor + 1e-9) return undefined;
    return `accuracy ${percent(accuracy)} is ${lost.toFixed(1)} points below the original's ${percent(original.accuracy)}: at most ${accuracyFloor} are allowed`;
  }
  const reals = outputs.filter(({ isReal }) => isReal);
  for (const { name, relative } of reals) {
    if (relative <= maxError) continue;
    return `output '${name}' differs by ${percent(relative)}: at most ${percent(maxError)} are allowed`;
  }
  if (reals.length > 0) return undefined;
  // Outputs of integers alone, such as classes, are compared as answers.
  const least = 1 - accuracyFloor / 100;
  const worst = outputs.find(({ agreement }) => !(agreement >= least - 1e-9));
  return (
    worst &&
    `output '${worst.name}' agrees in ${percent(worst.agreement)} of its elements: at least ${percent(least)} are needed`
  );
}

/**
 * The run that counts for a goal: the fastest answer, or the least processor time for a row. Undefined if none was
 * measured.
 */
export function bestRunFor(
  variant: VariantReport,
  goal: OptimizeGoal,
  limits: VariantLimits,
): VariantRun | undefined {
  const better = (a: VariantRun, b: VariantRun) =>
    goal === "latency" ? a.latencyMs < b.latencyMs : a.cpuMs < b.cpuMs;
  return bestOf(allowedRuns(variant, limits), better);
}

const bestOf = (runs: readonly VariantRun[], better: (a: VariantRun, b: VariantRun) => boolean) =>
  runs.reduce<VariantRun | undefined>(
    (best, run) => (best === undefined || better(run, best) ? run : best),
    undefined,
  );

/** A variant, and a run of it. */
export interface VariantEntry {
  readonly variant: VariantReport;
  readonly run: VariantRun | undefined;
}

/** The variant that a goal chooses, the run that counts, and why. */
export interface VariantChoice extends VariantEntry {
  readonly reason: string;
}

/** Runs that one measurement does not tell from the best: those that are worse by less than this share. */
const NEAR = 0.25;

/** Runs that are measured again at most. */
const MOST_LEADERS = 6;

/**
 * The runs near the best one, the best first. Each is a candidate for the choice, also those of one variant: the best of
 * many measurements is better by luck than it is.
 */
export function leadingRuns(
  variants: readonly VariantReport[],
  goal: OptimizeGoal,
  limits: VariantLimits,
): VariantEntry[] {
  if (goal === "size") return [];
  const entries = withinLimits(variants, limits)
    .flatMap((variant) => allowedRuns(variant, limits).map((run) => ({ variant, run })))
    .toSorted((a, b) => costOf(a, goal) - costOf(b, goal));
  const least = entries.length > 0 ? costOf(entries[0]!, goal) : 0;
  return entries.filter((entry) => costOf(entry, goal) * (1 - NEAR) <= least).slice(0, MOST_LEADERS);
}

const withinLimits = (variants: readonly VariantReport[], { maxBytes }: VariantLimits) =>
  variants.filter(({ fault, bytes }) => fault === undefined && (maxBytes === undefined || bytes <= maxBytes));

const allowedRuns = ({ runs }: VariantReport, { latencyBudgetMs, maxMemoryMb }: VariantLimits) =>
  runs.filter(
    ({ p99Ms, memoryMb }) =>
      (latencyBudgetMs === undefined || p99Ms <= latencyBudgetMs) &&
      (maxMemoryMb === undefined || memoryMb <= maxMemoryMb),
  );

/** Whether a form must be measured to be known to be within the limits. */
const limitsRuns = ({ latencyBudgetMs, maxMemoryMb }: VariantLimits) =>
  latencyBudgetMs !== undefined || maxMemoryMb !== undefined;

const costOf = ({ variant, run }: VariantEntry, goal: OptimizeGoal) =>
  goal === "size" ? variant.bytes : goal === "latency" ? run!.latencyMs : run!.cpuMs;

/**
 * Chooses a variant: among those without a fault and within the limits, the one that is best for the goal. Variants that
 * are as good, within {@link EQUAL}, are decided by their size.
 *
 * The goal `rate` compares processor time, because the clock of a busy machine shows who got its processors. Threads
 * only add to that time, so the number of threads of the chosen form is decided by the clock.
 */
export function chooseVariant(
  variants: readonly VariantReport[],
  goal: OptimizeGoal,
  limits: VariantLimits,
): VariantChoice | undefined {
  const entries = withinLimits(variants, limits)
    .map((variant) => ({ variant, run: bestRunFor(variant, goal, limits) }))
    .filter(({ run }) => run !== undefined || (goal === "size" && !limitsRuns(limits)));
  if (entries.length === 0) return undefined;
  const cost = (entry: VariantEntry) => costOf(entry, goal);
  const least = Math.min(...entries.map(cost));
  const equal = entries.filter((entry) => cost(entry) <= least * (1 + (goal === "size" ? 0 : EQUAL)));
  const { variant, run } = equal.toSorted(
    (a, b) => a.variant.bytes - b.variant.bytes || cost(a) - cost(b),
  )[0]!;
  const chosen = { variant, run: goal === "rate" ? withBestThreads(variant, limits) : run };
  return { ...chosen, reason: reasonOf(chosen, { variants, entries, equal: equal.length }, goal) };
}

function withBestThreads(variant: VariantReport, limits: VariantLimits): VariantRun | undefined {
  const fastest = bestOf(allowedRuns(variant, limits), (a, b) => a.rate > b.rate);
  const runs = variant.runs.filter(({ threads }) => threads === fastest?.threads);
  return bestRunFor({ ...variant, runs }, "rate", limits);
}

function reasonOf(
  { variant, run }: VariantEntry,
  others: {
    readonly variants: readonly VariantReport[];
    readonly entries: readonly VariantEntry[];
    readonly equal: number;
  },
  goal: OptimizeGoal,
): string {
  const { variants, entries, equal } = others;
  const [original] = variants;
  const among = entries.length === 1 ? "of the only form that is" : `of ${entries.length} forms that are`;
  const within = `${among} within the limits`;
  const size = `${(variant.bytes / original!.bytes).toFixed(2)} times the original's size`;
  const tie = equal > 1 ? "; others are as fast, and larger" : "";
  if (goal === "size" || run === undefined) return `smallest ${within}: ${size}`;
  const compared = entries.find((entry) => entry.variant === original)?.run;
  if (goal === "latency") {
    const against =
      compared === undefined
        ? ""
        : `, ${(run.latencyMs / compared.latencyMs).toFixed(2)} times the original's`;
    return `lowest median latency ${within}: ${run.latencyMs.toPrecision(3)} ms with ${rows(run.batchSize)}${against}, ${size}${tie}`;
  }
  const against =
    compared === undefined ? "" : `, ${(compared.cpuMs / run.cpuMs).toFixed(2)} times the original's`;
  return `highest rate ${within}: ${(1000 / run.cpuMs).toPrecision(4)} rows a second of processor time with ${rows(run.batchSize)}${against}, ${size}${tie}`;
}

const rows = (count: number) => `${count} row${count === 1 ? "" : "s"} a request`;

export function percent(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.01 ? 3 : 1)}%` : "infinitely";
}
