import type { ModelConfig } from "@tritonjs/protocol";
import type { Analysis } from "./analysis.js";
import {
  type AnalyzeLevel,
  type AnalyzeLoad,
  busyConcurrency,
  type Candidate,
  type CandidateResult,
  candidateKey,
  candidatesOf,
  canonical,
  compareResults,
  fullConcurrency,
  type LevelRun,
  type MetricTag,
  type ModelRun,
  type ModelSpace,
  PARAMETER_NAMES,
  PLAIN_GROUP,
  type Prediction,
  type Ranked,
  type SearchGoal,
  type VariantParameters,
  variantConfig,
} from "./candidate.js";
import { meanRun, runAt, type Turn } from "./run-candidate.js";
import {
  DurationModel,
  type MachineSetting,
  PredictionCorrections,
  settingKey,
  simulateLoad,
} from "./simulated-candidate.js";

/**
 * Searches with a model of the machine. It measures a few batch sizes for each number of instances and threads, and two
 * for each further isolation. It simulates all candidates with the project's own scheduler, and verifies the best ones
 * by real runs. The measurements of each phase are taken in turns. The estimate of a candidate is the mean of its
 * prediction and its measurements. The measured candidate with the best estimate wins, so one lucky measurement does not
 * decide.
 */
export async function modelSearch(
  analysis: Analysis,
  model: string,
  space: ModelSpace,
  { verify }: { readonly verify: number },
): Promise<void> {
  await new ModelSearch(analysis, model, space).run(verify);
}

class ModelSearch {
  readonly #durations = new DurationModel();
  readonly #config: ModelConfig;
  readonly #corrections = new PredictionCorrections();

  constructor(
    private readonly analysis: Analysis,
    private readonly model: string,
    private readonly space: ModelSpace,
  ) {
    this.#config = analysis.machine.configs[model]!;
  }

  async run(verify: number): Promise<void> {
    const analysis = this.analysis;
    const calibrations = calibrationVariants(this.space, analysis.load, analysis.machine.batchSize).map(
      (parameters) => ({ parameters, turn: this.#turnOf(parameters) }),
    );
    analysis.expected = 1 + calibrations.length + verify;
    const { defaultCandidate } = analysis;
    analysis.observer.onPhase?.(
      `measuring the default and ${calibrations.length} batch sizes in turns, for the model of the machine`,
    );
    await analysis.measureInTurns([
      { candidate: defaultCandidate, levels: analysis.levelsOf(defaultCandidate) },
      ...calibrations.map(({ turn }) => turn),
    ]);
    const runs = calibrations.flatMap(({ parameters, turn }) => {
      const run = this.#addDuration(parameters, turn);
      return run === undefined ? [] : [{ parameters, run }];
    });
    if (runs.length === 0) return;
    const candidates = candidatesOf({ [this.model]: this.space });
    analysis.observer.onPhase?.(`simulating ${candidates.length} configurations`);
    for (const { parameters, run } of runs) await this.#addPair(parameters, run);
    const raw: Prediction[] = [];
    for (const candidate of candidates) {
      const runsOf = await this.#simulate(candidate);
      if (runsOf !== undefined) raw.push({ candidate, runs: runsOf });
    }
    const predictions = raw.map((prediction) => this.#correct(prediction));
    for (const one of predictions) analysis.predictions.set(candidateKey(one.candidate), one);
    const outside = (await this.#predictMeasured(raw)).map((prediction) => this.#correct(prediction));
    await this.#verify(predictions, outside, verify);
  }

  /** Measures the candidates with the best estimates in turns. Where one fails, the next best one follows. */
  async #verify(
    predictions: readonly Prediction[],
    outside: readonly Prediction[],
    count: number,
  ): Promise<void> {
    const analysis = this.analysis;
    analysis.observer.onPhase?.("verifying the best by real runs in turns");
    const defaultKey = candidateKey(analysis.defaultCandidate);
    const estimates = new CandidateEstimates(analysis, [...predictions, ...outside]);
    // Other measured candidates outside of the space get no real runs, and stand for none of the space.
    const eligible = [
      ...predictions,
      ...outside.filter(({ candidate }) => candidateKey(candidate) === defaultKey),
    ];
    estimates.keep();
    for (let left = Math.max(1, count); left > 0; ) {
      const leaders = leadersOf(estimates, eligible, left, (prediction) =>
        settingKey(this.#settingOf(prediction.candidate[this.model]!)),
      );
      if (leaders.length === 0) return;
      await analysis.measureInTurns(
        leaders.map(({ candidate }) => ({ candidate, levels: analysis.levelsOf(candidate) })),
      );
      for (const { candidate } of leaders) {
        if (analysis.resultOf(candidate)?.fault === undefined) left--;
        estimates.verified(candidate);
      }
      estimates.keep();
    }
  }

  async #predictMeasured(raw: readonly Prediction[]): Promise<Prediction[]> {
    const known = new Set(raw.map(({ candidate }) => candidateKey(candidate)));
    const predictions: Prediction[] = [];
    for (const { candidate } of this.analysis.results) {
      if (known.has(candidateKey(candidate))) continue;
      const runs = await this.#simulate(candidate);
      if (runs !== undefined) predictions.push({ candidate, runs });
    }
    return predictions;
  }

  /**
   * A variant with a load that keeps all its instances busy, so that the time between two batches of an instance is the
   * duration of one. If the load of the search does that, the run is a measurement of the candidate too. A load that
   * fills each instance only once counts as such: clients that send again after each answer fill it again.
   */
  #turnOf(parameters: VariantParameters): Turn {
    const analysis = this.analysis;
    const candidate = { [this.model]: parameters };
    const capacity = analysis.capacityOf(candidate);
    const { batchSize } = analysis.machine;
    const busy = busyConcurrency(capacity, batchSize);
    const levels = analysis.levelsOf(candidate);
    const isBusy = levels.some(({ mode, value }) => mode === "concurrency" && value >= busy);
    if (isBusy) return { candidate, levels };
    const value = fullConcurrency(capacity, batchSize);
    return { candidate, levels: [{ mode: "concurrency", value }], isCalibration: true };
  }

  #addDuration(
    parameters: VariantParameters,
    { candidate, levels, isCalibration }: Turn,
  ): LevelRun | undefined {
    const analysis = this.analysis;
    const result = isCalibration
      ? analysis.calibrationOf(candidate, levels[0]!)
      : analysis.resultOf(candidate);
    // The last level is the one with the most requests in flight.
    const run = result?.runs.findLast(({ level }) => level.mode === "concurrency");
    const measured = run?.models[this.model];
    if (run === undefined || measured === undefined) return undefined;
    const { meanRows, batchesPerSecond } = measured;
    if (meanRows === undefined || batchesPerSecond === undefined || !(batchesPerSecond > 0)) return undefined;
    const setting = this.#settingOf(parameters);
    this.#durations.add(setting, meanRows, (1000 * setting.instances) / batchesPerSecond);
    return run;
  }

  async #addPair(parameters: VariantParameters, run: LevelRun): Promise<void> {
    const simulated = await this.#simulateAt(parameters, run.level);
    if (simulated === undefined) return;
    this.#corrections.add(this.#settingOf(parameters), run.models[this.model]!, simulated);
  }

