import { type ModelHandle, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import type { echoInputs, echoOutputs } from "../support/echo-model.js";
import { SeededRandom } from "../support/seeded-random.js";
import { CountingClock } from "./counting-clock.js";
import { faultOf, sequenceKey } from "./oracle.js";
import { type Ask, RequestHandle } from "./sent-request.js";
import { type StressModel, stressModels } from "./stress-models.js";

/** `STRESS_SEEDS=200 npx vitest run test/stress` tries that many more seeds. */
const extra = Number(process.env.STRESS_SEEDS ?? 0);
const seeds = [1, 2, 3, 4, 5, 6, ...Array.from({ length: extra }, (_, i) => 1000 + i)];

const STEPS = 250;
const EXIT_TIMEOUT_SECS = 0.05;

interface Served {
  readonly model: StressModel;
  readonly handle: ModelHandle<typeof echoInputs, typeof echoOutputs>;
  readonly sent: RequestHandle[];
}

class StressRun {
  readonly random: SeededRandom;
  readonly clock = new CountingClock();
  readonly triton = new Triton({
    clock: this.clock,
    exitTimeoutSecs: EXIT_TIMEOUT_SECS,
    responseCache: { byteSize: 4096 },
  });
  readonly models: readonly StressModel[];
  /** The current binding of each name, and the earlier ones. */
  readonly served = new Map<string, Served>();
  readonly past: Served[] = [];
  readonly sent: RequestHandle[] = [];
  readonly stoppedAt = new Map<string, number[]>();
  readonly #sequences = new Map<string, { id: bigint; left: number }[]>();
  #nextValue = 0;
  #nextSequence = 1n;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.models = stressModels(this.triton, this.clock, this.random);
    for (const model of this.models) this.bind(model);
  }

  bind(model: StressModel): void {
    const served = { model, handle: model.bind(), sent: [] };
    served.handle.ready().catch(() => {});
    this.served.set(model.name, served);
  }

  send(): void {
    const { random, clock } = this;
    const model = this.models[random.below(this.models.length)]!;
    // The cache sees repeated values; everywhere else values are unique. Members of the ensemble see value + 1.
    const value = model.name === "cached" ? -1 - random.below(20) : 3 * this.#nextValue++;
    const ask: Ask = {
      model,
      value: model.name === "cached" ? 1_000_000 - value : value,
      rows: model.kind === "batch" || model.kind === "ensemble" ? 1 + random.below(3) : 1,
      priority: random.below(model.levels + 1),
      deadline: random.chance(0.15) ? clock.now() + 1 + random.below(12) : undefined,
      sequence: model.kind === "sequence" ? this.#nextOfSequence(model) : undefined,
      leavesAfter:
        model.kind === "stream" && random.chance(0.2) ? 1 + random.below(3) : Number.POSITIVE_INFINITY,
    };
    const request = new RequestHandle(ask, this.triton, () => clock.now());
    this.sent.push(request);
    this.served.get(model.name)!.sent.push(request);
  }

  #nextOfSequence(model: StressModel): Ask["sequence"] {
    const open = this.#sequences.get(model.name) ?? [];
    this.#sequences.set(model.name, open);
    if (open.length < 6 && (open.length === 0 || this.random.chance(0.3))) {
      const started = { id: this.#nextSequence++, left: this.random.below(5) };
      if (started.left > 0) open.push(started);
      return { id: started.id, start: true, end: started.left === 0 };
    }
    const at = this.random.below(open.length);
    const sequence = open[at]!;
    if (--sequence.left === 0) open.splice(at, 1);
    return { id: sequence.id, start: false, end: sequence.left === 0 };
  }

  /** Takes a model out of service; it is bound again as soon as it is gone. */
  rebind(): void {
    const served = this.served.get(this.models[this.random.below(this.models.length)]!.name)!;
    const { model, handle } = served;
    if (this.past.includes(served)) return;
    this.past.push(served);
    this.#stops([model.name]);
    void handle.unbind().then(() => {
      if (!this.closing) this.bind(model);
    });
  }

  closing = false;
  /** Waiting requests by model in the metrics, after a long time without requests. */
  pendingAtRest: ReadonlyMap<string, number> = new Map();

  close(): Promise<void> {
    this.closing = true;
    this.#stops(this.models.map(({ name }) => name));
    return this.triton.close();
  }

  #stops(names: readonly string[]): void {
    for (const name of names)
      this.stoppedAt.set(name, [...(this.stoppedAt.get(name) ?? []), this.clock.now()]);
  }

  async run(): Promise<void> {
    const { random, clock, sent } = this;
    await Promise.all([...this.served.values()].map(({ handle }) => handle.ready()));
    for (let step = 0; step < STEPS; step++) {
      for (let i = random.below(8); i > 0; i--) this.send();
      for (let i = random.below(3); i > 0; i--)
        sent[sent.length - 1 - random.below(Math.min(40, sent.length))]?.cancel();
      if (random.chance(0.02)) this.rebind();
      if (random.chance(0.6)) await clock.advance(random.below(4));
    }
    await clock.advance(1000);
    this.pendingAtRest = pendingOf(await serviceOf(this.triton).metrics());
    for (let i = 0; i < 100; i++) this.send();
    await clock.advance(2);
    const closed = this.close();
    for (let i = 0; i < 5; i++) this.send();
    await clock.advance(1000);
    await closed;
    await clock.advance(1000);
  }

  /** All requests whose end has no explanation. */
  faults(): string[] {
    const brokenSequences = new Set<string>();
    for (const { ask, ends } of this.sent) {
      const { sequence, model } = ask;
      if (sequence !== undefined && ends[0]?.text !== "answered")
        brokenSequences.add(sequenceKey(model.name, sequence.id));
    }
    const models = new Map(this.models.map((model) => [model.name, model]));
    const around = { stoppedAt: this.stoppedAt, models, brokenSequences };
    return this.sent.flatMap((request, i) => {
      const fault = faultOf(request, around);
      return fault === undefined
        ? []
        : [`request ${i} to ${request.ask.model.name} of ${request.ask.value}: ${fault}`];
    });
  }
}

