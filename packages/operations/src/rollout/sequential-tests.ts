/*
 * Tests that may be read at any time. Each one is an e-process: a running product of likelihood ratios whose
 * expectation is at most 1 while its null hypothesis holds. By Ville's inequality it exceeds 1/alpha with a probability
 * of at most alpha, however often it is read and however long it runs.
 *
 * References: Robbins, "Statistical methods related to the law of the iterated logarithm" (1970), for mixtures of
 * likelihood ratios; Johari, Koomen, Pekelis, Walsh, "Always valid inference" (2022), for their use in experiments;
 * Lindon and Malek, "Anytime-valid inference for multinomial count data" (2022), for events of unknown rate that are
 * assigned at random; Shin, Ramdas, Rinaldo, "E-detectors" (2024), for the mixture over starting points.
 */

/** Saved state of a test. */
export interface SavedTest {
  readonly steps: number;
  /** Logarithm of the wealth of each alternative; null for none yet. */
  readonly logs: readonly (number | null)[];
  readonly highest: number;
}

/**
 * An e-process that mixes several alternatives and all starting points. A fault may begin at any time, and the evidence
 * of a long time without one must not outweigh it. So a share of 1/(t(t+1)) of the stake is kept for the alternative
 * that begins with step t. The shares add up to 1, so the mixture is an e-process too.
 *
 * ```
 * wealth of an alternative:  M(t) = (M(t-1) + 1/(t(t+1))) * ratio(t)
 * evidence:                  mean of M(t) over the alternatives, and 1/(t+1), which has not been staked yet
 * ```
 */
class MixedStarts {
  #steps = 0;
  readonly #logs: Float64Array;
  #highest = 0;

  constructor(alternatives: number) {
    this.#logs = new Float64Array(alternatives).fill(Number.NEGATIVE_INFINITY);
  }

  /** @param logRatios logarithm of the likelihood ratio of this step, for each alternative */
  step(logRatios: readonly number[]): void {
    this.#steps++;
    const stake = -Math.log(this.#steps) - Math.log(this.#steps + 1);
    let sum = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < this.#logs.length; i++) {
      const wealth = logSum(this.#logs[i]!, stake) + logRatios[i]!;
      this.#logs[i] = wealth;
      sum = logSum(sum, wealth);
    }
    const evidence = logSum(sum - Math.log(this.#logs.length), -Math.log(this.#steps + 1));
    if (evidence > this.#highest) this.#highest = evidence;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Logarithm of the largest evidence so far. */
  get evidence(): number {
    return this.#highest;
  }

  save(): SavedTest {
    const logs = Array.from(this.#logs, (log) => (Number.isFinite(log) ? log : null));
    return { steps: this.#steps, logs, highest: this.#highest };
  }

  restore({ steps, logs, highest }: SavedTest): void {
    if (logs.length !== this.#logs.length) return;
    this.#steps = steps;
    this.#highest = highest;
    logs.forEach((log, i) => {
      this.#logs[i] = log ?? Number.NEGATIVE_INFINITY;
    });
  }
}

/** Logarithm of the sum of two numbers that are given by their logarithms. */
function logSum(a: number, b: number): number {
  const high = Math.max(a, b);
  if (high === Number.NEGATIVE_INFINITY) return high;
  return high + Math.log1p(Math.exp(Math.min(a, b) - high));
}

/** How many times as often the event happens to the new version, for each alternative. */
const TIMES_AS_OFTEN = [1.5, 2, 3, 5, 10, 30, 100];

/**
 * Tests whether an event happens more often to the requests of the new version. The requests are assigned at random, so
 * without a difference each event falls to the new version with the probability of its share, whatever the rate of the
 * event is and however it changes. A failure of both versions at once is therefore no evidence.
 */
export class EventTest {
  readonly #wealth = new MixedStarts(TIMES_AS_OFTEN.length);
  readonly #ratios: number[] = [];

  /**
   * @param isNew true if the event happened to the new version
   * @param share share of the requests that the new version gets, above 0 and below 1; others are not evidence
   */
  add(isNew: boolean, share: number): void {
    if (!(share > 0 && share < 1)) return;
    for (let i = 0; i < TIMES_AS_OFTEN.length; i++) {
      const times = TIMES_AS_OFTEN[i]!;
      const scale = -Math.log1p(share * (times - 1));
      this.#ratios[i] = isNew ? Math.log(times) + scale : scale;
    }
    this.#wealth.step(this.#ratios);
  }

  /** Logarithm of the evidence that the event is more frequent with the new version. */
  get evidence(): number {
    return this.#wealth.evidence;
  }

  save(): SavedTest {
    return this.#wealth.save();
  }

  restore(saved: SavedTest): void {
    this.#wealth.restore(saved);
  }
}

/** The rates of the alternatives, as multiples of the allowed rate. */
const TIMES_ALLOWED = [2, 4, 8, 16, 32, 64, 128];

/** Tests whether an event is more frequent than a given rate allows: answers that disagree. */
export class RateTest {
  readonly #wealth: MixedStarts;
  readonly #hit: number[];
  readonly #miss: number[];

  /** @param allowed rate that is not a fault, above 0 and below 1 */
  constructor(allowed: number) {
    const rates = TIMES_ALLOWED.map((times) => Math.min(times * allowed, (1 + allowed) / 2));
    this.#hit = rates.map((rate) => Math.log(rate / allowed));
    this.#miss = rates.map((rate) => Math.log((1 - rate) / (1 - allowed)));
    this.#wealth = new MixedStarts(rates.length);
  }

  add(happened: boolean): void {
    this.#wealth.step(happened ? this.#hit : this.#miss);
  }

  /** Logarithm of the evidence that the rate is above the allowed one. */
  get evidence(): number {
    return this.#wealth.evidence;
  }

  get count(): number {
    return this.#wealth.steps;
  }

  save(): SavedTest {
    return this.#wealth.save();
  }

  restore(saved: SavedTest): void {
    this.#wealth.restore(saved);
  }
}

/**
 * Logarithm of the evidence that the test number `index` of a family needs, so that all tests of the family together
 * raise a false alarm with a probability of at most `alpha`. The family may grow without a limit.
 *
 * @param index number of the test, from 1 on
 */
export function neededEvidence(alpha: number, index: number): number {
  return -Math.log(alpha) + Math.log(index) + Math.log(index + 1);
}
