import type { ModelConfig, ModelInstanceGroup } from "@tritonjs/protocol";
import type { Analysis } from "../analysis.js";
import type { CandidateResult, Prediction } from "../candidate-result.js";
import type { AnalyzeLevel, LevelRun, ModelRun } from "../figures.js";
import { runAt } from "../level-walk.js";
import { fullConcurrency } from "../load.js";
import { candidatesOf, type ModelSpace } from "../search-space.js";
import {
  type Candidate,
  candidateKey,
  type VariantParameters,
  variantConfig,
} from "../variant-parameters.js";
import { calibrationVariants } from "./calibration-variants.js";
import { DurationModel, type MachineSetting } from "./duration-model.js";
import { PredictionCorrections, settingKey } from "./prediction-corrections.js";
import { simulateLoad } from "./simulated-candidate.js";
import { keepEstimates, nextToVerify, type VerificationChoice } from "./verification-choice.js";

/** Share by which the middle of three durations may be off their line before one more size is measured. */
const BEND = 0.15;

/** How much of the search is measured. */
export interface ModelSearchOptions {
  /** Number of real runs after the simulation. A further size for a bend of the durations is one of them. */
  readonly verify: number;
}

/**
 * Searches with a model of the machine. It measures a few batch sizes for each number of instances, threads and
 * isolation, simulates all candidates with the project's own scheduler, and verifies the best ones by real runs. Each
 * real run corrects the predictions of its setting. The estimate of a candidate is the weighted mean of its prediction
 * and its measurements. The measured candidate with the best estimate wins, so one lucky measurement does not decide.
 */
export async function modelSearch(
  analysis: Analysis,
  model: string,
  space: ModelSpace,
  options: ModelSearchOptions,
): Promise<DurationModel> {
  const search = new ModelSearch(analysis, model, space);
  await search.run(options.verify);
  return search.durations;
}

class ModelSearch {
  readonly durations = new DurationModel();
  readonly #analysis: Analysis;
  readonly #model: string;
  readonly #space: ModelSpace;
  readonly #config: ModelConfig;
  readonly #corrections = new PredictionCorrections();

  constructor(analysis: Analysis, model: string, space: ModelSpace) {
    this.#analysis = analysis;
    this.#model = model;
    this.#space = space;
    this.#config = analysis.machine.configs[model]!;
  }

