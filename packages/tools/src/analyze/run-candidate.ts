import { TritonError } from "@tritonjs/protocol";
import type { LevelRun } from "./figures.js";
import type { LevelWalk } from "./level-walk.js";
import type { AnalyzeMachine } from "./machine.js";
import type { Candidate } from "./variant-parameters.js";

/** Where a candidate runs, and what interrupts it. */
export interface RunPlace {
  readonly machine: AnalyzeMachine;
  readonly signal: AbortSignal;
}

/** What came of one time that a candidate was loaded. */
export interface CandidateRun {
  /** Runs of before and the new ones. */
  readonly runs: LevelRun[];
  readonly fault?: string;
  /** An interruption came before the last level. */
  readonly isPartial: boolean;
}

/** Loads a candidate, measures the levels of a walk and unloads it. */
export async function runCandidate(
  { machine, signal }: RunPlace,
  candidate: Candidate,
  walk: LevelWalk,
  before: readonly LevelRun[] = [],
): Promise<CandidateRun> {
  const runs = [...before];
  let isPartial = false;
  try {
    const opened = await machine.open(candidate);
    try {
      for (let level = walk(runs); level !== undefined; level = walk(runs)) {
        isPartial = signal.aborted;
        if (isPartial) break;
        const run = await opened.measure(level, signal);
        isPartial = signal.aborted;
        if (isPartial) break;
        runs.push(run);
      }
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (signal.aborted) return { runs, isPartial: true };
    if (!TritonError.is(error)) throw error;
    return { runs, fault: error.message, isPartial };
  }
  return { runs, isPartial };
}
