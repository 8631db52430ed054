import { LatencyHistogram, OCTAVE_BOUNDS_MS } from "@tritonjs/core/internal";
import type { Tensor } from "@tritonjs/protocol";
import { DriftTest, elementAt, type InputDrift, type SavedDrift, type SavedSketch } from "./drift-sketch.js";
import { agrees, type OutputComparison } from "./output-agreement.js";
import { EventTest, neededEvidence, RateTest, type SavedTest } from "./sequential-tests.js";

/** Kinds of comparisons of a rollout. */
export type RolloutCheck = "errors" | "latency" | "agreement" | "drift" | "availability";

/** One reason against a version. */
export interface VerdictReason {
  readonly check: RolloutCheck;
  /** Subject: a class of requests, an output, or an input; empty for the version as a whole. */
  readonly subject: string;
  /** The reason in words, with the measured values. */
  readonly text: string;
}

/** Latencies of one class of requests in milliseconds; undefined without requests. Read to within 9%. */
export interface LatencyFigures {
  readonly class: string;
  readonly count: number;
  readonly p50: number | undefined;
  readonly p90: number | undefined;
  readonly p99: number | undefined;
}

/** Observations of one version in a rollout. */
export interface VersionFigures {
  readonly version: number;
  /** Requests that the rollout sent to the version and that are over; shadows are not among them. */
  readonly requests: number;
  readonly errors: number;
  /** Share of errors among the last requests, about 500. */
  readonly errorRate: number;
  readonly latency: readonly LatencyFigures[];
}

/** The agreement of an output of the two versions. */
export interface OutputAgreement {
  readonly output: string;
  /** Answers that were compared. */
  readonly compared: number;
  readonly disagreements: number;
}

/** The copies of requests that the new version got. */
export interface ShadowFigures {
  /** Copies that were answered. */
  readonly answered: number;
  readonly errors: number;
  /** Copies that were dropped, because an instance was busy. */
  readonly shed: number;
}

/** The judgement of a rollout: both versions side by side, and each reason against the new one. */
export interface Verdict {
  /** `rollback` once a check has found a fault; `healthy` until then. */
  readonly decision: "healthy" | "rollback";
  readonly reasons: readonly VerdictReason[];
  readonly old: VersionFigures;
  readonly new: VersionFigures;
  readonly agreement: readonly OutputAgreement[];
  readonly drift: readonly (InputDrift & { readonly input: string })[];
  readonly shadow: ShadowFigures;
  /** Strength of each check's evidence against the new version, from 0 to 1, at which it is a fault. */
  readonly evidence: Readonly<Record<"errors" | "latency" | "agreement", number>>;
}

/** Bounds above which a difference is a fault. */
export interface VerdictLimits {
  /** Probability of a false alarm over the whole rollout. */
  readonly alpha: number;
  /** Undefined for no check. */
  readonly errors: { readonly tolerance: number } | undefined;
  readonly latency: { readonly ratio: number } | undefined;
  readonly agreement:
    | {
        readonly by: OutputComparison | Readonly<Record<string, OutputComparison>> | undefined;
        readonly atLeast: number;
      }
    | undefined;
  readonly drift:
    | {
        readonly psi: number;
        readonly ks: number;
        readonly window: number;
        readonly reference: number | Readonly<Record<string, SavedSketch>>;
        readonly inputs: readonly string[] | undefined;
      }
    | undefined;
}

/** One request that is over, as the verdict sees it. */
export interface Observation {
  readonly isNew: boolean;
  readonly failed: boolean;
  /** Class of the request, for latencies. */
  readonly class: string;
  /** When it was accepted and when it was over, in milliseconds on the clock. */
  readonly start: number;
  readonly end: number;
  /** Key by which it keeps its version, as a hash; 0 for none. */
  readonly key: number;
}

