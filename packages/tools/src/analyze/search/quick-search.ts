import type { Analysis } from "../analysis.js";
import type { LevelRun } from "../figures.js";
import { bestRun, compareRuns, failurePercent, type SearchGoal, scoreOf } from "../goal.js";
import { runAt } from "../level-walk.js";
import type { SearchSpace } from "../search-space.js";
import { sweepLoads } from "./load-sweep.js";
import {
  type Coordinate,
  candidateAt,
  coordinateKey,
  distance,
  neighbourhood,
  type QuickDimension,
  quickDimensions,
} from "./quick-coordinates.js";

/** Distance of the neighbours that a step looks at. */
const RADIUS = 3;

/** Neighbours that are measured before a step in fast mode. */
const NEIGHBOURS = 3;

/** Magnitudes of a direction from which a step has 1, 2 or 3 indexes. */
const THRESHOLDS = [0.09, 0.3, 1] as const;

/**
 * Climbs from the smallest configuration, as Model Analyzer's quick search: it measures a few neighbours, steps in the
 * direction in which the score rises, and ends when it no longer moves.
 */
export async function quickSearch(analysis: Analysis, space: SearchSpace): Promise<void> {
  await analysis.measure(analysis.defaultCandidate);
  const dimensions = quickDimensions(analysis.machine.configs, space);
  if (dimensions.length === 0) return;
  await new HillClimb(analysis, dimensions).run();
  await sweepLoads(analysis);
}

class HillClimb {
  readonly #analysis: Analysis;
  readonly #goal: SearchGoal;
  readonly #dimensions: readonly QuickDimension[];
  readonly #measured = new Map<string, { coordinate: Coordinate; run: LevelRun | undefined }>();
  readonly #visits = new Map<string, number>();
  #home: Coordinate;
  #isSlow = false;

  constructor(analysis: Analysis, dimensions: readonly QuickDimension[]) {
    this.#analysis = analysis;
    this.#goal = analysis.goal;
    this.#dimensions = dimensions;
    this.#home = dimensions.map(() => 0);
  }

