import { TritonError } from "@tritonjs/protocol";
import { arrivalTimes, Durations, type Scenario } from "./scenario.js";
import type { Setting } from "./setting.js";
import { SimulatedModel } from "./simulated-model.js";

/** The outcome of one run. */
export interface Outcome {
  /** Requests sent. */
  readonly sent: number;
  /** Requests that were answered too late, or not at all. */
  readonly missed: number;
  /** Requests that were rejected. */
  readonly shed: number;
  /** Milliseconds that the instances were busy, summed. */
  readonly busyMs: number;
  readonly durationMs: number;
  readonly batches: number;
}

/** Load and seed of a run. */
export interface Run {
  /** Requests per millisecond. */
  readonly rate: number;
  readonly seed: number;
  /** Ends the run early when more requests than this were missed. */
  readonly mayMiss?: number;
}

/** Serves a scenario with the library's own batcher and instances, on a virtual clock. */
export async function serve(scenario: Scenario, setting: Setting, run: Run): Promise<Outcome> {
  const durations = new Durations(scenario, run.seed + 1);
  let sent = 0;
  let missed = 0;
  let shed = 0;
  let busyMs = 0;
  let batches = 0;
  const model = new SimulatedModel({
    ...setting,
    instances: scenario.instances,
    durationMs: (rows) => {
      const ms = durations.next(rows, sent / scenario.requests);
      busyMs += ms;
      batches++;
      return ms;
    },
  });
  const { clock } = model;
  await model.start();
  const mayMiss = run.mayMiss ?? Number.POSITIVE_INFINITY;
  for (const at of arrivalTimes(scenario, run.rate, run.seed)) {
    const due = clock.advanceTo(at);
    if (due !== undefined) await due;
    if (sent === scenario.requests || missed > mayMiss) break;
    sent++;
    try {
      model.send({}, (outcome) => {
        if (TritonError.is(outcome) || clock.now() - at > scenario.targetMs) missed++;
      });
    } catch (error) {
      if (!TritonError.is(error)) throw error;
      shed++;
      missed++;
    }
    clock.runDeferred();
  }
  const durationMs = clock.now();
  if (missed <= mayMiss) await clock.drain();
  return { sent, missed, shed, busyMs, durationMs, batches };
}
