import type { AnalyzeLevel, LevelRun } from "./figures.js";
import { allLevels } from "./level-walk.js";
import { meanOfTurns } from "./repeated-run.js";
import { type RunPlace, runCandidate } from "./run-candidate.js";
import type { Candidate } from "./variant-parameters.js";

/** Most turns of a candidate. A change of the speed in the middle of a round then moves a figure by little. */
const MOST_TURNS = 6;

/** Share of a measurement in the first turn, which warms the program up and shows how long the candidate loads. */
const FIRST_SHARE = 1 / 12;

/** A candidate, and the levels at which it is measured. */
export interface Turn {
  readonly candidate: Candidate;
  readonly levels: readonly AnalyzeLevel[];
  /** The levels are not those of the search: the run shows how long batches take. */
  readonly isCalibration?: boolean;
}

/** Result of all turns of a candidate. */
export interface TurnEnd {
  readonly turn: Turn;
  /** The means of its turns. */
  readonly runs: LevelRun[];
  readonly fault?: string;
  /** The search ended before its last turn. */
  readonly isPartial: boolean;
}

/** Where candidates run in turns. */
export interface TurnPlace extends RunPlace {
  /** Whether the search has to end now. */
  isOver(): boolean;
  onBegin(turn: Turn): void;
  /** Called after each turn with its share of a measurement: 0 for the first one, which does not count. */
  onTurn(share: number): void;
  /** Called once for each candidate with a run or a fault. */
  onEnd(end: TurnEnd): Promise<void>;
}

interface Entry {
  readonly turn: Turn;
  readonly turns: (readonly LevelRun[])[];
  fault?: string;
}

/**
 * Measures candidates in turns: each is loaded several times, and measured for a part of the time. The speed of a machine
 * may change for seconds, by its clock or by others that it serves. So it changes for all candidates alike.
 */
export async function runInTurns(place: TurnPlace, turns: readonly Turn[]): Promise<void> {
  const entries = turns.map((turn): Entry => ({ turn, turns: [] }));
  const ended = new Set<Entry>();
  const end = async (entry: Entry, isPartial: boolean) => {
    ended.add(entry);
    const { turn, fault } = entry;
    if (fault === undefined && entry.turns.length === 0) return;
    const runs = fault === undefined ? meanOfTurns(entry.turns) : [];
    await place.onEnd({ turn, runs, isPartial, ...(fault !== undefined && { fault }) });
  };
  let [loadMs, measureMs] = [0, 0];
  let count = MOST_TURNS;
  for (let round = 0; round <= count; round++) {
    // Every other round goes back, so that no candidate is always the first.
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      if (ended.has(entry)) continue;
      if (place.isOver()) break;
      const { candidate, levels } = entry.turn;
      place.onBegin(entry.turn);
      const begin = place.now();
      const share = round === 0 ? FIRST_SHARE : 1 / count;
      const run = await runCandidate(place, candidate, allLevels(levels), { share });
      place.onTurn(round === 0 ? 0 : share);
      if (run.isPartial) break;
      if (run.fault !== undefined) {
        entry.fault = run.fault;
        await end(entry, false);
      } else if (round > 0) {
        entry.turns.push(run.runs);
        if (round === count) await end(entry, false);
      } else {
        loadMs = Math.max(loadMs, run.loadMs);
        measureMs = Math.max(measureMs, place.now() - begin - run.loadMs);
      }
    }
    // Candidates that load slowly have fewer turns, so that the time goes into measuring.
    if (round === 0 && loadMs > 0) {
      count = Math.min(MOST_TURNS, Math.max(1, Math.floor(measureMs / FIRST_SHARE / loadMs)));
    }
    if (place.isOver()) break;
  }
  for (const entry of entries) if (!ended.has(entry)) await end(entry, true);
}
