import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";
import { reportFault } from "../report/write-report.js";
import {
  type AnalyzeLevel,
  type AnalyzeLoad,
  type AnalyzeMachine,
  type Candidate,
  type CandidateResult,
  type Capacity,
  candidateKey,
  compareResults,
  isDefault,
  type LevelRun,
  levelsOf,
  measurementCount,
  type Prediction,
  type Ranked,
  type SearchGoal,
  variantConfig,
} from "./candidate.js";
import {
  allLevels,
  firstRound,
  type LevelWalk,
  type RunContext,
  runCandidate,
  runInTurns,
  type Turn,
  type TurnEnd,
  withRound,
} from "./run-candidate.js";

/** Number of first candidates that may all fail before the search gives up. */
const HOPELESS = 3;

/** Measures candidates and remembers the results. Searches decide which candidates. */
export class Analysis {
  readonly goal: SearchGoal;
  readonly load: AnalyzeLoad;
  readonly predictions = new Map<string, Prediction>();
  /** Estimates of measured candidates, by their keys, from a search that has some. They decide the order of results. */
  readonly estimates = new Map<string, readonly LevelRun[]>();
  expected = 0;
  readonly #earlier: Map<string, CandidateResult>;
  readonly #results = new Map<string, CandidateResult>();
  /** Runs at other levels than those of the load. */
  readonly #calibrations: Map<string, CandidateResult>;
  #failedFirst = 0;