/** Quantiles of the old version's latency whose excesses are counted. */
const QUANTILES = [0.5, 0.9, 0.99];
/** Requests of the old version before its quantiles are used. */
const FEWEST_LATENCIES = 50;
/** Requests between two looks at the quantiles of a class. */
const REFRESH_EVERY = 64;
/** Most classes of requests; others share one. */
const MOST_CLASSES = 16;
/** Requests over which a rate is averaged. */
const RATE_SPAN = 500;
/** Number of checks that share `alpha`. */
const CHECKS = 4;
/** Class of the computing times of requests and their shadows. */
const SHADOW_CLASS = "shadow";

/**
 * Events that are counted one at a time. Requests that overlap share a batch, a pause of garbage collection or an
 * outage, so an event is evidence only if its request began after the last counted event was over, and if its key is
 * another one.
 */
class EventStream {
  readonly test = new EventTest();
  #lastEnd = Number.NEGATIVE_INFINITY;
  #lastKey = 0;

  add({ isNew, start, end, key }: Observation, share: number): void {
    if (start < this.#lastEnd || (key !== 0 && key === this.#lastKey)) return;
    this.#lastEnd = end;
    this.#lastKey = key;
    this.test.add(isNew, share);
  }
}

class ArmCounts {
  requests = 0;
  errors = 0;
  errorRate = 0;

  add(failed: boolean): void {
    this.requests++;
    if (failed) this.errors++;
    const weight = 1 / Math.min(this.requests, RATE_SPAN);
    this.errorRate += weight * (Number(failed) - this.errorRate);
  }
}

class LatencyClass {
  readonly old = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  readonly fresh = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  readonly streams = QUANTILES.map(() => new EventStream());
  #seen = 0;
  #limits: readonly number[] | undefined;

  /**
   * Counts the latency of a request, and tests it against the quantiles that the old version had before. The latency of
   * the new version is divided by the allowed ratio first.
   */
  add(observation: Observation, ratio: number, share: number): void {
    const { isNew, start, end } = observation;
    const ms = end - start;
    const limits = this.limits();
    if (limits !== undefined) {
      const compared = isNew ? ms / ratio : ms;
      limits.forEach((limit, i) => {
        if (compared > limit) this.streams[i]!.add(observation, share);
      });
    }
    this.count(isNew, ms);
  }

  count(isNew: boolean, ms: number): void {
    (isNew ? this.fresh : this.old).observe(ms);
    if (!isNew) this.#seen++;
  }

  /** The quantiles of the old version, from time to time. */
  limits(): readonly number[] | undefined {
    const due = this.#seen === FEWEST_LATENCIES || this.#seen % REFRESH_EVERY === 0;
    if (this.#seen >= FEWEST_LATENCIES && (due || this.#limits === undefined)) {
      this.#limits = QUANTILES.map((share) => this.old.quantile(share)!);
    }
    return this.#limits;
  }

  /** Mean of the evidence of the quantiles, which is evidence too, as a logarithm. */
  get evidence(): number {
    const logs = this.streams.map(({ test }) => test.evidence);
    const high = Math.max(...logs);
    return high + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - high), 0) / logs.length);
  }
}

interface OutputTest {
  readonly test: RateTest;
  compared: number;
  disagreements: number;
}

/** Saved state of a verdict, as JSON. */
export interface SavedVerdict {
  readonly counts: readonly (readonly [requests: number, errors: number, errorRate: number])[];
  readonly errors: SavedTest;
  readonly classes: Readonly<
    Record<string, { readonly old: number[]; readonly fresh: number[]; readonly tests: readonly SavedTest[] }>
  >;
  readonly outputs: Readonly<
    Record<string, { readonly test: SavedTest; readonly compared: number; readonly disagreements: number }>
  >;
  readonly drift: Readonly<Record<string, SavedDrift>>;
  readonly shadow: ShadowFigures;
}

