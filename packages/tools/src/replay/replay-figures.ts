import type { SimulationResult } from "../simulate/simulate.js";
import type { SimulatedBatch } from "../simulate/simulated-backend.js";
import type { Recording } from "./recording.js";

/** Figures of a recording, or of its replay with a configuration. */
export interface ReplayFigures {
  /** Requests that were answered. */
  readonly answered: number;
  /** Number of requests that failed, by error text. */
  readonly failures: Readonly<Record<string, number>>;
  /** Answered requests a second. */
  readonly throughput: number;
  /** Milliseconds from arrival to response. */
  readonly latencyMs: Readonly<Record<"mean" | "p50" | "p90" | "p95" | "p99" | "max", number>>;
  readonly batches: number;
  /** Mean number of rows of a batch. */
  readonly meanBatchRows: number;
  /** Number of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  readonly instances: number;
  /** Share of the time in which the instances worked, 0 to 1. */
  readonly busy: number;
}

/** Figures of what was recorded. */
export function recordedFigures({ latenciesMs, batches, instances, durationMs }: Recording): ReplayFigures {
  const cuts: Record<string, number> = {};
  for (const { cut } of batches) if (cut !== undefined) cuts[cut] = (cuts[cut] ?? 0) + 1;
  return figuresOf({ latenciesMs, batches, instances, durationMs, cuts, failures: new Map() });
}

/** Figures of a replay. `respondMs` is the time that the server needs from the end of a batch to the response. */
export function predictedFigures(result: SimulationResult, respondMs: number): ReplayFigures {
  const latenciesMs = result.latenciesMs.map((one) => one + respondMs);
  const cuts = Object.fromEntries(Object.entries(result.cuts).filter(([, count]) => count > 0));
  return figuresOf({ ...result, latenciesMs, cuts });
}

function figuresOf(run: {
  readonly latenciesMs: Float64Array;
  readonly batches: readonly Pick<SimulatedBatch, "rows" | "startMs" | "endMs">[];
  readonly instances: number;
  readonly durationMs: number;
  readonly cuts: Readonly<Record<string, number>>;
  readonly failures: ReadonlyMap<string, number>;
}): ReplayFigures {
  const { batches, instances, durationMs, cuts } = run;
  const sorted = run.latenciesMs.filter((one) => !Number.isNaN(one)).sort();
  const answered = sorted.length;
  const at = (percentile: number) =>
    sorted[Math.floor((percentile / 100) * (answered - 1) + 0.5)] ?? Number.NaN;
  let [rows, busyMs] = [0, 0];
  for (const batch of batches) {
    rows += batch.rows;
    busyMs += batch.endMs - batch.startMs;
  }
  return {
    answered,
    failures: Object.fromEntries(run.failures),
    throughput: durationMs > 0 ? (1000 * answered) / durationMs : 0,
    latencyMs: {
      mean: sorted.reduce((sum, one) => sum + one, 0) / answered,
      p50: at(50),
      p90: at(90),
      p95: at(95),
      p99: at(99),
      max: sorted.at(-1) ?? Number.NaN,
    },
    batches: batches.length,
    meanBatchRows: batches.length === 0 ? 0 : rows / batches.length,
    cuts,
    instances,
    busy: durationMs > 0 ? Math.min(1, busyMs / (instances * durationMs)) : 0,
  };
}