  /**
   * @param signal aborts the search
   * @param earlier results of an interrupted search
   */
  constructor(
    readonly machine: AnalyzeMachine,
    { goal, load }: { readonly goal: SearchGoal; readonly load: AnalyzeLoad },
    readonly signal: AbortSignal,
    readonly observer: AnalysisObserver,
    private readonly checkpoint?: Checkpoint,
    earlier: readonly CandidateResult[] = [],
  ) {
    this.goal = goal;
    this.load = load;
    this.#earlier = new Map(
      earlier.filter((one) => !one.isCalibration).map((one) => [candidateKey(one.candidate), one]),
    );
    this.#calibrations = new Map(
      earlier
        .filter((one) => one.isCalibration && one.runs.length > 0)
        .map((one) => [calibrationKey(one.candidate, one.runs[0]!.level), one]),
    );
  }

  get results(): readonly CandidateResult[] {
    return [...this.#results.values()];
  }

  /** Measured levels of all candidates, with those of the calibration. */
  get measurements(): number {
    return measurementCount(this.results) + measurementCount([...this.#calibrations.values()]);
  }

  get defaultCandidate(): Candidate {
    return Object.fromEntries(Object.keys(this.machine.configs).map((model) => [model, {}]));
  }

  resultOf(candidate: Candidate): CandidateResult | undefined {
    return this.#results.get(candidateKey(candidate));
  }

  /** Figures that decide the place of a measured candidate: its estimate, or else its measured runs. */
  estimateOf({ candidate, runs }: CandidateResult): Ranked {
    return { runs: this.estimates.get(candidateKey(candidate)) ?? runs };
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
    const key = candidateKey(candidate);
    const known = this.#results.get(key);
    if (known !== undefined) return known;
    const earlier = this.#earlier.get(key);
    if (earlier !== undefined && !earlier.isPartial) return this.#keep(key, firstRound(earlier));
    this.#checkEnd();
    this.observer.onBegin?.(candidate, this.levelsOf(candidate));
    const before = earlier?.runs ?? [];
    const { runs, fault, isPartial } = await runCandidate(this.#context, candidate, walk, { before });
    if (isPartial && runs.length === 0) throw new SearchEnd("interrupted");
    const result = this.#keep(key, {
      ...this.#numbered(candidate, runs),
      ...(fault !== undefined && { fault }),
      ...(isPartial && { isPartial }),
    });
    await this.#write();
    if (this.#isHopeless(result)) throw this.#hopeless(result);
    if (isPartial) throw new SearchEnd("interrupted");
    return result;
  }

  /** Measures further levels of a measured candidate. */
  async extend(candidate: Candidate, walk: LevelWalk): Promise<CandidateResult> {
    const known = this.#results.get(candidateKey(candidate))!;
    const next = walk(known.runs);
    if (next === undefined) return known;
    this.#checkEnd();
    this.observer.onBegin?.(candidate, [next]);
    // The walk may count its calls, so its first answer is used.
    let first: AnalyzeLevel | undefined = next;
    const rest: LevelWalk = (runs) => {
      const level = first ?? (this.observer.isOverBudget?.() ? undefined : walk(runs));
      first = undefined;
      return level;
    };
    const { runs, isPartial } = await runCandidate(this.#context, candidate, rest, { before: known.runs });
    const result = this.#keep(candidateKey(candidate), { ...known, runs });
    await this.#write();
    if (isPartial) throw new SearchEnd("interrupted");
    return result;
  }

  /**
   * Measures candidates in turns, unless that is done. One that is measured already gets one more measurement, and its
   * figures become the means of its measurements; if it fails, it loses its figures. A candidate at another level than
   * those of the load is a calibration: it counts as a measurement, but not for the candidate.
   *
   * @throws SearchEnd after an interruption, and over the budget
   * @throws TritonError if none of the first candidates works
   */
  async measureInTurns(turns: readonly Turn[]): Promise<void> {
    const open = turns.filter((turn) => !this.#takeEarlier(turn));
    const failed: CandidateResult[] = [];
    await runInTurns(
      {
        ...this.#context,
        isOver: () => this.#endsBy() !== undefined,
        onBegin: ({ candidate, levels }) => this.observer.onBegin?.(candidate, levels),
        onTurn: (share) => this.observer.onTurn?.(share),
        onEnd: async (end) => {
          const result = this.#keepTurns(end);
          await this.#write();
          if (result?.fault !== undefined) failed.push(result);
        },
      },
      open,
    );
    const last = failed.filter((result) => this.#isHopeless(result)).at(-1);
    if (last !== undefined) throw this.#hopeless(last);
    if (open.length > 0) this.#checkEnd();
  }

  calibrationOf(candidate: Candidate, level: AnalyzeLevel): CandidateResult | undefined {
    return this.#calibrations.get(calibrationKey(candidate, level));
  }

  /** Takes the measurement of an interrupted search, if there is one. */
  #takeEarlier({ candidate, levels, isCalibration }: Turn): boolean {
    if (isCalibration) return this.calibrationOf(candidate, levels[0]!) !== undefined;
    const key = candidateKey(candidate);
    const known = this.#results.get(key);
    const earlier = this.#earlier.get(key);
    if (known === undefined) {
      if (earlier === undefined || earlier.isPartial) return false;
      this.#keep(key, firstRound(earlier));
      return true;
    }
    const round = earlier?.rounds?.[known.rounds?.length ?? 1];
    if (round === undefined) return false;
    this.#keep(key, withRound(known, round));
    return true;
  }

  /** Undefined for an interrupted measurement that does not count. */
  #keepTurns({ turn, runs, fault, isPartial }: TurnEnd): CandidateResult | undefined {
    const { candidate, levels, isCalibration } = turn;
    const failed = fault === undefined ? {} : { fault };
    if (isCalibration) {
      if (isPartial) return undefined;
      const result = { candidate, runs, isCalibration: true, ...failed };
      this.#calibrations.set(calibrationKey(candidate, levels[0]!), result);
      this.#report(result);
      return result;
    }
    const key = candidateKey(candidate);
    const known = this.#results.get(key);
    if (known === undefined) {
      const partial = isPartial ? { isPartial } : {};
      return this.#keep(key, { ...this.#numbered(candidate, runs), ...failed, ...partial });
    }
    if (isPartial) return undefined;
    const { rounds: _, ...rest } = known;
    return this.#keep(key, fault === undefined ? withRound(known, runs) : { ...rest, runs: [], fault });
  }

  async #write(): Promise<void> {
    const { checkpoint } = this;
    if (checkpoint === undefined) return;
    const before = checkpoint.fault;
    await checkpoint.write([...this.#results.values(), ...this.#calibrations.values()]);
    if (before === undefined && checkpoint.fault !== undefined)
      this.observer.onCheckpointFault?.(checkpoint.fault);
  }

  #keep(key: string, result: CandidateResult): CandidateResult {
    const isFirst = !this.#results.has(key);
    this.#results.set(key, result);
    this.#report(result);
    const noise = result.runs[0]?.spread;
    if (isFirst && noise !== undefined && key === candidateKey(this.defaultCandidate)) {
      const percent = Math.round(noise * 100);
      this.observer.onPhase?.(
        `noise: the throughput of the default configuration varied by ${percent}% while it was measured`,
      );
    }
    return result;
  }

  #report(result: CandidateResult): void {
    this.expected = Math.max(0, this.expected - 1);
    this.observer.onResult?.(result);
  }

  /** Numbers count from 0, and continue after those of an interrupted search. The default configuration has none. */
  #numbered(candidate: Candidate, runs: readonly LevelRun[]): CandidateResult {
    if (Object.values(candidate).every(isDefault)) return { candidate, runs };
    const used = [...this.#results.values(), ...this.#earlier.values()].map(({ number }) => number ?? -1);
    const number = this.#earlier.get(candidateKey(candidate))?.number ?? Math.max(-1, ...used) + 1;
    return { number, candidate, runs };
  }

  get #context(): RunContext {
    return { machine: this.machine, signal: this.signal, now: () => this.observer.now() };
  }

  /** Why the search has to end now; undefined if it continues. */
  #endsBy(): "interrupted" | "budget" | undefined {
    if (this.signal.aborted) return "interrupted";
    return this.observer.isOverBudget?.() ? "budget" : undefined;
  }

  #checkEnd(): void {
    const reason = this.#endsBy();
    if (reason !== undefined) throw new SearchEnd(reason);
  }

  /** Whether one more candidate failed, and none of the first has worked. */
  #isHopeless({ fault, runs }: CandidateResult): boolean {
    if (fault === undefined || runs.length > 0 || this.measurements > 0) return false;
    return ++this.#failedFirst >= HOPELESS;
  }

  #hopeless({ fault }: CandidateResult): TritonError {
    return new TritonError(
      "INTERNAL",
      `analyze: expected one of the first ${this.#failedFirst} configurations to answer requests, got: ${fault}`,
    );
  }
}