/** Collects what happens to the requests of both versions, and judges it. */
export class VerdictEvidence {
  readonly #limits: VerdictLimits;
  readonly #old = new ArmCounts();
  readonly #new = new ArmCounts();
  readonly #errors = new EventStream();
  readonly #classes = new Map<string, LatencyClass>();
  readonly #outputs = new Map<string, OutputTest>();
  readonly #drift = new Map<string, DriftTest>();
  readonly #shadow = { answered: 0, errors: 0, shed: 0 };
  #found: VerdictReason[] = [];

  constructor(
    limits: VerdictLimits,
    private readonly versions: { readonly old: number; readonly new: number },
  ) {
    this.#limits = limits;
  }

  /** Looks at the inputs of a request. @param random number from 0 to 1 */
  inputs(tensors: ReadonlyMap<string, Tensor>, random: () => number): void {
    const { drift, alpha } = this.#limits;
    if (drift === undefined) return;
    for (const [name, tensor] of tensors) {
      if (drift.inputs !== undefined && !drift.inputs.includes(name)) continue;
      let test = this.#drift.get(name);
      if (test === undefined) {
        test = this.#newDrift(name, drift, alpha);
        this.#drift.set(name, test);
      }
      const value = elementAt(tensor, random());
      if (value !== undefined) test.add(value);
    }
  }

