import { Random } from "../../packages/perf/src/data/random.js";

/** A model under a kind of load, with a latency target. */
export interface Scenario {
  readonly name: string;
  /** Length of a run: enough for a thousand batches. */
  readonly requests: number;
  /** A batch of n rows takes `fixedMs + perRowMs n` on average. */
  readonly fixedMs: number;
  readonly perRowMs: number;
  /** Relative deviation of single batches. */
  readonly noise: number;
  /** Factors on all durations, one for each equal part of the run. */
  readonly drift: readonly number[];
  readonly maxBatchSize: number;
  readonly instances: number;
  /** Time within which 99% of the requests must be answered. */
  readonly targetMs: number;
  /** `bursts`: one fifth of the time has five times the rate of the rest. */
  readonly arrivals: "poisson" | "bursts";
}

const PLAIN = { noise: 0, drift: [1], instances: 1, targetMs: 50, arrivals: "poisson" } as const;

/** Starting a batch is expensive, a row in it is cheap. */
const GPU_LIKE = { ...PLAIN, requests: 24_000, fixedMs: 10, perRowMs: 0.1, maxBatchSize: 128 };
/** A row costs nearly the same in any batch. */
const CPU_LIKE = { ...PLAIN, requests: 10_000, fixedMs: 1, perRowMs: 2, maxBatchSize: 32 };

const VARIANTS: readonly (Partial<Scenario> & { readonly name: string })[] = [
  { name: "steady" },
  { name: "noise", noise: 0.1 },
  { name: "drift", noise: 0.05, drift: [1, 1.25, 1] },
  { name: "bursts", arrivals: "bursts" },
  { name: "two instances", instances: 2 },
  { name: "two instances, bursts", instances: 2, noise: 0.1, arrivals: "bursts" },
];

/** All compared scenarios. */
export const SCENARIOS: readonly Scenario[] = Object.entries({ GPU: GPU_LIKE, CPU: CPU_LIKE }).flatMap(
  ([kind, model]) =>
    VARIANTS.map((variant) => ({ ...model, ...variant, name: `${kind}-like, ${variant.name}` })),
);

/** Requests per millisecond of instances that never rest, in the largest batches. */
export function capacity({ fixedMs, perRowMs, maxBatchSize, instances }: Scenario): number {
  return (instances * maxBatchSize) / (fixedMs + perRowMs * maxBatchSize);
}

/** Arrival times of requests, `rate` per millisecond on average. */
export function* arrivalTimes(scenario: Scenario, rate: number, seed: number): Generator<number> {
  const random = new Random(seed);
  const { targetMs, arrivals } = scenario;
  if (arrivals === "poisson") {
    for (let at = 0; ; ) {
      at += random.exponential() / rate;
      yield at;
    }
  }
  const quietRate = (rate * 5) / 9;
  let start = 0;
  for (let bursting = false; ; bursting = !bursting) {
    const end = start + (bursting ? targetMs : 4 * targetMs);
    const phaseRate = bursting ? 5 * quietRate : quietRate;
    for (let at = start; ; ) {
      at += random.exponential() / phaseRate;
      if (at >= end) break;
      yield at;
    }
    start = end;
  }
}

/** Duration of each batch. */
export class Durations {
  readonly #random: Random;

  constructor(
    private readonly scenario: Scenario,
    seed: number,
  ) {
    this.#random = new Random(seed);
  }

  /** Milliseconds of a batch, at a point of the run between 0 and 1. */
  next(rows: number, progress: number): number {
    const { fixedMs, perRowMs, noise, drift } = this.scenario;
    const factor = drift[Math.min(drift.length - 1, Math.floor(progress * drift.length))]!;
    const deviation = noise === 0 ? 1 : Math.exp(noise * this.#random.normal() - (noise * noise) / 2);
    return (fixedMs + perRowMs * rows) * factor * deviation;
  }
}
