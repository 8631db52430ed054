import { TritonError } from "@tritonjs/protocol";
import { type AnalysisObserver, type AnalysisParts, SearchEnd } from "./analysis-parts.js";
import type { CandidateResult, Prediction } from "./candidate-result.js";
import { measurementCount } from "./candidate-result.js";
import type { AnalyzeLevel, LevelRun } from "./figures.js";
import type { SearchGoal } from "./goal.js";
import { allLevels, type LevelWalk } from "./level-walk.js";
import { type AnalyzeLoad, type Capacity, levelsOf } from "./load.js";
import type { AnalyzeMachine } from "./machine.js";
import { firstRound, withRound } from "./repeated-run.js";
import { compareResults, type Ranked } from "./result-order.js";
import { runCandidate } from "./run-candidate.js";
import { type Candidate, candidateKey, isDefault, variantConfig } from "./variant-parameters.js";

/** Number of first candidates that may all fail before the search gives up. */
const HOPELESS = 3;

/** Measures candidates and remembers the results. Searches decide which candidates. */
export class Analysis {
  readonly machine: AnalyzeMachine;
  readonly goal: SearchGoal;
  readonly load: AnalyzeLoad;
  readonly signal: AbortSignal;
  readonly observer: AnalysisObserver;
  /** What the simulation foretold, by the key of the candidate. */
  readonly predictions = new Map<string, Prediction>();
  /** Estimates of measured candidates, by their keys, from a search that has some. They decide the order of results. */
  readonly estimates = new Map<string, readonly LevelRun[]>();
  /** Number of further measurements that the search expects. */
  expected = 0;
  readonly #parts: AnalysisParts;
  readonly #earlier: Map<string, CandidateResult>;
  readonly #results = new Map<string, CandidateResult>();
  /** Runs at other levels than those of the load. */
  readonly #calibrations: Map<string, CandidateResult>;
  #failedFirst = 0;