  async #simulate(candidate: Candidate): Promise<LevelRun[] | undefined> {
    const parameters = candidate[this.model]!;
    const runs: LevelRun[] = [];
    for (const level of this.analysis.levelsOf(candidate)) {
      const run = await this.#simulateAt(parameters, level);
      if (run === undefined) return undefined;
      runs.push({ level, models: { [this.model]: run } });
    }
    return runs;
  }

  async #simulateAt(parameters: VariantParameters, level: AnalyzeLevel): Promise<ModelRun | undefined> {
    const setting = this.#settingOf(parameters);
    if (Number.isNaN(this.#durations.duration(setting, 1))) return undefined;
    const config = variantConfig(this.#config, parameters);
    return simulateLoad({
      config: { ...config, instanceGroup: [{ ...PLAIN_GROUP, kind: "KIND_CPU", count: setting.instances }] },
      level,
      rows: this.analysis.machine.batchSize,
      duration: (rows) => this.#durations.duration(setting, rows),
      signal: this.analysis.signal,
    });
  }

  #correct({ candidate, runs }: Prediction): Prediction {
    const setting = this.#settingOf(candidate[this.model]!);
    return { candidate, runs: runs.map((run) => this.#corrections.correct(setting, run)) };
  }

  #settingOf({ instances, isolation, threads }: VariantParameters): MachineSetting {
    const configured = this.#config.instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0);
    return {
      instances: instances ?? Math.max(1, configured),
      isolation: isolation === "default" ? "" : (isolation ?? ""),
      threads: threads ?? 0,
    };
  }
}

/**
 * Variants that show how long batches take: a few sizes for each setting that changes the duration. They have no delay,
 * so that some of them are candidates too.
 */
function calibrationVariants(space: ModelSpace, load: AnalyzeLoad, batchSize: number): VariantParameters[] {
  const settings: VariantParameters[][] = [];
  const numbers = orKept(endsAndMiddle(space.instances ?? []));
  for (const [place, isolation] of orKept(space.isolation).entries()) {
    // A further isolation differs by what a message costs, so one number of instances and threads shows its share.
    for (const threads of place === 0 ? orKept(space.threads) : orKept(space.threads).slice(0, 1)) {
      for (const instances of place === 0 ? numbers : numbers.slice(-1)) {
        const sizes = usefulSizes(space, load, batchSize, instances);
        // The first setting gives the shape of the curve.
        const chosen = settings.length === 0 ? shapeOf(sizes) : [...new Set([sizes[0], sizes.at(-1)])];
        settings.push(
          orKept(chosen.filter((size) => size !== undefined)).map((maxBatchSize) =>
            canonical({
              ...(instances !== undefined && { instances }),
              ...(isolation !== undefined && { isolation }),
              ...(maxBatchSize !== undefined && { maxBatchSize }),
              ...(space.queueDelayMicroseconds !== undefined && { queueDelayMicroseconds: 0 }),
              ...(space.preferredBatchSizes !== undefined && { preferredBatchSizes: [] }),
              ...(space.targetLatencyMs !== undefined && { targetLatencyMs: 0 }),
              ...(space.deadlineMs !== undefined && { deadlineMs: 0 }),
              ...(threads !== undefined && { threads }),
            }),
          ),
        );
      }
    }
  }
  return settings.flat();
}

/**
 * Sizes of the space with which the load keeps all instances busy, so that the run is a measurement of the candidate
 * too. Only the smallest size may be larger.
 */
function usefulSizes(
  { maxBatchSize = [] }: ModelSpace,
  load: AnalyzeLoad,
  batchSize: number,
  instances = 1,
): number[] {
  const sizes = maxBatchSize.toSorted((a, b) => a - b);
  if (load.kind !== "levels" || load.levels.some(({ mode }) => mode !== "concurrency")) return sizes;
  const most = Math.max(...load.levels.map(({ value }) => value));
  return sizes.filter(
    (maxBatchSize, i) => i === 0 || busyConcurrency({ maxBatchSize, instances }, batchSize) <= most,
  );
}

/** The first, the middle and the last value, and the one between the two larger ones, where the curve may bend. */
function shapeOf(values: readonly number[]): number[] {
  const last = values.length - 1;
  const middle = (last + 1) >> 1;
  const places = new Set([0, middle, (middle + last) >> 1, last]);
  return values.filter((_, i) => places.has(i));
}

function endsAndMiddle<Value>(values: readonly Value[]): Value[] {
  if (values.length < 3) return [...values];
  return [values[0]!, values[values.length >> 1]!, values.at(-1)!];
}

/** The configured value, which is undefined, where there are no values. */
function orKept<Value>(values: readonly Value[] = []): readonly (Value | undefined)[] {
  return values.length === 0 ? [undefined] : values;
}

/** The speed of the machine is the same for all candidates. */
const MACHINE = { instances: 0, isolation: "", threads: 0 };

/**
 * Expectation for each candidate: the mean of its prediction and its measurements. The machine may have had another
 * speed while the candidates were verified. So all that is known from before is converted: by the mean factor between
 * what was measured of the verified candidates and what was expected of them.
 */
class CandidateEstimates {
  readonly #verified = new Set<string>();

  constructor(
    readonly analysis: Analysis,
    private readonly predictions: readonly Prediction[],
  ) {}

  /** Tells that the last measurement of a candidate is the one that verifies it. */
  verified(candidate: Candidate): void {
    this.#verified.add(candidateKey(candidate));
  }

  isVerified(candidate: Candidate): boolean {
    return this.#verified.has(candidateKey(candidate));
  }

  of(prediction: Prediction): Ranked {
    return this.#of(prediction, this.#speed());
  }

  /** Gives the analysis the estimates of the measured candidates. */
  keep(): void {
    const speed = this.#speed();
    for (const prediction of this.predictions) {
      const result = this.analysis.resultOf(prediction.candidate);
      if (result === undefined || result.runs.length === 0) continue;
      this.analysis.estimates.set(candidateKey(prediction.candidate), this.#of(prediction, speed).runs);
    }
  }

  #of(prediction: Prediction, speed: PredictionCorrections): Ranked {
    const result = this.analysis.resultOf(prediction.candidate);
    const before = this.#before(prediction, result).map((run) =>
      withMemoryOf([run], { ...run, ...speed.correct(MACHINE, run) }),
    );
    if (result === undefined) return { runs: before };
    const verifying = this.isVerified(prediction.candidate) ? roundsOf(result).at(-1)! : [];
    return {
      runs: before.map((run) => {
        const verified = runAt(verifying, run.level);
        return withMemoryOf(result.runs, verified === undefined ? run : meanRun(run, verified));
      }),
    };
  }

  #before(prediction: Prediction, result: CandidateResult | undefined): LevelRun[] {
    if (result === undefined) return [...prediction.runs];
    const rounds = this.isVerified(prediction.candidate) ? roundsOf(result).slice(0, -1) : roundsOf(result);
    return result.runs.flatMap(({ level }) => {
      const [first, ...others] = [prediction.runs, ...rounds].flatMap((runs) => runAt(runs, level) ?? []);
      return first === undefined ? [] : others.reduce(meanRun, first);
    });
  }

  /** Factors between measured and expected figures of the verified candidates. */
  #speed(): PredictionCorrections {
    const speed = new PredictionCorrections();
    for (const prediction of this.predictions) {
      const result = this.analysis.resultOf(prediction.candidate);
      if (result === undefined || result.fault !== undefined || !this.isVerified(prediction.candidate))
        continue;
      const verifying = roundsOf(result).at(-1)!;
      for (const { level, models } of this.#before(prediction, result)) {
        const measured = runAt(verifying, level)?.models ?? {};
        for (const [model, expected] of Object.entries(models)) {
          if (measured[model] !== undefined) speed.add(MACHINE, measured[model], expected);
        }
      }
    }
    return speed;
  }
}

