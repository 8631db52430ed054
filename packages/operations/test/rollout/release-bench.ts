import type { InferRequest, TritonOptions } from "@tritonjs/core";
import type { Rollout, RolloutOptions } from "@tritonjs/operations/rollout";
import { VirtualClock } from "@tritonjs/testing";
import { RollingTriton } from "../../../../test/support/rolling-triton.js";

/** How one version of the model behaves. Each function gets a random number from 0 to 1. */
export interface VersionBehaviour {
  latencyMs(random: number): number;
  /** True if the request fails. */
  fails(random: number): boolean;
  /** Class of the answer, given the input. */
  classOf(x: number, random: number): number;
}

/** A version that answers in 4 to 20 ms, fails for 2 of 1,000 requests, and tells the sign of its input. */
export const SOUND: VersionBehaviour = {
  // Log-normal with a median of 8 ms.
  latencyMs: (random) => 8 * Math.exp(0.3 * normal(random)),
  fails: (random) => random < 0.002,
  classOf: (x) => Number(x > 0),
};

/** Inverse of the normal distribution function, by the approximation of Tukey's lambda distribution. */
function normal(p: number): number {
  return (p ** 0.135 - (1 - p) ** 0.135) / 0.1975;
}

/** Seeded random numbers. */
export function randomOf(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
    t = Math.imul(t ^ (t >>> 12), 0x297a2d39);
    return ((t ^ (t >>> 15)) >>> 0) / 2 ** 32;
  };
}

const OUTPUTS = [{ name: "scores", dtype: "FP32", shape: [2] }] as const;
const INPUTS = [{ name: "x", dtype: "FP32", shape: [1] }] as const;

/** Two versions of a model in one server on a virtual clock. */
export class ReleaseBench {
  readonly clock = new VirtualClock();
  readonly triton: RollingTriton;
  readonly random: () => number;
  /** What the versions answered since the start, by version. */
  readonly answered = { 1: 0, 2: 0 };
  readonly shadows: number[] = [];
  behaviour: Record<1 | 2, VersionBehaviour> = { 1: SOUND, 2: SOUND };
  rollout!: Rollout;
  failures = 0;

  constructor(seed = 1, options: TritonOptions = {}) {
    this.random = randomOf(seed);
    this.triton = new RollingTriton({
      clock: this.clock,
      allowCpuMetrics: false,
      logInfo: false,
      logWarning: false,
      logError: false,
      ...options,
    });
    for (const version of [1, 2] as const) {
      this.triton.bind({
        modelName: "m",
        modelVersion: version,
        inputs: INPUTS,
        outputs: OUTPUTS,
        inferFunc: (requests: readonly InferRequest<typeof INPUTS>[]) =>
          Promise.all(requests.map((request) => this.#answer(version, request))),
        config: { maxBatchSize: 8 },
      });
    }
  }

  async start(options: Partial<RolloutOptions> = {}): Promise<Rollout> {
    await this.triton.ready();
    this.rollout = await this.triton.rollout("m", { from: 1, to: 2, share: 50, seed: 7, ...options });
    return this.rollout;
  }

  /** Sends requests one after another, until the rollout is over or `count` are answered. Returns how many were sent. */
  async send(count: number, input: () => number = () => gauss(this.random)): Promise<number> {
    for (let i = 0; i < count; i++) {
      if (this.rollout.state === "rolled_back") return i;
      const sent = this.triton.infer("m", { x: [[input()]] }).then(
        () => {},
        () => {
          this.failures++;
        },
      );
      await this.clock.advance(100);
      await sent;
    }
    return count;
  }

  async #answer(version: 1 | 2, { inputs, parameters }: InferRequest<typeof INPUTS>) {
    const { latencyMs, fails, classOf } = this.behaviour[version];
    const isShadow = parameters.tritonjs_shadow === true;
    const random = this.random;
    await new Promise<void>((done) => this.clock.setTimer(latencyMs(random()), done));
    if (isShadow) this.shadows.push(version);
    else this.answered[version]++;
    if (fails(random())) throw new Error("the planted fault");
    const chosen = classOf(inputs.x!.data[0]!, random());
    return { scores: [[chosen === 0 ? 0.9 : 0.1, chosen === 0 ? 0.1 : 0.9]] };
  }
}

/** A normal number, by the method of Box and Muller. */
export function gauss(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A fault that version 2 has from some moment on. */
interface PlantedFault {
  /** Check that finds the fault. */
  readonly check: string;
  readonly behaviour?: Partial<VersionBehaviour>;
  readonly options?: Partial<RolloutOptions>;
  /** Requests before the fault. @default 0 */
  readonly soundRequests?: number;
  /** Mean of the inputs from the fault on. @default 0 */
  readonly inputMean?: number;
}

export const PLANTED_FAULTS = {
  "5 points more errors": { check: "errors", behaviour: { fails: (random) => random < 0.052 } },
  "p99 times 1.5": {
    check: "latency",
    behaviour: { latencyMs: (random) => 1.5 * SOUND.latencyMs(random) },
  },
  "another class in 2% of the answers": {
    check: "agreement",
    behaviour: { classOf: (x, random) => Number(x > 0 !== random < 0.02) },
    options: { share: 0, shadow: { maxLoad: 100 }, verdict: { agreement: { by: "class" } } },
  },
  // The PSI of two normal distributions that are moved by d is d squared: 0.36 here.
  "a PSI of the input over 0.25": { check: "drift", soundRequests: 1300, inputMean: 0.6 },
} satisfies Record<string, PlantedFault>;

/** Plants a fault. Returns how many requests it took to roll the version back, and the checks that found it. */
export async function rollbackOf(
  fault: PlantedFault,
  seed: number,
  mostRequests: number,
): Promise<{ needed: number; checks: string[] }> {
  const bench = new ReleaseBench(seed);
  const rollout = await bench.start(fault.options);
  await bench.send(fault.soundRequests ?? 0);
  if (rollout.state !== "running") throw new Error(`rolled back before the fault, seed ${seed}`);
  bench.behaviour[2] = { ...SOUND, ...fault.behaviour };
  const needed = await bench.send(mostRequests, () => (fault.inputMean ?? 0) + gauss(bench.random));
  await bench.triton.close();
  return { needed, checks: rollout.verdict().reasons.map(({ check }) => check) };
}
