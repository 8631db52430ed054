import { TritonError } from "@tritonjs/protocol";
import { arrivalsOf, type DeadlineCase, durationsOf, fullBatchCapacity } from "./deadline-cases.js";
import { SimulatedModel, type SimulatedModelOptions } from "./simulated-model.js";

/** What became of the requests of a class. */
export interface ClassOutcome {
  sent: number;
  inTime: number;
  late: number;
  refused: number;
}

/** A load and its random numbers. */
export interface LoadRun {
  /** Rate of requests as a share of the full-batch capacity. */
  readonly load: number;
  readonly seed: number;
  readonly durationMs: number;
}

/** Serves a case, and counts the outcomes by class. */
export type Served = (one: DeadlineCase, run: LoadRun) => Promise<readonly ClassOutcome[]>;

export function noOutcomes(one: DeadlineCase): ClassOutcome[] {
  return one.classes.map(() => ({ sent: 0, inTime: 0, late: 0, refused: 0 }));
}

/** How a model is bound for a case. */
export interface DeadlineSetting {
  readonly maxBatchSize?: number;
  readonly batcher: SimulatedModelOptions["batcher"];
  /** Whether requests have their class as their priority level. */
  readonly levels?: boolean;
  /** Whether requests carry their deadlines. */
  readonly deadlines?: boolean;
}

/** Serves a case with the library's own batcher and instances on the virtual clock. */
export function byLibrary(settingOf: (one: DeadlineCase) => DeadlineSetting): Served {
  return async (one, { load, seed, durationMs }) => {
    const { maxBatchSize = one.maxBatchSize, batcher, levels = false, deadlines = false } = settingOf(one);
    const outcomes = noOutcomes(one);
    const { instances } = one;
    const model = new SimulatedModel({
      maxBatchSize,
      instances,
      batcher,
      durationMs: durationsOf(one, seed + 1),
    });
    const { clock } = model;
    await model.start();
    for (const { atMs, kind } of arrivalsOf(one, load * fullBatchCapacity(one), seed, durationMs)) {
      const due = clock.advanceTo(atMs);
      if (due !== undefined) await due;
      const outcome = outcomes[kind]!;
      const { limitMs } = one.classes[kind]!;
      outcome.sent++;
      const content = {
        ...(levels && { priority: kind + 1 }),
        ...(deadlines && { deadline: atMs + limitMs }),
      };
      try {
        model.send(content, (answer) => {
          if (TritonError.is(answer)) outcome.refused++;
          else if (clock.now() - atMs > limitMs) outcome.late++;
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
  };
}

/** Share of the requests of all classes that were answered in time. */
export function shareInTime(outcomes: readonly ClassOutcome[]): number {
  let [sent, inTime] = [0, 0];
  for (const outcome of outcomes) {
    sent += outcome.sent;
    inTime += outcome.inTime;
  }
  return inTime / sent;
}

/** Lowest share in time of any class. */
export function worstShareInTime(outcomes: readonly ClassOutcome[]): number {
  return Math.min(...outcomes.map(({ sent, inTime }) => inTime / sent));
}

/** Precision of a largest load. */
const STEP = 0.01;

/**
 * The largest load at which 99% of each class are in time, in steps of 0.01. The search goes down from `from`, because a
 * higher load may pass by chance.
 */
export async function largestLoad(
  one: DeadlineCase,
  served: Served,
  run: Omit<LoadRun, "load">,
  from = 1.1,
): Promise<number> {
  const passes = async (load: number): Promise<boolean> =>
    worstShareInTime(await served(one, { ...run, load })) >= 0.99;
  let low = 0;
  let high = Math.round(from / STEP);
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await passes(middle * STEP)) low = middle;
    else high = middle;
  }
  return low * STEP;
}
