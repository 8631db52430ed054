import type { Analysis } from "./analysis.js";
import type { LevelRun, MetricTag, SearchGoal } from "./goal.js";
import { type CandidateResult, compareResults, type Prediction, type Ranked } from "./machine.js";
import { meanRun, runAt } from "./run-candidate.js";
import { PredictionCorrections } from "./simulated-candidate.js";
import { type Candidate, candidateKey, PARAMETER_NAMES } from "./variant-parameters.js";

/** The speed of the machine is the same for all candidates. */
const MACHINE = { instances: 0, isolation: "", threads: 0 };

/**
 * What is expected of each candidate: the mean of its prediction and its measurements. The machine may have had another
 * speed while the candidates were verified. So all that is known from before is converted: by the mean factor between
 * what was measured of the verified candidates and what was expected of them.
 */
export class CandidateEstimates {
  readonly analysis: Analysis;
  readonly #predictions: readonly Prediction[];
  readonly #verified = new Set<string>();

  constructor(analysis: Analysis, predictions: readonly Prediction[]) {
    this.analysis = analysis;
    this.#predictions = predictions;
  }

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
    for (const prediction of this.#predictions) {
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

  /** What was expected of a candidate before it was verified. */
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
    for (const prediction of this.#predictions) {
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
export function leadersOf(
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
