import { TritonError } from "@tritonjs/protocol";
import { Random } from "../../packages/cli/src/data/random.js";
import { SharedCores } from "../../packages/cli/src/simulate/shared-cores.js";
import { SimulationClock } from "../../packages/cli/src/simulate/simulation-clock.js";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import { MachinePlan } from "../../packages/core/src/instance/machine-plan.js";
import { Heap } from "../../packages/core/src/scheduler/priority-queue.js";
import { type ClassOutcome, type LoadRun, worstShareInTime } from "./deadline-run.js";
import { type SimulatedMachine, SimulatedModel } from "./simulated-model.js";

/** A model on a machine with others. */
export interface MachineModel {
  readonly fixedMs: number;
  readonly perRowMs: number;
  readonly maxBatchSize: number;
  /** Time within which each of its requests must be answered. */
  readonly limitMs: number;
  /** Its share of the work, in core time of full batches. */
  readonly share: number;
}

/** Models that share the cores of a machine. Each batch uses one core. */
export interface MachineCase {
  readonly name: string;
  readonly cores: number;
  readonly models: readonly MachineModel[];
  readonly arrivals: "poisson" | "bursts";
}

const PHASE_MS = 500;

export const MACHINE_CASES: readonly MachineCase[] = [
  {
    name: "1 + 2 n, 2 + 6 n, 4 + 15 n ms; 30, 80, 300 ms",
    cores: 2,
    arrivals: "poisson",
    models: [
      { fixedMs: 1, perRowMs: 2, maxBatchSize: 8, limitMs: 30, share: 1 / 3 },
      { fixedMs: 2, perRowMs: 6, maxBatchSize: 8, limitMs: 80, share: 1 / 3 },
      { fixedMs: 4, perRowMs: 15, maxBatchSize: 8, limitMs: 300, share: 1 / 3 },
    ],
  },
  {
    name: "the same in bursts",
    cores: 2,
    arrivals: "bursts",
    models: [
      { fixedMs: 1, perRowMs: 2, maxBatchSize: 8, limitMs: 30, share: 1 / 3 },
      { fixedMs: 2, perRowMs: 6, maxBatchSize: 8, limitMs: 80, share: 1 / 3 },
      { fixedMs: 4, perRowMs: 15, maxBatchSize: 8, limitMs: 300, share: 1 / 3 },
    ],
  },
  {
    name: "4 + 1 n, 6 + 2 n, 10 + 4 n ms; 60, 120, 500 ms",
    cores: 2,
    arrivals: "poisson",
    models: [
      { fixedMs: 4, perRowMs: 1, maxBatchSize: 16, limitMs: 60, share: 1 / 3 },
      { fixedMs: 6, perRowMs: 2, maxBatchSize: 16, limitMs: 120, share: 1 / 3 },
      { fixedMs: 10, perRowMs: 4, maxBatchSize: 16, limitMs: 500, share: 1 / 3 },
    ],
  },
  {
    name: "three of 2 + 4 n ms; 60 ms",
    cores: 2,
    arrivals: "poisson",
    models: [1, 2, 3].map(() => ({ fixedMs: 2, perRowMs: 4, maxBatchSize: 8, limitMs: 60, share: 1 / 3 })),
  },
];

/** A machine whose cores all running batches share. */
export class SharedMachine implements SimulatedMachine {
  readonly clock = new SimulationClock();
  readonly limiter: MachinePlan | undefined;
  readonly #cores: SharedCores;

  constructor(cores: number, planned: boolean) {
    this.#cores = new SharedCores(this.clock, cores);
    if (planned) this.limiter = new MachinePlan(this.clock, [], undefined, cores);
  }

  run(ms: number, done: () => void): void {
    this.#cores.run(ms, done);
  }
}

/** How the models of a machine are served. */
export interface MachineSetting {
  readonly batcher: BatcherOptions;
  /** Whether requests carry their deadlines. */
  readonly deadlines: boolean;
  /** Whether one plan chooses the next batch over all models. */
  readonly planned: boolean;
}

export const EAGER: MachineSetting = { batcher: {}, deadlines: false, planned: false };
export const ALONE: MachineSetting = { batcher: { deadlines: true }, deadlines: true, planned: false };
export const PLANNED: MachineSetting = { batcher: { deadlines: true }, deadlines: true, planned: true };

/** Requests of a model for each millisecond of core time, in full batches. */
function perCoreMs({ fixedMs, perRowMs, maxBatchSize }: MachineModel): number {
  return maxBatchSize / (fixedMs + perRowMs * maxBatchSize);
}

