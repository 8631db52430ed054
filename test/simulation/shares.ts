import { TritonError } from "@tritonjs/protocol";
import { Random } from "../../packages/cli/src/data/random.js";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import { SimulatedModel } from "./simulated-model.js";

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

/** Serves callers whose requests arrive at random, on the virtual clock. */
export async function serveCallers(
  model: SharedModel,
  callers: readonly SharingCaller[],
  batcher: BatcherOptions,
  { seed = 1, durationMs = 20_000 } = {},
): Promise<Readonly<Record<string, CallerOutcome>>> {
  const { fixedMs, perRowMs, maxBatchSize, limitMs } = model;
  const capacity = maxBatchSize / (fixedMs + perRowMs * maxBatchSize);
  const arrivals = callers.flatMap(({ name, load }, i) => {
    const random = new Random(seed + 100 * i);
    const all: { readonly at: number; readonly name: string }[] = [];
    for (let at = 0; at < durationMs; at += random.exponential() / (load * capacity)) all.push({ at, name });
    return all;
  });
  arrivals.sort((a, b) => a.at - b.at);
  const served = new SimulatedModel({
    maxBatchSize,
    instances: 1,
    batcher,
    durationMs: (rows) => fixedMs + perRowMs * rows,
  });
  const { clock } = served;
  await served.start();
  const latencies = new Map(callers.map(({ name }) => [name, [] as number[]]));
  const sent = new Map(callers.map(({ name }) => [name, 0]));
  for (const { at, name } of arrivals) {
    const due = clock.advanceTo(at);
    if (due !== undefined) await due;
    sent.set(name, sent.get(name)! + 1);
    try {
      const content = { caller: name, ...(batcher.deadlines && { deadline: at + limitMs }) };
      served.send(content, (answer) => {
        if (!TritonError.is(answer)) latencies.get(name)!.push(clock.now() - at);
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
        inTime: all.filter((ms) => ms <= limitMs).length / sent.get(name)!,
        rowsPerMs: all.length / durationMs,
        p99: all[Math.floor(0.99 * all.length)] ?? Number.NaN,
      };
      return [name, outcome];
    }),
  );
}
