import type { Analysis } from "../analysis.js";
import type { CandidateResult, Prediction } from "../candidate-result.js";
import type { LevelRun } from "../figures.js";
import { runAt } from "../level-walk.js";
import { meanRun } from "../repeated-run.js";
import type { Ranked } from "../result-order.js";
import { type Candidate, candidateKey } from "../variant-parameters.js";
import { PredictionCorrections } from "./prediction-corrections.js";

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