  async run(): Promise<void> {
    await this.#measure(this.#home);
    this.#visit(this.#home);
    for (;;) {
      const next = await this.#step();
      if (next === undefined || coordinateKey(next) === coordinateKey(this.#home)) return;
      const before = this.#runAt(this.#home);
      await this.#measure(next);
      const after = this.#runAt(next);
      const passed = before !== undefined && failurePercent(before, this.#goal) === 0;
      if (after === undefined || (passed && failurePercent(after, this.#goal) > 0)) {
        // A step too far: back to the measured coordinate nearest to the best one, with small steps.
        this.#isSlow = true;
        const back = this.#stepBack(next);
        if (back === undefined || !this.#visit(back)) return;
        this.#home = back;
        continue;
      }
      this.#home = next;
      if (!this.#visit(next)) return;
    }
  }

  /** Counts a visit; false for the second one. */
  #visit(coordinate: Coordinate): boolean {
    const key = coordinateKey(coordinate);
    const count = (this.#visits.get(key) ?? 0) + 1;
    this.#visits.set(key, count);
    return count < 2;
  }

  /** Measures neighbours and returns the next home; undefined when nothing is left. */
  async #step(): Promise<Coordinate | undefined> {
    const around = neighbourhood(this.#home, RADIUS, this.#dimensions);
    while (this.#known(around).length < NEIGHBOURS && !this.#needsSlow(around)) {
      const next = this.#mostNovel(around);
      if (next === undefined) break;
      await this.#measure(next);
    }
    if (this.#needsSlow(around)) return this.#slowStep();
    return this.#fastStep(around);
  }

  /** Some neighbours pass the constraints and others do not, so long steps may miss the border. */
  #needsSlow(around: readonly Coordinate[]): boolean {
    if (this.#isSlow) return true;
    const home = this.#runAt(this.#home);
    if (home === undefined) return false;
    const passes = failurePercent(home, this.#goal) === 0;
    return this.#known(around).some(({ run }) => (failurePercent(run, this.#goal) === 0) !== passes);
  }

  async #slowStep(): Promise<Coordinate | undefined> {
    const around = neighbourhood(this.#home, 1, this.#dimensions);
    for (const one of around) await this.#measure(one);
    let best = this.#home;
    for (const { coordinate, run } of this.#known(around)) {
      const bestKnown = this.#runAt(best);
      if (bestKnown === undefined || compareRuns(run, bestKnown, this.#goal) > 0) best = coordinate;
    }
    return best;
  }

  #fastStep(around: readonly Coordinate[]): Coordinate | undefined {
    const home = this.#runAt(this.#home);
    const known = this.#known(around);
    if (known.length === 0) return undefined;
    const step = this.#dimensions.map((_, i) => {
      let [sum, weight] = [0, 0];
      for (const { coordinate, run } of known) {
        const offset = coordinate[i]! - this.#home[i]!;
        if (offset === 0) continue;
        sum += Math.sign(offset) * this.#weight(run, home);
        weight += Math.abs(offset);
      }
      return weight === 0 ? 0 : indexesOf(sum / weight);
    });
    return this.#dimensions.map(({ count }, i) =>
      Math.min(count - 1, Math.max(0, this.#home[i]! + step[i]!)),
    );
  }

  /** How much better a neighbour is than the home: by the score, or by the constraints where the home fails them. */
  #weight(run: LevelRun, home: LevelRun | undefined): number {
    if (home === undefined) return 1;
    const failure = failurePercent(home, this.#goal);
    if (failure > 0) return (failure - failurePercent(run, this.#goal)) / 100;
    return scoreOf(run, home, this.#goal);
  }

  /** The coordinate that has most indexes which no known neighbour has. */
  #mostNovel(around: readonly Coordinate[]): Coordinate | undefined {
    const covered = this.#dimensions.map(() => new Set<number>());
    for (const coordinate of [this.#home, ...this.#known(around).map((one) => one.coordinate)]) {
      for (const [i, value] of coordinate.entries()) covered[i]!.add(value);
    }
    let [best, most] = [undefined as Coordinate | undefined, -1];
    for (const one of around) {
      if (this.#measured.has(coordinateKey(one))) continue;
      const novel = one.filter((value, i) => !covered[i]!.has(value)).length;
      if (novel > most) [best, most] = [one, novel];
    }
    return best;
  }

  #stepBack(from: Coordinate): Coordinate | undefined {
    let best: { coordinate: Coordinate; run: LevelRun } | undefined;
    for (const one of this.#known(undefined)) {
      if (best === undefined || compareRuns(one.run, best.run, this.#goal) > 0) best = one;
    }
    if (best === undefined) return undefined;
    const target = best.coordinate;
    const others = this.#known(neighbourhood(from, RADIUS, this.#dimensions)).map((one) => one.coordinate);
    return [target, ...others].toSorted((a, b) => distance(a, target) - distance(b, target))[0];
  }

  /** Measured coordinates, all or those of a neighbourhood. Those without a measurement are left out. */
  #known(around: readonly Coordinate[] | undefined): { coordinate: Coordinate; run: LevelRun }[] {
    const all =
      around === undefined
        ? [...this.#measured.values()]
        : around.flatMap((one) => this.#measured.get(coordinateKey(one)) ?? []);
    return all.filter((one): one is { coordinate: Coordinate; run: LevelRun } => one.run !== undefined);
  }

  #runAt(coordinate: Coordinate): LevelRun | undefined {
    return this.#measured.get(coordinateKey(coordinate))?.run;
  }

  async #measure(coordinate: Coordinate): Promise<void> {
    if (this.#measured.has(coordinateKey(coordinate))) return;
    const candidate = candidateAt(this.#dimensions, coordinate);
    const { runs } = await this.#analysis.measure(candidate);
    // An interrupted search may have swept the load of the candidate already.
    const own = this.#analysis.levelsOf(candidate).flatMap((level) => runAt(runs, level) ?? []);
    this.#measured.set(coordinateKey(coordinate), { coordinate, run: bestRun(own, this.#goal) });
  }
}

/** Number of indexes for a direction, -3 to 3. */
function indexesOf(value: number): number {
  const size = THRESHOLDS.filter((threshold) => Math.abs(value) >= threshold).length;
  return size * Math.sign(value);
}
