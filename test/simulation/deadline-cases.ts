import { Random } from "../../packages/perf/src/data/random.js";

/** Requests of one kind: their share of the load, and the time within which each must be answered. */
export interface RequestClass {
  readonly share: number;
  readonly limitMs: number;
}

/** A model under a load whose classes have limits of their own. */
export interface DeadlineCase {
  readonly name: string;
  /** A batch of n rows takes `fixedMs + perRowMs n` on average. */
  readonly fixedMs: number;
  readonly perRowMs: number;
  readonly maxBatchSize: number;
  /** Relative deviation of single batches. */
  readonly noise: number;
  readonly instances: number;
  readonly classes: readonly RequestClass[];
  /** `bursts`: half a second at 1.6 times the rate, half a second at 0.4 times. */
  readonly arrivals: "poisson" | "bursts";
}

/** A request of a run. */
export interface Arrival {
  readonly atMs: number;
  /** Index in the list of classes. */
  readonly kind: number;
}

const PLAIN = { noise: 0, instances: 1, arrivals: "poisson" } as const;
const GPU_LIKE = { ...PLAIN, fixedMs: 10, perRowMs: 0.5, maxBatchSize: 32 };
const CPU_LIKE = { ...PLAIN, fixedMs: 1, perRowMs: 4, maxBatchSize: 16 };

/** A tight class with 30% of the requests, and a loose one. */
function tightAndLoose(tightMs: number, looseMs: number): readonly RequestClass[] {
  return [
    { share: 0.3, limitMs: tightMs },
    { share: 0.7, limitMs: looseMs },
  ];
}

/** The cases of the table in docs/deadlines.md. */
export const DEADLINE_CASES: readonly DeadlineCase[] = [
  { name: "10 + 0.5 n ms; 50, 500 ms", ...GPU_LIKE, classes: tightAndLoose(50, 500) },
  { name: "1 + 4 n ms; 60, 600 ms", ...CPU_LIKE, classes: tightAndLoose(60, 600) },
  {
    name: "1 + 4 n ms; 60, 600 ms; bursts",
    ...CPU_LIKE,
    classes: tightAndLoose(60, 600),
    arrivals: "bursts",
  },
  {
    name: "10 + 0.5 n ms; 40, 120, 1000 ms; bursts",
    ...GPU_LIKE,
    classes: [
      { share: 1 / 3, limitMs: 40 },
      { share: 1 / 3, limitMs: 120 },
      { share: 1 / 3, limitMs: 1000 },
    ],
    arrivals: "bursts",
  },
];

/** Further cases, so that a rule is not made for the four above. */
export const OTHER_CASES: readonly DeadlineCase[] = [
  {
    name: "10 + 0.5 n ms; 50, 500 ms; 15% noise",
    ...GPU_LIKE,
    noise: 0.15,
    classes: tightAndLoose(50, 500),
  },
  {
    name: "2 + 1 n ms, up to 64; 80, 300 ms",
    ...PLAIN,
    fixedMs: 2,
    perRowMs: 1,
    maxBatchSize: 64,
    classes: tightAndLoose(80, 300),
  },
  {
    name: "5 + 2 n ms, up to 8; one limit of 60 ms",
    ...PLAIN,
    fixedMs: 5,
    perRowMs: 2,
    maxBatchSize: 8,
    classes: [{ share: 1, limitMs: 60 }],
  },
  {
    name: "20 + 1 n ms, up to 16; one limit of 60 ms",
    ...PLAIN,
    fixedMs: 20,
    perRowMs: 1,
    maxBatchSize: 16,
    classes: [{ share: 1, limitMs: 60 }],
  },
  {
    name: "8 + 0.3 n ms, up to 16; 21, 133 ms; 10% noise",
    ...PLAIN,
    fixedMs: 8,
    perRowMs: 0.3,
    maxBatchSize: 16,
    noise: 0.1,
    classes: [
      { share: 0.64, limitMs: 21 },
      { share: 0.36, limitMs: 133 },
    ],
  },
  {
    name: "5 + 1.7 n ms, two instances; 48, 253, 924, 3071 ms; bursts; 10% noise",
    ...PLAIN,
    fixedMs: 5,
    perRowMs: 1.7,
    maxBatchSize: 32,
    noise: 0.1,
    instances: 2,
    classes: [48, 253, 924, 3071].map((limitMs) => ({ share: 0.25, limitMs })),
    arrivals: "bursts",
  },
  {
    name: "20 ms, one by one; 100, 1000 ms",
    ...PLAIN,
    fixedMs: 0,
    perRowMs: 20,
    maxBatchSize: 1,
    classes: [
      { share: 0.5, limitMs: 100 },
      { share: 0.5, limitMs: 1000 },
    ],
  },
  {
    name: "10 + 0.5 n ms, two instances; 40, 400 ms; bursts",
    ...GPU_LIKE,
    instances: 2,
    classes: [
      { share: 0.5, limitMs: 40 },
      { share: 0.5, limitMs: 400 },
    ],
    arrivals: "bursts",
  },
];

/** Requests per millisecond of instances that never rest, in the largest batches. */
export function fullBatchCapacity({ fixedMs, perRowMs, maxBatchSize, instances }: DeadlineCase): number {
  return (instances * maxBatchSize) / (fixedMs + perRowMs * maxBatchSize);
}

const PHASE_MS = 500;
const BURST = 1.6;
const LULL = 0.4;

/** The requests of a run, in order. @param rate requests per millisecond on average */
export function arrivalsOf(
  { classes, arrivals }: DeadlineCase,
  rate: number,
  seed: number,
  durationMs: number,
): Arrival[] {
  const random = new Random(seed);
  const all: Arrival[] = [];
  const add = (startMs: number, endMs: number, phaseRate: number): void => {
    for (let atMs = startMs; ; ) {
      atMs += random.exponential() / phaseRate;
      if (atMs >= endMs) return;
      let point = random.uniform();
      let kind = 0;
      while (kind < classes.length - 1 && point >= classes[kind]!.share) point -= classes[kind++]!.share;
      all.push({ atMs, kind });
    }
  };
  if (arrivals === "poisson") add(0, durationMs, rate);
  else {
    for (let i = 0; i * PHASE_MS < durationMs; i++) {
      add(i * PHASE_MS, (i + 1) * PHASE_MS, rate * (i % 2 === 0 ? BURST : LULL));
    }
  }
  return all;
}

/** The duration of each batch of a run. */
export function durationsOf(
  { fixedMs, perRowMs, noise }: DeadlineCase,
  seed: number,
): (rows: number) => number {
  const random = new Random(seed);
  return (rows) => {
    const deviation = noise === 0 ? 1 : Math.exp(noise * random.normal() - (noise * noise) / 2);
    return (fixedMs + perRowMs * rows) * deviation;
  };
}