  async run(verify: number): Promise<void> {
    const analysis = this.#analysis;
    const calibrations = calibrationVariants(this.#space, analysis.load, analysis.machine.batchSize);
    analysis.expected = 1 + calibrations.length + verify;
    await analysis.measure(analysis.defaultCandidate);
    analysis.observer.onPhase?.(`measuring ${calibrations.length} batch sizes for the model of the machine`);
    const runs: { parameters: VariantParameters; run: LevelRun }[] = [];
    for (const parameters of calibrations) {
      const run = await this.#calibrate(parameters);
      if (run !== undefined) runs.push({ parameters, run });
    }
    const between = this.#sizeOfBend(runs);
    if (between !== undefined) {
      const run = await this.#calibrate(between);
      if (run !== undefined) runs.push({ parameters: between, run });
    }
    if (runs.length === 0) return;
    const candidates = candidatesOf({ [this.#model]: this.#space });
    analysis.observer.onPhase?.(`simulating ${candidates.length} configurations`);
    for (const { parameters, run } of runs) await this.#addPair(parameters, run);
    const raw: Prediction[] = [];
    for (const candidate of candidates) {
      const runsOf = await this.#simulate(candidate);
      if (runsOf !== undefined) raw.push({ candidate, runs: runsOf });
    }
    this.#keepPredictions(raw);
    await this.#verify(raw, between === undefined ? verify : verify - 1);
  }

  /** Gives each real run to one of the leaders, and corrects the predictions by it. */
  async #verify(raw: readonly Prediction[], count: number): Promise<void> {
    const analysis = this.#analysis;
    analysis.observer.onPhase?.("verifying the best by real runs");
    const outside = await this.#predictMeasured(raw);
    const defaultKey = candidateKey(analysis.defaultCandidate);
    const choice: VerificationChoice = {
      analysis,
      // Other measured candidates outside of the space get no real runs, and stand for none of the space.
      predictions: [...raw, ...outside.filter(({ candidate }) => candidateKey(candidate) === defaultKey)],
      correct: (prediction) => this.#correct(prediction),
      settingOf: ({ candidate }) => settingKey(this.#settingOf(candidate[this.#model]!)),
    };
    const estimated: VerificationChoice = { ...choice, predictions: [...raw, ...outside] };
    keepEstimates(estimated);
    for (let left = Math.max(1, count); left > 0; left--) {
      const next = nextToVerify(choice);
      if (next === undefined) return;
      const { runs, rounds } = await analysis.measureAgain(next.candidate);
      const setting = this.#settingOf(next.candidate[this.#model]!);
      for (const run of rounds?.at(-1) ?? runs) {
        const simulated = runAt(next.runs, run.level)?.models[this.#model];
        if (simulated !== undefined) this.#corrections.add(setting, run.models[this.#model]!, simulated);
      }
      this.#keepPredictions(raw);
      keepEstimates(estimated);
    }
  }

  /** Predictions for measured candidates that are not in the space, such as the default configuration. */
  async #predictMeasured(raw: readonly Prediction[]): Promise<Prediction[]> {
    const known = new Set(raw.map(({ candidate }) => candidateKey(candidate)));
    const predictions: Prediction[] = [];
    for (const { candidate } of this.#analysis.results) {
      if (known.has(candidateKey(candidate))) continue;
      const runs = await this.#simulate(candidate);
      if (runs !== undefined) predictions.push({ candidate, runs });
    }
    return predictions;
  }

  /**
   * The variant of the first setting whose size lies in the middle of a bend: between the middle and the largest size if
   * the three measured durations are not on one line.
   */
  #sizeOfBend(runs: readonly { readonly parameters: VariantParameters }[]): VariantParameters | undefined {
    const [curve] = this.durations.curves;
    if (curve === undefined || curve.points.length !== 3) return undefined;
    const [low, middle, high] = curve.points.map(({ rows, ms }) => ({ rows, ms }));
    const share = (middle!.rows - low!.rows) / (high!.rows - low!.rows);
    const onLine = low!.ms + share * (high!.ms - low!.ms);
    if (Math.abs(middle!.ms / onLine - 1) < BEND) return undefined;
    const sizes = (this.#space.maxBatchSize ?? []).toSorted((a, b) => a - b);
    const key = settingKey(curve.setting);
    const ofCurve = runs.filter(({ parameters }) => settingKey(this.#settingOf(parameters)) === key);
    const [from, to] = ofCurve
      .map(({ parameters }) => sizes.indexOf(parameters.maxBatchSize ?? -1))
      .toSorted((a, b) => a - b)
      .slice(1);
    if (from === undefined || to === undefined || to - from < 2) return undefined;
    return { ...ofCurve[0]!.parameters, maxBatchSize: sizes[(from + to) >> 1]! };
  }

  /**
   * Runs a variant with a load that keeps all its instances busy, so that the time between two batches is the duration
   * of one. If the load of the search does that, the run is a measurement of the candidate too.
   */
  async #calibrate(parameters: VariantParameters): Promise<LevelRun | undefined> {
    const analysis = this.#analysis;
    const candidate = { [this.#model]: parameters };
    const full = fullConcurrency(analysis.capacityOf(candidate), analysis.machine.batchSize);
    const levels = analysis.levelsOf(candidate);
    const isFull = levels.some(({ mode, value }) => mode === "concurrency" && value >= full);
    const level: AnalyzeLevel = { mode: "concurrency", value: full };
    const { runs }: CandidateResult = isFull
      ? await analysis.measure(candidate)
      : await analysis.calibrate(candidate, level);
    const run = runs.findLast((one) => one.level.mode === "concurrency" && one.level.value >= full);
    const measured = run?.models[this.#model];
    if (run === undefined || measured === undefined) return undefined;
    const { meanRows, batchesPerSecond } = measured;
    if (meanRows === undefined || batchesPerSecond === undefined || !(batchesPerSecond > 0)) return undefined;
    const setting = this.#settingOf(parameters);
    this.durations.add(setting, meanRows, (1000 * setting.instances) / batchesPerSecond);
    return run;
  }

  async #addPair(parameters: VariantParameters, run: LevelRun): Promise<void> {
    const simulated = await this.#simulateAt(parameters, run.level);
    if (simulated === undefined) return;
    this.#corrections.add(this.#settingOf(parameters), run.models[this.#model]!, simulated);
  }

  async #simulate(candidate: Candidate): Promise<LevelRun[] | undefined> {
    const parameters = candidate[this.#model]!;
    const runs: LevelRun[] = [];
    for (const level of this.#analysis.levelsOf(candidate)) {
      const run = await this.#simulateAt(parameters, level);
      if (run === undefined) return undefined;
      runs.push({ level, models: { [this.#model]: run } });
    }
    return runs;
  }

  async #simulateAt(parameters: VariantParameters, level: AnalyzeLevel): Promise<ModelRun | undefined> {
    const setting = this.#settingOf(parameters);
    if (Number.isNaN(this.durations.duration(setting, 1))) return undefined;
    const config = variantConfig(this.#config, parameters);
    return simulateLoad({
      config: { ...config, instanceGroup: [{ ...PLAIN_GROUP, count: setting.instances }] },
      level,
      rows: this.#analysis.machine.batchSize,
      duration: (rows) => this.durations.duration(setting, rows),
      signal: this.#analysis.signal,
    });
  }

  /** A prediction with the corrections of the real runs of its setting. */
  #correct({ candidate, runs }: Prediction): Prediction {
    const setting = this.#settingOf(candidate[this.#model]!);
    return { candidate, runs: runs.map((run) => this.#corrections.correct(setting, run)) };
  }

  #keepPredictions(raw: readonly Prediction[]): void {
    for (const prediction of raw) {
      this.#analysis.predictions.set(candidateKey(prediction.candidate), this.#correct(prediction));
    }
  }

  #settingOf({ instances, isolation, threads }: VariantParameters): MachineSetting {
    const configured = this.#config.instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0);
    return {
      instances: instances ?? Math.max(1, configured),
      isolation: isolation ?? "",
      threads: threads ?? 0,
    };
  }
}

/** A group of instances that needs no device. */
const PLAIN_GROUP: ModelInstanceGroup = {
  name: "",
  kind: "KIND_CPU",
  count: 1,
  gpus: [],
  secondaryDevices: [],
  profile: [],
  passive: false,
  hostPolicy: "",
};
