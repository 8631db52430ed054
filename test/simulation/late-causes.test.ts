import { describe, expect, it } from "vitest";
import { Random } from "../../packages/cli/src/data/random.js";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import type { LateCause } from "../../packages/core/src/observe/statistics.js";
import { InferenceRequest } from "../../packages/core/src/request/inference-request.js";
import { SimulatedModel } from "./simulated-model.js";

/** A model of which a test plants the cause of a late request. */
class PlantedModel {
  readonly model: SimulatedModel;
  fixedMs: number;
  perRowMs: number;
  readonly random: Random;
  readonly causes: (LateCause | undefined)[] = [];

  constructor(
    seed: number,
    { fixedMs = 20, perRowMs = 0, maxBatchSize = 1 } = {},
    batcher: BatcherOptions = { deadlines: true },
  ) {
    this.random = new Random(seed);
    this.fixedMs = fixedMs * (0.7 + 0.6 * this.random.uniform());
    this.perRowMs = perRowMs * (0.7 + 0.6 * this.random.uniform());
    const durationMs = (rows: number) =>
      (this.fixedMs + this.perRowMs * rows) * (0.97 + 0.06 * this.random.uniform());
    this.model = new SimulatedModel({ maxBatchSize, instances: 1, batcher, durationMs });
  }

  /** Milliseconds of a batch. */
  ms(rows = 1): number {
    return this.fixedMs + this.perRowMs * rows;
  }

  async pass(ms: number): Promise<void> {
    this.model.clock.runDeferred();
    await this.model.clock.advanceTo(this.model.clock.now() + ms);
    this.model.clock.runDeferred();
  }

  async teach(maxRows = 1): Promise<this> {
    await this.model.start();
    for (let i = 0; i < 24; i++) {
      const rows = 1 + (i % maxRows);
      for (let row = 0; row < rows; row++) this.send(100_000);
      await this.pass(2 * this.ms(rows) + 5);
    }
    await this.pass(300);
    this.causes.length = 0;
    return this;
  }

  /** Sends a request. If it is late or refused, its cause is noted. */
  send(limitMs: number, priority = 0): void {
    const { clock, scheduler } = this.model;
    const due = clock.now() + limitMs;
    const request = new InferenceRequest(
      "m",
      { inputs: new Map(), priority, clientLimitMs: limitMs },
      {
        receive: () => {
          if (clock.now() <= due && request.cancelReason === undefined) return;
          this.causes.push(scheduler.lateCause(request));
        },
      },
    );
    request.batchSize = 1;
    request.queueStart = clock.now();
    try {
      scheduler.enqueue(request);
    } catch {
      this.causes.push(scheduler.lateCause(request));
    }
  }
}

const PLANTS: Record<Exclude<LateCause, "other_model">, (seed: number) => Promise<PlantedModel>> = {
  // A burst of one class, to a model with little load.
  queue: async (seed) => {
    const planted = await new PlantedModel(seed).teach();
    const ms = planted.ms();
    for (let i = 0; i < 6; i++) planted.send(4.3 * ms);
    await planted.pass(10 * ms);
    return planted;
  },
  // A tight request arrives just after a large batch has begun.
  batch: async (seed) => {
    const planted = await new PlantedModel(seed, { fixedMs: 5, perRowMs: 5, maxBatchSize: 16 }).teach(16);
    for (let i = 0; i < 16; i++) planted.send(10_000);
    await planted.pass(1);
    planted.send(planted.ms(1) * 3.2);
    await planted.pass(20 * planted.ms(16));
    return planted;
  },
  // Requests of another class with tighter limits keep the model busy.
  other_class: async (seed) => {
    const planted = await new PlantedModel(seed).teach();
    const ms = planted.ms();
    for (let i = 0; i < 7; i++) planted.send(7.6 * ms, 1);
    await planted.pass(1);
    planted.send(7.7 * ms, 2);
    await planted.pass(20 * ms);
    return planted;
  },
  overload: async (seed) => {
    const planted = await new PlantedModel(seed).teach();
    const ms = planted.ms();
    for (let i = 0; i < 200; i++) {
      planted.send(6 * ms, i % 2);
      await planted.pass((planted.random.exponential() * ms) / 1.6);
      // Losses of the first second are those of a queue that grows.
      if (i < 150) planted.causes.length = 0;
    }
    return planted;
  },
  cold: async (seed) => {
    const planted = new PlantedModel(seed);
    await planted.model.start();
    for (let i = 0; i < 3; i++) planted.send(1.5 * planted.ms());
    await planted.pass(10 * planted.ms());
    return planted;
  },
  slow_model: async (seed) => {
    const planted = await new PlantedModel(seed).teach();
    const ms = planted.ms();
    planted.fixedMs *= 2 + planted.random.uniform();
    planted.send(1.4 * ms);
    await planted.pass(10 * ms);
    return planted;
  },
};

describe("the cause of a late request", () => {
  it.each(Object.keys(PLANTS) as (keyof typeof PLANTS)[])(
    "is right in 95% of the planted cases: %s",
    async (cause) => {
      let [right, all] = [0, 0];
      const wrong: (LateCause | undefined)[] = [];
      for (let seed = 1; seed <= 40; seed++) {
        const { causes } = await PLANTS[cause](seed);
        expect(causes.length).toBeGreaterThan(0);
        all += causes.length;
        right += causes.filter((one) => one === cause).length;
        wrong.push(...causes.filter((one) => one !== cause));
      }
      expect(right / all, `got ${[...new Set(wrong)].join(", ")} too`).toBeGreaterThanOrEqual(0.95);
    },
  );
});
