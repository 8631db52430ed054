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
}

/** Figures of a variant under one load. */
export interface VariantRun {
  /** Rows of a request. */
  readonly batchSize: number;
  /** Threads of a session; 0 for the default. */
  readonly threads: number;
  /** Requests in flight. */
  readonly concurrency: number;
  /** Rows a second. */
  readonly rate: number;
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
  { level, models, spread = 0 }: LevelRun,
  batchSize: number,
  threads: number,
): VariantRun {
  const [run] = Object.values(models);
  const { figures } = run!;
  return {
    batchSize,
    threads,
    concurrency: level.value,
    rate: figures.perf_throughput,
    latencyMs: figures.perf_latency_avg,
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

/** The run that counts for a goal: the fastest answer, or the most rows a second. Undefined if none was measured. */
export function bestRunFor(
  { runs }: VariantReport,
  goal: OptimizeGoal,
  { latencyBudgetMs }: VariantLimits,
): VariantRun | undefined {
  const allowed = runs.filter(({ p99Ms }) => latencyBudgetMs === undefined || p99Ms <= latencyBudgetMs);
  const better = (a: VariantRun, b: VariantRun) =>
    goal === "latency" ? a.latencyMs < b.latencyMs : a.rate > b.rate;
  return allowed.reduce<VariantRun | undefined>(
    (best, run) => (best === undefined || better(run, best) ? run : best),
    undefined,
  );
}

/** The variant that a goal chooses, the run that counts, and why. */
export interface VariantChoice {
  readonly variant: VariantReport;
  readonly run: VariantRun | undefined;
  readonly reason: string;
}

/**
 * Chooses a variant: among those without a fault and within the limits, the one that is best for the goal. Variants that
 * are as good, within {@link EQUAL} or the noise of the measurement up to 5%, are decided by their size.
 */
export function chooseVariant(
  variants: readonly VariantReport[],
  goal: OptimizeGoal,
  limits: VariantLimits,
): VariantChoice | undefined {
  const able = variants.filter(
    ({ fault, bytes }) => fault === undefined && (limits.maxBytes === undefined || bytes <= limits.maxBytes),
  );
  const entries = able
    .map((variant) => ({ variant, run: bestRunFor(variant, goal, limits) }))
    .filter(({ run }) => run !== undefined || (goal === "size" && limits.latencyBudgetMs === undefined));
  if (entries.length === 0) return undefined;
  const cost = ({ variant, run }: (typeof entries)[number]) =>
    goal === "size" ? variant.bytes : goal === "latency" ? run!.latencyMs : 1 / run!.rate;
  const least = Math.min(...entries.map(cost));
  const equal = entries.filter((entry) => cost(entry) <= least * (1 + (goal === "size" ? 0 : EQUAL)));
  const chosen = equal.toSorted((a, b) => a.variant.bytes - b.variant.bytes || cost(a) - cost(b))[0]!;
  return { ...chosen, reason: reasonOf(chosen, entries, goal, equal.length) };
}

function reasonOf(
  { variant, run }: { readonly variant: VariantReport; readonly run: VariantRun | undefined },
  entries: readonly { readonly variant: VariantReport; readonly run: VariantRun | undefined }[],
  goal: OptimizeGoal,
  equal: number,
): string {
  const original = entries.find((entry) => entry.variant.name === "original");
  const among = `of ${entries.length} forms that are within the limits`;
  const size = `${(variant.bytes / (original?.variant.bytes ?? variant.bytes)).toFixed(2)} times the original's size`;
  const tie = equal > 1 ? "; others are as fast, and larger" : "";
  if (goal === "size" || run === undefined) return `smallest ${among}: ${size}`;
  const compared = original?.run;
  if (goal === "latency") {
    const against =
      compared === undefined
        ? ""
        : `, ${(run.latencyMs / compared.latencyMs).toFixed(2)} times the original's`;
    return `lowest latency ${among}: ${run.latencyMs.toPrecision(3)} ms with ${rows(run.batchSize)}${against}, ${size}${tie}`;
  }
  const against =
    compared === undefined ? "" : `, ${(run.rate / compared.rate).toFixed(2)} times the original's`;
  return `highest rate ${among}: ${run.rate.toPrecision(4)} rows/s with ${rows(run.batchSize)}${against}, ${size}${tie}`;
}

const rows = (count: number) => `${count} row${count === 1 ? "" : "s"} a request`;

export function percent(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.01 ? 3 : 1)}%` : "infinitely";
}