function roundsOf({ rounds, runs }: CandidateResult): readonly (readonly LevelRun[])[] {
  return rounds ?? [runs];
}

/** An estimate with the memory of other runs, because memory does not vary. */
function withMemoryOf(runs: readonly LevelRun[], estimate: LevelRun): LevelRun {
  const measured = runAt(runs, estimate.level)?.models ?? {};
  const models = Object.entries(estimate.models).map(([model, run]) => {
    const { cpu_used_ram } = measured[model]?.figures ?? run.figures;
    return [model, { ...run, figures: { ...run.figures, cpu_used_ram } }] as const;
  });
  return { ...estimate, models: Object.fromEntries(models) };
}

/** Candidates whose predictions differ less than this behave alike, so that one of them is verified. */
const ALIKE = 0.005;

interface Contender {
  readonly prediction: Prediction;
  readonly estimate: Ranked;
  readonly isMeasured: boolean;
}

/**
 * The candidates with the best estimates that are not verified yet, the best one first. A candidate that has failed is
 * left out, and so is an unmeasured one that is predicted to behave like a measured one or like a leader.
 *
 * @param settingOf a text that is equal for candidates whose predictions have the same corrections
 */
function leadersOf(
  estimates: CandidateEstimates,
  predictions: readonly Prediction[],
  count: number,
  settingOf: (prediction: Prediction) => string,
): Prediction[] {
  const { analysis } = estimates;
  const contenders = predictions
    .filter(
      ({ candidate }) =>
        analysis.resultOf(candidate)?.fault === undefined && !estimates.isVerified(candidate),
    )
    .map((prediction): Contender => {
      const isMeasured = analysis.resultOf(prediction.candidate) !== undefined;
      return { prediction, estimate: estimates.of(prediction), isMeasured };
    })
    // Of equal estimates, the plainer candidate is first.
    .toSorted((a, b) => compareResults(b.estimate, a.estimate, analysis.goal) || weightOf(a) - weightOf(b));
  const leaders: Contender[] = [];
  const measured = contenders.filter(({ isMeasured }) => isMeasured);
  const areAlike = ({ prediction: one }: Contender, { prediction: other }: Contender) =>
    settingOf(one) === settingOf(other) && behavesLike(one.runs, other.runs, analysis.goal);
  for (const one of contenders) {
    if (leaders.length === count) break;
    const others = one.isMeasured ? [] : [...measured, ...leaders];
    if (!others.some((other) => areAlike(one, other))) leaders.push(one);
  }
  return leaders.map(({ prediction }) => prediction);
}

/** Whether two candidates are predicted to be alike in all that the goal looks at. */
function behavesLike(one: readonly LevelRun[], other: readonly LevelRun[], goal: SearchGoal): boolean {
  const { objectives, constraints, modelConstraints } = goal;
  return one.every((run, i) =>
    Object.entries(run.models).every(([model, { figures: mine }]) => {
      const figures = other[i]?.models[model]?.figures;
      if (figures === undefined) return false;
      const tags = Object.keys({
        ...objectives,
        ...constraints,
        ...modelConstraints?.[model],
      }) as MetricTag[];
      return tags.every((tag) => Math.abs(mine[tag] - figures[tag]) <= ALIKE * Math.abs(figures[tag]));
    }),
  );
}

/** Number of parameters with an effect: of equal predictions, the plainer configuration goes first. */
function weightOf({ prediction }: Contender): number {
  return Object.values(prediction.candidate).reduce(
    (sum, parameters) =>
      sum +
      PARAMETER_NAMES.filter((name) => {
        const value = parameters[name];
        return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== 0;
      }).length,
    0,
  );
}
