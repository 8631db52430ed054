import type { Batcher } from "@tritonjs/core/extension";
import { TritonError } from "@tritonjs/protocol";
import { Random } from "../../packages/perf/src/data/random.js";
import { SimulationClock } from "../../packages/perf/src/simulate/simulation-clock.js";
import { SharedCores } from "./shared-cores.js";
import { type SimulatedMachine, SimulatedModel, type SimulatedModelOptions } from "./simulated-model.js";

/** A caller and its load, as a share of the full-batch capacity. */
export interface SharingCaller {
  readonly name: string;
  readonly load: number;
}

/** A model that callers share. */
export interface SharedModel {
  readonly fixedMs: number;
  readonly perRowMs: number;
  readonly maxBatchSize: number;
  /** Time within which each request must be answered. */
  readonly limitMs: number;
}

/** What a caller got. */
export interface CallerOutcome {
  readonly sent: number;
  /** Share of its requests that were answered in time. */
  readonly inTime: number;
  /** Rows for each millisecond that it was answered. */
  readonly rowsPerMs: number;
  /** Largest latency of 99% of its answers, in milliseconds. */
  readonly p99: number;
}

/** Requests of the first second do not count: the batcher learns how long batches take. */
const WARM_MS = 1000;

/** Serves callers of one model, whose requests arrive at random, on the virtual clock. */
export function serveCallers(
  model: SharedModel,
  callers: readonly SharingCaller[],
  batcher: SimulatedModelOptions["batcher"],
  options: { readonly seed?: number; readonly durationMs?: number } = {},
): Promise<Readonly<Record<string, CallerOutcome>>> {
  return serveCallersOf([model], callers, batcher, { ...options, cores: 1 });
}

/**
 * Serves callers of several models that share the cores of a machine. The load of each caller is spread over all models:
 * each of them gets an equal part of the time.
 */
export async function serveCallersOf(
  models: readonly SharedModel[],
  callers: readonly SharingCaller[],
  batcher: SimulatedModelOptions["batcher"],
  { seed = 1, durationMs = 20_000, cores = 1 }: SharedRun = {},
): Promise<Readonly<Record<string, CallerOutcome>>> {
  const capacities = models.map(
    ({ fixedMs, perRowMs, maxBatchSize }) =>
      (cores * maxBatchSize) / (fixedMs + perRowMs * maxBatchSize) / models.length,
  );
  const arrivals = models.flatMap((_, kind) =>
    callers.flatMap(({ name, load }, i) => {
      const random = new Random(seed + 100 * i + 10_000 * kind);
      const all: { readonly at: number; readonly name: string; readonly kind: number }[] = [];
      for (let at = 0; at < durationMs; at += random.exponential() / (load * capacities[kind]!)) {
        all.push({ at, name, kind });
      }
      return all;
    }),
  );
  arrivals.sort((a, b) => a.at - b.at);
  const isDated = (batcher as Partial<Batcher>).name === "deadlines";
  const clock = new SimulationClock();
  const shared = new SharedCores(clock, cores);
  const machine: SimulatedMachine = { clock, run: (ms, done) => shared.run(ms, done) };
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
  const latencies = new Map(callers.map(({ name }) => [name, [] as number[]]));
  const inTime = new Map(callers.map(({ name }) => [name, 0]));
  const sent = new Map(callers.map(({ name }) => [name, 0]));
  for (const { at, name, kind } of arrivals) {
    const due = clock.advanceTo(at);
    if (due !== undefined) await due;
    const { limitMs } = models[kind]!;
    if (at >= WARM_MS) sent.set(name, sent.get(name)! + 1);
    try {
      const content = { caller: name, ...(isDated && { deadline: at + limitMs }) };
      served[kind]!.send(content, (answer) => {
        if (TritonError.is(answer) || at < WARM_MS) return;
        const ms = clock.now() - at;
        latencies.get(name)!.push(ms);
        if (ms <= limitMs) inTime.set(name, inTime.get(name)! + 1);
      });
    } catch (error) {
      if (!TritonError.is(error)) throw error;
    }
    clock.runDeferred();
  }
  await clock.drain();
  return Object.fromEntries(
    callers.map(({ name }) => {
      const all = latencies.get(name)!.sort((a, b) => a - b);
      const outcome: CallerOutcome = {
        sent: sent.get(name)!,
        inTime: inTime.get(name)! / sent.get(name)!,
        rowsPerMs: all.length / (durationMs - WARM_MS),
        p99: all[Math.floor(0.99 * all.length)] ?? Number.NaN,
      };
      return [name, outcome];
    }),
  );
}

/** How callers share models. */
export interface SharedRun {
  readonly seed?: number;
  readonly durationMs?: number;
  readonly cores?: number;
}