  /** @param share share of the requests that the new version gets */
  request(observation: Observation, share: number): void {
    const { isNew, failed } = observation;
    (isNew ? this.#new : this.#old).add(failed);
    const { errors, latency } = this.#limits;
    if (failed && errors !== undefined) this.#errors.add(observation, share);
    if (!failed && latency !== undefined) {
      this.#classOf(observation.class).add(observation, latency.ratio, share);
    }
  }

  /**
   * Compares the answer to a request with that to its shadow. Each is undefined for an error, and the times are those of
   * computing it, in milliseconds.
   */
  shadowed(
    old: ReadonlyMap<string, Tensor> | undefined,
    fresh: ReadonlyMap<string, Tensor> | undefined,
    oldMs: number | undefined,
    freshMs: number | undefined,
    at: number,
  ): void {
    const { errors, latency, agreement } = this.#limits;
    this.#shadow.answered++;
    if (fresh === undefined) this.#shadow.errors++;
    const pair = { class: SHADOW_CLASS, start: at, end: at, key: 0 };
    if ((old === undefined) !== (fresh === undefined)) {
      // Of two answers to one request, either may be the failed one.
      if (errors !== undefined) this.#errors.add({ ...pair, isNew: fresh === undefined, failed: true }, 0.5);
      return;
    }
    if (old === undefined || fresh === undefined) return;
    if (latency !== undefined && oldMs !== undefined && freshMs !== undefined) {
      const times = this.#classOf(SHADOW_CLASS);
      times.limits()?.forEach((limit, i) => {
        const isSlow = [oldMs > limit, freshMs / latency.ratio > limit];
        if (isSlow[0] !== isSlow[1])
          times.streams[i]!.add({ ...pair, isNew: isSlow[1]!, failed: false }, 0.5);
      });
      times.count(false, oldMs);
      times.count(true, freshMs);
    }
    if (agreement === undefined) return;
    for (const [name, tensor] of old) {
      const output = this.#outputOf(name, agreement.atLeast);
      const other = fresh.get(name);
      const same = other !== undefined && agrees(tensor, other, name, comparisonFor(agreement.by, name));
      output.compared++;
      if (!same) output.disagreements++;
      output.test.add(!same);
    }
  }

  shed(): void {
    this.#shadow.shed++;
  }

  /** Adds a reason of another kind: the new version is gone. */
  found(reason: VerdictReason): void {
    this.#found.push(reason);
  }

  get hasFault(): boolean {
    return this.reasons().length > 0;
  }

  /** The distributions of the inputs so far, as the reference of a later rollout. */
  get references(): Record<string, SavedSketch> {
    const all: Record<string, SavedSketch> = {};
    for (const [name, test] of this.#drift) {
      const { reference } = test;
      if (reference !== undefined) all[name] = reference;
    }
    return all;
  }

  reasons(): VerdictReason[] {
    return [
      ...this.#found,
      ...this.#errorReasons(),
      ...this.#latencyReasons(),
      ...this.#agreementReasons(),
      ...this.#driftReasons(),
    ];
  }

  verdict(): Verdict {
    const reasons = this.reasons();
    return {
      decision: reasons.length > 0 ? "rollback" : "healthy",
      reasons,
      old: this.#figures("old"),
      new: this.#figures("new"),
      agreement: [...this.#outputs].map(([output, { compared, disagreements }]) => ({
        output,
        compared,
        disagreements,
      })),
      drift: [...this.#drift].map(([input, test]) => ({ input, ...test.state })),
      shadow: { ...this.#shadow },
      evidence: {
        errors: strength(this.#errors.test.evidence, this.#needed(1)),
        latency: Math.max(
          0,
          ...[...this.#classes.values()].map((one, i) => strength(one.evidence, this.#needed(i + 1))),
        ),
        agreement: Math.max(
          0,
          ...[...this.#outputs.values()].map(({ test }, i) => strength(test.evidence, this.#needed(i + 1))),
        ),
      },
    };
  }

  save(): SavedVerdict {
    const counts = [this.#old, this.#new].map(({ requests, errors, errorRate }) => {
      return [requests, errors, errorRate] as const;
    });
    return {
      counts,
      errors: this.#errors.test.save(),
      classes: Object.fromEntries(
        [...this.#classes].map(([name, { old, fresh, streams }]) => [
          name,
          { old: old.counts(), fresh: fresh.counts(), tests: streams.map(({ test }) => test.save()) },
        ]),
      ),
      outputs: Object.fromEntries(
        [...this.#outputs].map(([name, { test, compared, disagreements }]) => [
          name,
          { test: test.save(), compared, disagreements },
        ]),
      ),
      drift: Object.fromEntries([...this.#drift].map(([name, test]) => [name, test.save()])),
      shadow: { ...this.#shadow },
    };
  }

  restore({ counts, errors, classes, outputs, drift, shadow }: SavedVerdict): void {
    [this.#old, this.#new].forEach((arm, i) => {
      [arm.requests, arm.errors, arm.errorRate] = counts[i] ?? [0, 0, 0];
    });
    this.#errors.test.restore(errors);
    for (const [name, saved] of Object.entries(classes)) {
      const one = this.#classOf(name);
      one.old.restore(saved.old);
      one.fresh.restore(saved.fresh);
      one.streams.forEach(({ test }, i) => {
        const savedTest = saved.tests[i];
        if (savedTest !== undefined) test.restore(savedTest);
      });
    }
    const { agreement, drift: limits, alpha } = this.#limits;
    if (agreement !== undefined) {
      for (const [name, { test, ...numbers }] of Object.entries(outputs)) {
        const output = this.#outputOf(name, agreement.atLeast);
        Object.assign(output, numbers);
        output.test.restore(test);
      }
    }
    if (limits !== undefined) {
      for (const [name, saved] of Object.entries(drift)) {
        const test = this.#newDrift(name, limits, alpha);
        test.restore(saved);
        this.#drift.set(name, test);
      }
    }
    Object.assign(this.#shadow, shadow);
  }

  #figures(arm: "old" | "new"): VersionFigures {
    const { requests, errors, errorRate } = arm === "old" ? this.#old : this.#new;
    const latency = [...this.#classes].map(([name, one]) => {
      const times = arm === "old" ? one.old : one.fresh;
      const [p50, p90, p99] = QUANTILES.map((share) => times.quantile(share));
      return { class: name, count: times.total, p50, p90, p99 };
    });
    return { version: this.versions[arm], requests, errors, errorRate, latency };
  }

  /** Logarithm of the evidence that the check needs for its subject number `index`. */
  #needed(index: number): number {
    return neededEvidence(this.#limits.alpha / CHECKS, index);
  }

  #errorReasons(): VerdictReason[] {
    const { errors } = this.#limits;
    if (errors === undefined || this.#errors.test.evidence < this.#needed(1)) return [];
    const [before, now] = [this.#old.errorRate, this.#new.errorRate];
    const { answered, errors: failed } = this.#shadow;
    const shadowRate = answered === 0 ? 0 : failed / answered;
    if (Math.max(now, shadowRate) - before < errors.tolerance) return [];
    const text =
      `${percent(Math.max(now, shadowRate))} of the requests to version ${this.versions.new} failed, ` +
      `and ${percent(before)} of those to version ${this.versions.old}`;
    return [{ check: "errors", subject: "", text }];
  }

  #latencyReasons(): VerdictReason[] {
    const { latency } = this.#limits;
    if (latency === undefined) return [];
    return [...this.#classes].flatMap(([name, one], i): VerdictReason[] => {
      if (one.evidence < this.#needed(i + 1)) return [];
      const figures = (times: LatencyHistogram) =>
        `${QUANTILES.map((share) => milliseconds(times.quantile(share))).join(" / ")} ms`;
      const text =
        `requests of class '${name}' took ${figures(one.fresh)} (p50 / p90 / p99) with version ${this.versions.new}, ` +
        `and ${figures(one.old)} with version ${this.versions.old}`;
      return [{ check: "latency", subject: name, text }];
    });
  }

  #agreementReasons(): VerdictReason[] {
    const { agreement } = this.#limits;
    if (agreement === undefined) return [];
    return [...this.#outputs].flatMap(([name, { test, compared, disagreements }], i): VerdictReason[] => {
      if (test.evidence < this.#needed(i + 1)) return [];
      const text =
        `output '${name}' of version ${this.versions.new} disagreed in ${disagreements} of ${compared} answers: ` +
        `expected at least ${percent(agreement.atLeast)} agreement`;
      return [{ check: "agreement", subject: name, text }];
    });
  }

  #driftReasons(): VerdictReason[] {
    return [...this.#drift].flatMap(([name, test]): VerdictReason[] => {
      const { drifted, psi, ks } = test.state;
      if (!drifted) return [];
      const text = `input '${name}' has drifted: PSI ${psi.toFixed(2)}, Kolmogorov-Smirnov distance ${ks.toFixed(2)}`;
      return [{ check: "drift", subject: name, text }];
    });
  }

  #classOf(name: string): LatencyClass {
    const known = this.#classes.get(name);
    if (known !== undefined) return known;
    if (this.#classes.size >= MOST_CLASSES && name !== "other") return this.#classOf("other");
    const one = new LatencyClass();
    this.#classes.set(name, one);
    return one;
  }

  #outputOf(name: string, atLeast: number): OutputTest {
    let output = this.#outputs.get(name);
    if (output === undefined) {
      output = { test: new RateTest(1 - atLeast), compared: 0, disagreements: 0 };
      this.#outputs.set(name, output);
    }
    return output;
  }

  #newDrift(name: string, drift: NonNullable<VerdictLimits["drift"]>, alpha: number): DriftTest {
    const { reference } = drift;
    const given = typeof reference === "object" ? reference[name] : undefined;
    const limits = { ...drift, reference: typeof reference === "number" ? reference : drift.window * 2 };
    return new DriftTest(limits, alpha / CHECKS, this.#drift.size + 1, given);
  }
}

function comparisonFor(
  by: OutputComparison | Readonly<Record<string, OutputComparison>> | undefined,
  output: string,
): OutputComparison | undefined {
  if (typeof by !== "object" || "absolute" in by || "relative" in by)
    return by as OutputComparison | undefined;
  return (by as Readonly<Record<string, OutputComparison>>)[output];
}

function strength(evidence: number, needed: number): number {
  return Math.min(1, Math.max(0, evidence / needed));
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0 && share < 0.001 ? 3 : 1)}%`;
}

function milliseconds(ms: number | undefined): string {
  return ms === undefined ? "-" : String(Number(ms.toPrecision(3)));
}