const calibrationKey = (candidate: Candidate, { mode, value }: AnalyzeLevel) =>
  `${candidateKey(candidate)} at ${mode} ${value}`;

/** Follows a search, and decides when its time is over. */
export interface AnalysisObserver {
  now(): number;
  /** Whether the time for the search would be over before the end of the next measurement. @default false */
  isOverBudget?(): boolean;
  onBegin?(candidate: Candidate, levels: readonly AnalyzeLevel[]): void;
  /** Called after a turn of a candidate with its share of a measurement. */
  onTurn?(share: number): void;
  onResult?(result: CandidateResult): void;
  onPhase?(text: string): void;
  onCheckpointFault?(text: string): void;
}

/** Ends a search: it was interrupted, or its budget is used up. What was measured stays. */
export class SearchEnd extends Error {
  constructor(readonly reason: "interrupted" | "budget") {
    super(`the search ended early: ${reason}`);
  }
}

/** Version of the file; others are refused. */
const FORMAT = 1;

interface CheckpointFile {
  readonly format: number;
  readonly fingerprint: string;
  readonly results: readonly CandidateResult[];
}

/** File of everything that was measured, so that an interrupted search can continue. */
export class Checkpoint {
  readonly path: string;
  /** Text of the fault of the last write; undefined after a write that succeeded. */
  fault: string | undefined;

  /** @param fingerprint text that is equal for measurements that may be used together */
  constructor(
    private readonly folder: string,
    private readonly fingerprint: string,
  ) {
    this.path = join(folder, "checkpoint.json");
  }

  /**
   * Reads the results of an earlier search; none without a file.
   *
   * @throws TritonError INVALID_ARG for a file of another search, or one that cannot be read
   */
  async read(): Promise<readonly CandidateResult[]> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw invalidOption(`cannot read the checkpoint ${this.path}: ${(error as Error).message}`, error);
    }
    const advice = "remove the file, or give another --export-path";
    let file: CheckpointFile;
    try {
      file = JSON.parse(text, (_, value) => (value === NO_NUMBER ? Number.NaN : value)) as CheckpointFile;
    } catch (error) {
      const { message } = error as Error;
      throw invalidOption(`checkpoint ${this.path}: expected JSON, got ${message}; ${advice}`, error);
    }
    if (file.format !== FORMAT || !Array.isArray(file.results)) {
      throw invalidOption(
        `checkpoint ${this.path}: expected format ${FORMAT}, got ${file.format}; ${advice}`,
      );
    }
    if (file.fingerprint !== this.fingerprint) {
      throw invalidOption(
        `checkpoint ${this.path}: expected measurements of the same models and load, got those of another ` +
          `search; ${advice}`,
      );
    }
    return file.results;
  }

  /**
   * Writes the file, so that a crash leaves the old one or the new one. It does not throw, because a full disk must not
   * end the search: see `fault`.
   */
  async write(results: readonly CandidateResult[]): Promise<void> {
    const file: CheckpointFile = { format: FORMAT, fingerprint: this.fingerprint, results };
    const text = JSON.stringify(file, (_, value) => (Number.isNaN(value) ? NO_NUMBER : value), 1);
    try {
      await mkdir(this.folder, { recursive: true });
      await writeFile(`${this.path}.new`, text);
      await rename(`${this.path}.new`, this.path);
      this.fault = undefined;
    } catch (error) {
      this.fault = reportFault(this.path, error);
    }
  }
}

/** JSON has no NaN. */
const NO_NUMBER = "NaN";