/** The requests of all models in order: their times and models. */
function machineArrivals(
  { cores, models, arrivals }: MachineCase,
  { load, seed, durationMs }: LoadRun,
): readonly { readonly at: number; readonly kind: number }[] {
  const all = models.flatMap((model, kind) => {
    const random = new Random(seed + 100 * kind);
    const rate = load * cores * model.share * perCoreMs(model);
    const list: { readonly at: number; readonly kind: number }[] = [];
    for (let at = 0; at < durationMs; ) {
      const phase = arrivals === "poisson" ? 1 : Math.floor(at / PHASE_MS) % 2 === 0 ? 1.6 : 0.4;
      at += random.exponential() / (rate * phase);
      list.push({ at, kind });
    }
    return list;
  });
  return all.sort((a, b) => a.at - b.at);
}

/**
 * Serves the models of a machine with the library's own batchers, instances and plan.
 *
 * @param run its load is the work as a share of what the cores can do in full batches
 */
export async function serveMachine(
  one: MachineCase,
  { batcher, deadlines, planned }: MachineSetting,
  run: LoadRun,
): Promise<readonly ClassOutcome[]> {
  const { cores, models } = one;
  const machine = new SharedMachine(cores, planned);
  const { clock } = machine;
  const served = models.map(
    ({ fixedMs, perRowMs, maxBatchSize }) =>
      new SimulatedModel({
        maxBatchSize,
        instances: 1,
        batcher,
        durationMs: (rows) => fixedMs + perRowMs * rows,
        machine,
      }),
  );
  for (const model of served) await model.start();
  const outcomes: ClassOutcome[] = models.map(() => ({ sent: 0, inTime: 0, late: 0, refused: 0 }));
  for (const { at, kind } of machineArrivals(one, run)) {
    const due = clock.advanceTo(at);
    if (due !== undefined) await due;
    const outcome = outcomes[kind]!;
    const { limitMs } = models[kind]!;
    outcome.sent++;
    try {
      served[kind]!.send(deadlines ? { deadline: at + limitMs } : {}, (answer) => {
        if (TritonError.is(answer)) outcome.refused++;
        else if (clock.now() - at > limitMs) outcome.late++;
        else outcome.inTime++;
      });
    } catch (error) {
      if (!TritonError.is(error)) throw error;
      outcome.refused++;
    }
    clock.runDeferred();
  }
  await clock.drain();
  return outcomes;
}

/**
 * Serves the models on a machine that no real one can beat by much: each row costs what it costs in a full batch, however
 * few wait, all cores work on the request that is due first, and it is interrupted for a tighter one. Requests that would
 * be late are dropped.
 */
export function serveIdeally(one: MachineCase, run: LoadRun): readonly ClassOutcome[] {
  const { cores, models } = one;
  const outcomes: ClassOutcome[] = models.map(() => ({ sent: 0, inTime: 0, late: 0, refused: 0 }));
  const waiting = new Heap<{ readonly due: number; readonly kind: number; leftMs: number }>(
    (a, b) => a.due - b.due,
  );
  let now = 0;
  const workUntil = (until: number): void => {
    for (let next = waiting.first; next !== undefined && now < until; next = waiting.first) {
      const isLate = now + next.leftMs > next.due;
      const ms = isLate ? 0 : Math.min(next.leftMs, until - now);
      now += ms;
      next.leftMs -= ms;
      if (!isLate && next.leftMs > 0) break;
      waiting.take();
      outcomes[next.kind]![isLate ? "refused" : "inTime"]++;
    }
    now = Math.max(now, until);
  };
  for (const { at, kind } of machineArrivals(one, run)) {
    workUntil(at);
    const model = models[kind]!;
    outcomes[kind]!.sent++;
    waiting.add({ due: at + model.limitMs, kind, leftMs: 1 / (cores * perCoreMs(model)) });
  }
  workUntil(Number.MAX_VALUE);
  return outcomes;
}

/** Serves a machine in one way. */
export type ServedMachine = (
  one: MachineCase,
  run: LoadRun,
) => readonly ClassOutcome[] | Promise<readonly ClassOutcome[]>;

/** The largest load, in steps of 0.01, at which 99% of the requests of each model are in time. */
export async function largestMachineLoad(
  one: MachineCase,
  served: ServedMachine,
  run: Omit<LoadRun, "load">,
): Promise<number> {
  let [low, high] = [0, 110];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const outcomes = await served(one, { ...run, load: middle / 100 });
    if (worstShareInTime(outcomes) >= 0.99) low = middle;
    else high = middle;
  }
  return low / 100;
}