function pendingOf(metrics: string): Map<string, number> {
  const lines = metrics.matchAll(/^nv_inference_pending_request_count\{model="(.*?)",.*\} (\d+)$/gm);
  return new Map([...lines].map(([, model, count]) => [model!, Number(count)]));
}

describe("random requests to all kinds of models at once", () => {
  it.each(seeds)(
    "each end once for an explained reason, and nothing is left behind, seed %i",
    async (seed) => {
      const run = new StressRun(seed);
      await run.run();
      expect(run.faults()).toEqual([]);
      expect(run.clock.armedTimers).toBe(0);
      // Batches of this one may hang, and others behind them.
      const pending = [...run.pendingAtRest].filter(([name]) => name !== "plain");
      expect(pending).toEqual(pending.map(([name]) => [name, 0]));
      expect(pending.length).toBeGreaterThan(10);
      expect(run.sent.filter(({ abortListeners }) => abortListeners > 1)).toEqual([]);
      // Members also get other requests, and each run of an iterative request counts.
      const uncounted = new Set(["iterative", ...run.models.flatMap(({ members }) => members)]);
      for (const { model, handle, sent } of new Set([...run.served.values(), ...run.past])) {
        expect([model.name, handle.queue().queued]).toEqual([model.name, 0]);
        if (uncounted.has(model.name)) continue;
        const { success, fail } = handle.statistics().inferenceStats;
        const accepted = sent.filter((request) => request.accepted).length;
        const failed = accepted - success.count;
        // A step that fails counts a second time at its ensemble; a cancelled request does not.
        const most = model.members.length > 0 ? 2 * failed : failed;
        expect(fail.count, model.name).toBeGreaterThanOrEqual(failed);
        expect(fail.count, model.name).toBeLessThanOrEqual(most);
        const answered = sent.filter(({ ends }) => ends[0]!.text === "answered").length;
        // An answer that was held back for its turn counts as a success even if its request was cancelled.
        if (model.name === "ordered") expect(success.count).toBeGreaterThanOrEqual(answered);
        else expect([model.name, success.count]).toEqual([model.name, answered]);
      }
      const ways = new Set(run.sent.map(({ ends }) => ends[0]!.text.split(" ")[0]));
      expect([...ways].sort()).toEqual(
        expect.arrayContaining(["CANCELLED", "INTERNAL", "UNAVAILABLE", "UNSUPPORTED", "answered"]),
      );
    },
  );
});
