import type { ModelConfig } from "@tritonjs/protocol";
import type { Analysis } from "./analysis.js";
import {
  type AnalyzeLevel,
  bestRun,
  type Candidate,
  candidateKey,
  candidatesOf,
  canonical,
  compareResults,
  compareRuns,
  failurePercent,
  type LevelRun,
  type SearchGoal,
  type SearchSpace,
  scoreOf,
  variantsOf,
} from "./candidate.js";
import { allLevels, isPlateau, risingLevels, runAt, throughputOf } from "./run-candidate.js";

const RADIUS = 3;

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
  readonly #goal: SearchGoal;
  readonly #measured = new Map<string, { coordinate: Coordinate; run: LevelRun | undefined }>();
  readonly #visits = new Map<string, number>();
  #home: Coordinate;
  #isSlow = false;

  constructor(
    private readonly analysis: Analysis,
    private readonly dimensions: readonly QuickDimension[],
  ) {
    this.#goal = analysis.goal;
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

  #visit(coordinate: Coordinate): boolean {
    const key = coordinateKey(coordinate);
    const count = (this.#visits.get(key) ?? 0) + 1;
    this.#visits.set(key, count);
    return count < 2;
  }

  /** Measures neighbours and returns the next home; undefined when nothing is left. */
  async #step(): Promise<Coordinate | undefined> {
    const around = neighbourhood(this.#home, RADIUS, this.dimensions);
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
    const around = neighbourhood(this.#home, 1, this.dimensions);
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
    const step = this.dimensions.map((_, i) => {
      let [sum, weight] = [0, 0];
      for (const { coordinate, run } of known) {
        const offset = coordinate[i]! - this.#home[i]!;
        if (offset === 0) continue;
        sum += Math.sign(offset) * this.#weight(run, home);
        weight += Math.abs(offset);
      }
      return weight === 0 ? 0 : indexesOf(sum / weight);
    });
    return this.dimensions.map(({ count }, i) => Math.min(count - 1, Math.max(0, this.#home[i]! + step[i]!)));
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
    const covered = this.dimensions.map(() => new Set<number>());
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
    const others = this.#known(neighbourhood(from, RADIUS, this.dimensions)).map((one) => one.coordinate);
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
    const candidate = candidateAt(this.dimensions, coordinate);
    const { runs } = await this.analysis.measure(candidate);
    // An interrupted search may have swept the load of the candidate already.
    const own = this.analysis.levelsOf(candidate).flatMap((level) => runAt(runs, level) ?? []);
    this.#measured.set(coordinateKey(coordinate), { coordinate, run: bestRun(own, this.#goal) });
  }
}

/** Number of indexes for a direction, -3 to 3. */
function indexesOf(value: number): number {
  const size = THRESHOLDS.filter((threshold) => Math.abs(value) >= threshold).length;
  return size * Math.sign(value);
}

type Coordinate = readonly number[];

interface QuickDimension {
  readonly model: string;
  readonly parameter: "maxBatchSize" | "instances";
  readonly count: number;
  valueAt(index: number): number;
}

/**
 * Dimensions of all models in one list, as Model Analyzer has them: powers of two for the batch, whole numbers for the
 * instances.
 */
function quickDimensions(
  configs: Readonly<Record<string, ModelConfig>>,
  space: SearchSpace,
): QuickDimension[] {
  return Object.entries(configs).flatMap(([model, config]) => {
    const values = space[model] ?? {};
    return (["maxBatchSize", "instances"] as const).flatMap((parameter): QuickDimension[] => {
      const list = values[parameter]?.toSorted((a, b) => a - b) ?? [];
      if (list.length === 0 || (parameter === "maxBatchSize" && config.maxBatchSize === 0)) return [];
      return [{ model, parameter, count: list.length, valueAt: (index) => list[index]! }];
    });
  });
}

function candidateAt(dimensions: readonly QuickDimension[], coordinate: Coordinate): Candidate {
  const candidate: Record<string, Record<string, number>> = {};
  dimensions.forEach(({ model, parameter, valueAt }, i) => {
    candidate[model] = { ...candidate[model], [parameter]: valueAt(coordinate[i]!) };
  });
  return candidate;
}

const coordinateKey = (coordinate: Coordinate): string => coordinate.join(",");

function distance(a: Coordinate, b: Coordinate): number {
  return Math.sqrt(a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0));
}

/** All coordinates within a Euclidean distance of a home, without the home, in lexical order. */
export function neighbourhood(
  home: Coordinate,
  radius: number,
  dimensions: readonly QuickDimension[],
): Coordinate[] {
  const reach = Math.floor(radius);
  let all: number[][] = [[]];
  dimensions.forEach(({ count }, i) => {
    const low = Math.max(0, home[i]! - reach);
    const high = Math.min(count - 1, home[i]! + reach);
    const values = Array.from({ length: Math.max(0, high - low + 1) }, (_, offset) => low + offset);
    // Prunes early: the distance only grows with further dimensions.
    all = all
      .flatMap((one) => values.map((value) => [...one, value]))
      .filter((one) => distance(one, home.slice(0, one.length)) <= radius);
  });
  return all.filter((one) => distance(one, home) > 0);
}

/** Axes that end where the throughput no longer rises. */
interface BruteSearchOptions {
  readonly endsLoadsEarly?: boolean;
  /** For the maximum batch of a single model. */
  readonly endsSizesEarly?: boolean;
}

/**
 * Measures the default configuration and the candidates of the space. Where constraints break between two levels of
 * load, levels between them are measured too.
 */
export async function bruteSearch(
  analysis: Analysis,
  space: SearchSpace,
  { endsLoadsEarly = false, endsSizesEarly = false }: BruteSearchOptions = {},
): Promise<void> {
  const { goal } = analysis;
  const measure = (candidate: Candidate) => {
    const levels = analysis.levelsOf(candidate);
    const walk =
      levels.length === 1
        ? allLevels(levels)
        : risingLevels(levels, goal, { endsEarly: endsLoadsEarly, endsAtLimit: false });
    return analysis.measure(candidate, walk);
  };
  const candidates = candidatesOf(space);
  analysis.expected = candidates.length + 1;
  await measure(analysis.defaultCandidate);
  const [only, ...others] = Object.keys(space);
  const sizes = only === undefined || others.length > 0 ? undefined : space[only]!.maxBatchSize;
  if (!endsSizesEarly || sizes === undefined) for (const candidate of candidates) await measure(candidate);
  else {
    const { maxBatchSize: _, ...rest } = space[only!]!;
    for (const variant of variantsOf(rest)) {
      const throughputs: number[] = [];
      for (const maxBatchSize of sizes.toSorted((a, b) => a - b)) {
        const { runs } = await measure({ [only!]: canonical({ ...variant, maxBatchSize }) });
        // A size that does not work ends the axis: larger ones will not work either.
        if (runs.length === 0) break;
        throughputs.push(Math.max(...runs.map(throughputOf)));
        if (isPlateau(throughputs)) break;
      }
    }
  }
  await sweepLoads(analysis);
}

/** Candidates whose load is swept, besides the default configuration. */
const SWEPT = 3;

/**
 * Measures the best candidates and the default one under rising load, which doubles until the throughput no longer
 * rises or a constraint breaks; then it bisects. Only for a search that has chosen the load itself: it has measured each
 * candidate under one load.
 */
async function sweepLoads(analysis: Analysis): Promise<void> {
  const { load, goal } = analysis;
  if (load.kind !== "automatic") return;
  const best = analysis.results
    .filter(({ runs }) => runs.length > 0)
    .toSorted((a, b) => compareResults(b, a, goal))
    .slice(0, SWEPT)
    .map(({ candidate }) => candidate);
  const candidates = [...best, analysis.defaultCandidate];
  const swept = [...new Map(candidates.map((one) => [candidateKey(one), one])).values()];
  const levels: AnalyzeLevel[] = [];
  for (let value = load.min; value <= load.max; value *= 2) levels.push({ mode: "concurrency", value });
  analysis.observer.onPhase?.(`measuring the best ${best.length} configurations under rising load`);
  analysis.expected = swept.length;
  for (const candidate of swept) {
    await analysis.extend(candidate, risingLevels(levels, goal, { endsEarly: true, endsAtLimit: true }));
  }
}