  constructor(parts: AnalysisParts) {
    this.#parts = parts;
    this.machine = parts.machine;
    this.goal = parts.goal;
    this.load = parts.load;
    this.signal = parts.signal;
    this.observer = parts.observer ?? {};
    const earlier = parts.earlier ?? [];
    this.#earlier = new Map(
      earlier.filter((one) => !one.isCalibration).map((one) => [keyOf(one.candidate), one]),
    );
    this.#calibrations = new Map(
      earlier
        .filter((one) => one.isCalibration && one.runs.length > 0)
        .map((one) => [calibrationKey(one.candidate, one.runs[0]!.level), one]),
    );
  }

  /** Results in the order of the first measurement. */
  get results(): readonly CandidateResult[] {
    return [...this.#results.values()];
  }

  /** Measured levels of all candidates, with those of the calibration. */
  get measurements(): number {
    return measurementCount(this.results) + measurementCount([...this.#calibrations.values()]);
  }

  /** The candidate that changes nothing. */
  get defaultCandidate(): Candidate {
    return Object.fromEntries(Object.keys(this.machine.configs).map((model) => [model, {}]));
  }

  resultOf(candidate: Candidate): CandidateResult | undefined {
    return this.#results.get(keyOf(candidate));
  }

  /** What decides the place of a measured candidate: its estimate, or its measured runs without one. */
  estimateOf({ candidate, runs }: CandidateResult): Ranked {
    return { runs: this.estimates.get(keyOf(candidate)) ?? runs };
  }

  /** The best result so far by the goal; undefined without a measurement. */
  get best(): CandidateResult | undefined {
    let best: CandidateResult | undefined;
    for (const result of this.results) {
      if (result.runs.length === 0) continue;
      if (best === undefined) best = result;
      else if (compareResults(this.estimateOf(result), this.estimateOf(best), this.goal) > 0) best = result;
    }
    return best;
  }

  /** The capacity of a candidate: that of its smallest model. */
  capacityOf(candidate: Candidate): Capacity {
    const all = Object.entries(this.machine.configs).map(([model, config]) => {
      const { maxBatchSize, instanceGroup } = variantConfig(config, candidate[model] ?? {});
      const instances = instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0);
      return { maxBatchSize, instances: Math.max(1, instances) };
    });
    return all.reduce((least, one) =>
      one.maxBatchSize * one.instances < least.maxBatchSize * least.instances ? one : least,
    );
  }

  levelsOf(candidate: Candidate): readonly AnalyzeLevel[] {
    return levelsOf(this.load, this.capacityOf(candidate), this.machine.batchSize);
  }

  /**
   * Measures a candidate, unless that is done. A candidate that cannot be loaded is reported and skipped.
   *
   * @param walk levels; all of the load unless given
   * @throws SearchEnd after an interruption, and over the budget
   * @throws TritonError if none of the first candidates works
   */
  async measure(
    candidate: Candidate,
    walk: LevelWalk = allLevels(this.levelsOf(candidate)),
  ): Promise<CandidateResult> {
    const key = keyOf(candidate);
    const known = this.#results.get(key);
    if (known !== undefined) return known;
    const earlier = this.#earlier.get(key);
    if (earlier !== undefined && !earlier.isPartial) return this.#keep(key, firstRound(earlier));
    this.#checkEnd();
    this.observer.onBegin?.(candidate, this.levelsOf(candidate));
    const before = earlier?.runs ?? [];
    const { runs, fault, isPartial } = await runCandidate(this, candidate, walk, before);
    if (isPartial && runs.length === 0) throw new SearchEnd("interrupted");
    const result = this.#keep(key, {
      ...this.#numbered(candidate, runs),
      ...(fault !== undefined && { fault }),
      ...(isPartial && { isPartial }),
    });
    await this.#write();
    this.#checkHope(result);
    if (isPartial) throw new SearchEnd("interrupted");
    return result;
  }

  /**
   * Measures further levels of a measured candidate.
   *
   * @throws SearchEnd after an interruption, and over the budget
   */
  async extend(candidate: Candidate, walk: LevelWalk): Promise<CandidateResult> {
    const known = this.#results.get(keyOf(candidate))!;
    const next = walk(known.runs);
    if (next === undefined) return known;
    this.#checkEnd();
    this.observer.onBegin?.(candidate, [next]);
    // The walk may count its calls, so its first answer is used.
    let first: AnalyzeLevel | undefined = next;
    const rest: LevelWalk = (runs) => {
      const level = first ?? (this.#parts.isOverBudget?.() ? undefined : walk(runs));
      first = undefined;
      return level;
    };
    const { runs, isPartial } = await runCandidate(this, candidate, rest, known.runs);
    return this.#update(known, runs, isPartial);
  }

  /**
   * Measures a candidate once more. Its figures become the means of its measurements. An interrupted measurement does
   * not count. A candidate that fails loses its figures.
   *
   * @throws SearchEnd after an interruption, and over the budget
   */
  async measureAgain(candidate: Candidate): Promise<CandidateResult> {
    const key = keyOf(candidate);
    const known = this.#results.get(key);
    if (known === undefined) return this.measure(candidate);
    const earlier = this.#earlier.get(key)?.rounds?.[known.rounds?.length ?? 1];
    if (earlier !== undefined) return this.#keep(key, withRound(known, earlier));
    this.#checkEnd();
    const levels = this.levelsOf(candidate);
    this.observer.onBegin?.(candidate, levels);
    const { runs, fault, isPartial } = await runCandidate(this, candidate, allLevels(levels));
    if (isPartial) throw new SearchEnd("interrupted");
    const { rounds: _, ...rest } = known;
    const result = this.#keep(
      key,
      fault === undefined ? withRound(known, runs) : { ...rest, runs: [], fault },
    );
    await this.#write();
    return result;
  }

  async #update(known: CandidateResult, runs: LevelRun[], isPartial: boolean): Promise<CandidateResult> {
    const result = this.#keep(keyOf(known.candidate), { ...known, runs });
    await this.#write();
    if (isPartial) throw new SearchEnd("interrupted");
    return result;
  }

  /**
   * Measures a candidate at a level that the load of the search does not have. The result counts as a measurement, but
   * not for the candidate.
   *
   * @throws SearchEnd after an interruption, and over the budget
   */
  async calibrate(candidate: Candidate, level: AnalyzeLevel): Promise<CandidateResult> {
    const key = calibrationKey(candidate, level);
    let result = this.#calibrations.get(key);
    if (result !== undefined) return result;
    this.#checkEnd();
    this.observer.onBegin?.(candidate, [level]);
    const { runs, fault } = await runCandidate(this, candidate, allLevels([level]), []);
    if (this.signal.aborted && runs.length === 0) throw new SearchEnd("interrupted");
    result = { candidate, runs, isCalibration: true, ...(fault !== undefined && { fault }) };
    this.#calibrations.set(key, result);
    this.#report(result);
    await this.#write();
    this.#checkHope(result);
    return result;
  }

  async #write(): Promise<void> {
    const { checkpoint } = this.#parts;
    if (checkpoint === undefined) return;
    const before = checkpoint.fault;
    await checkpoint.write([...this.#results.values(), ...this.#calibrations.values()]);
    if (before === undefined && checkpoint.fault !== undefined)
      this.observer.onCheckpointFault?.(checkpoint.fault);
  }

  #keep(key: string, result: CandidateResult): CandidateResult {
    this.#results.set(key, result);
    this.#report(result);
    return result;
  }

  #report(result: CandidateResult): void {
    this.expected = Math.max(0, this.expected - 1);
    this.observer.onResult?.(result);
  }

  /** Numbers count from 0, and go on after those of an interrupted search. The default configuration has none. */
  #numbered(candidate: Candidate, runs: readonly LevelRun[]): CandidateResult {
    if (Object.values(candidate).every(isDefault)) return { candidate, runs };
    const used = [...this.#results.values(), ...this.#earlier.values()].map(({ number }) => number ?? -1);
    const number = this.#earlier.get(keyOf(candidate))?.number ?? Math.max(-1, ...used) + 1;
    return { number, candidate, runs };
  }

  #checkEnd(): void {
    if (this.signal.aborted) throw new SearchEnd("interrupted");
    if (this.#parts.isOverBudget?.()) throw new SearchEnd("budget");
  }

  #checkHope({ fault, runs }: CandidateResult): void {
    if (fault === undefined || runs.length > 0 || this.measurements > 0) return;
    if (++this.#failedFirst < HOPELESS) return;
    throw new TritonError(
      "INTERNAL",
      `analyze: expected one of the first ${HOPELESS} configurations to answer requests, got: ${fault}`,
    );
  }
}

const keyOf = (candidate: Candidate) => candidateKey(candidate);

const calibrationKey = (candidate: Candidate, { mode, value }: AnalyzeLevel) =>
  `${candidateKey(candidate)} at ${mode} ${value}`;
