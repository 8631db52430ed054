import { TritonError } from "@tritonjs/protocol";
import type { LevelRun } from "./figures.js";
import type { LevelWalk } from "./level-walk.js";
import type { AnalyzeMachine } from "./machine.js";
import type { Candidate } from "./variant-parameters.js";

/** Where a candidate runs, and what interrupts it. */
export interface RunPlace {
  readonly machine: AnalyzeMachine;
  readonly signal: AbortSignal;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** What came of one time that a candidate was loaded. */
export interface CandidateRun {
  /** Runs of before and the new ones. */
  readonly runs: LevelRun[];
  readonly fault?: string;
  /** An interruption came before the last level. */
  readonly isPartial: boolean;
  readonly loadMs: number;
}

/** Earlier runs of a candidate, and the share of a measurement. */
interface Measuring {
  /** Runs of before. */
  readonly before?: readonly LevelRun[];
  /** Share of three windows; until they agree unless given. */
  readonly share?: number;
}

/** Loads a candidate, measures the levels of a walk and unloads it. */
export async function runCandidate(
  { machine, signal, now }: RunPlace,
  candidate: Candidate,
  walk: LevelWalk,
  { before = [], share }: Measuring = {},
): Promise<CandidateRun> {
  const runs = [...before];
  const begin = now();
  let loadMs = 0;
  let isPartial = false;
  try {
    const opened = await machine.open(candidate);
    loadMs = now() - begin;
    try {
      for (let level = walk(runs); level !== undefined; level = walk(runs)) {
        isPartial = signal.aborted;
        if (isPartial) break;
        const run = await opened.measure(level, signal, share);
        isPartial = signal.aborted;
        if (isPartial) break;
        runs.push(run);
      }
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (signal.aborted) return { runs, isPartial: true, loadMs };
    if (!TritonError.is(error)) throw error;
    return { runs, fault: error.message, isPartial, loadMs };
  }
  return { runs, isPartial, loadMs };
}
