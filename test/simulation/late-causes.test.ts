import { batch, type InferOptions, Triton } from "@tritonjs/core";
import type { Backend } from "@tritonjs/core/backend";
import { deadlines, scheduling } from "@tritonjs/scheduling";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import type { LateCause } from "../../packages/core/src/observe/statistics.js";
import { InferenceRequest } from "../../packages/core/src/request/inference-request.js";
import { Random } from "../../packages/perf/src/data/random.js";
import { SimulationClock } from "../../packages/perf/src/simulate/simulation-clock.js";
import { echo, echoInputs, echoOutputs } from "../support/echo-model.js";
import { SimulatedModel, type SimulatedModelOptions } from "./simulated-model.js";

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
    batcher: SimulatedModelOptions["batcher"] = deadlines(),
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
          this.causes.push(scheduler.limits?.lateCause(request));
        },
      },
    );
    request.batchSize = 1;
    request.queueStart = clock.now();
    try {
      scheduler.enqueue(request);
    } catch {
      this.causes.push(scheduler.limits?.lateCause(request));
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
      for (let seed = 1; seed <= 15; seed++) {
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

/** A model on a virtual clock, of which a test plants the cause of late requests. */
class Planted {
  readonly clock = new SimulationClock();
  readonly triton: Triton;
  readonly random: Random;
  /** Milliseconds of a text, or of a row of a batch. */
  readonly ms: number;
  slowness = 1;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.ms = 20 * (0.7 + 0.6 * this.random.uniform());
    this.triton = new Triton({
      clock: this.clock,
      allowCpuMetrics: false,
      extensions: [scheduling()],
    });
  }

  tookMs(size: number): number {
    return this.slowness * size * this.ms * (0.97 + 0.06 * this.random.uniform());
  }

  async pass(ms: number): Promise<void> {
    this.clock.runDeferred();
    await this.clock.advanceTo(this.clock.now() + ms);
    this.clock.runDeferred();
  }

  /** Numbers of late and refused requests by cause; those of before are not counted again. */
  causes(before: Partial<Record<LateCause, number>> = {}): Partial<Record<LateCause, number>> {
    const model = serviceOf(this.triton)
      .inspector!.models()
      .find(({ name }) => name === "planted")!;
    const sums: Partial<Record<LateCause, number>> = {};
    for (const { causes } of model.activity!().deadlines) {
      for (const [cause, count] of Object.entries(causes) as [LateCause, number][]) {
        sums[cause] = (sums[cause] ?? 0) + count;
      }
    }
    for (const [cause, count] of Object.entries(before) as [LateCause, number][]) sums[cause]! -= count;
    return sums;
  }

  async close(): Promise<void> {
    const closed = this.triton.close();
    await this.clock.drain();
    await closed;
  }
}

interface TextHandle {
  stream(inputs: object, options: InferOptions): AsyncIterable<unknown>;
}

/** Texts in two lanes of one instance. A text takes `size` times the milliseconds of the model. */
class PlantedTexts extends Planted {
  #text!: TextHandle;

  async start(): Promise<this> {
    const backend: Backend = {
      backendName: "texts",
      platform: "",
      describe: () => undefined,
      createExecutor: () => ({
        details: {},
        mustFinish: false,
        capacity: 2,
        async start() {},
        async stop() {},
        execute: (execution) => {
          const size = Number(execution.requests[0]!.parameters.size);
          return new Promise((resolve) => {
            this.clock.setTimer(this.tookMs(size), () => {
              execution.finish(0);
              resolve(undefined);
            });
          });
        },
      }),
    };
    const handle = this.triton.bind({
      modelName: "planted",
      inputs: [{ name: "x", dtype: "UINT8", shape: [1] }],
      outputs: [{ name: "y", dtype: "UINT8", shape: [1] }],
      inferFunc: backend,
      config: { maxBatchSize: 0, decoupled: true, batcher: deadlines() },
    });
    await handle.ready();
    this.#text = handle as unknown as TextHandle;
    return this;
  }

  send(size: number, limitMs: number, caller = "a", maxTokens = size): void {
    const parameters = { size, caller, max_tokens: Math.max(1, Math.round(100 * maxTokens)) };
    void (async () => {
      for await (const _ of this.#text.stream(
        { x: [0] },
        { parameters, queueTimeoutMicroseconds: Math.round(1000 * limitMs) },
      ));
    })().catch(() => {});
    this.clock.runDeferred();
  }

  async teach(): Promise<this> {
    for (let i = 0; i < 30; i++) {
      this.send(1 + (i % 3), 1_000_000, "ab"[i % 2]);
      await this.pass(4 * this.ms);
    }
    await this.pass(400);
    return this;
  }
}

const TEXTS: Partial<Record<LateCause, (seed: number) => Promise<[Planted, object?]>>> = {
  queue: async (seed) => {
    const planted = await (await new PlantedTexts(seed).start()).teach();
    for (let i = 0; i < 12; i++) planted.send(1, 4.4 * planted.ms);
    await planted.pass(20 * planted.ms);
    return [planted];
  },
  overload: async (seed) => {
    const planted = await (await new PlantedTexts(seed).start()).teach();
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) {
        planted.send(1, 6 * planted.ms, "ab"[i % 2]);
        await planted.pass((planted.random.exponential() * planted.ms) / 2 / 1.6);
      }
    };
    await send(300);
    const before = planted.causes();
    await send(150);
    return [planted, before];
  },
  cold: async (seed) => {
    const planted = await new PlantedTexts(seed).start();
    for (let i = 0; i < 4; i++) planted.send(1, 0.5 * planted.ms);
    await planted.pass(10 * planted.ms);
    return [planted];
  },
  slow_model: async (seed) => {
    const planted = await (await new PlantedTexts(seed).start()).teach();
    planted.slowness = 2 + planted.random.uniform();
    for (let i = 0; i < 2; i++) planted.send(1, 1.5 * planted.ms);
    await planted.pass(1);
    // Its limit is too short for any text.
    planted.send(3, 0.4 * planted.ms);
    await planted.pass(10 * planted.ms);
    return [planted];
  },
};

/** Sequences in four slots of one instance. A batch takes its rows times the milliseconds of the model. */
class PlantedSequences extends Planted {
  #handle!: Parameters<typeof echo>[0];

  async start(): Promise<this> {
    this.#handle = this.triton.bind({
      modelName: "planted",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        await new Promise<void>((done) => this.clock.setTimer(this.tookMs(x.data.length), done));
        return { y: x };
      }),
      config: {
        maxBatchSize: 4,
        sequence: { strategy: "direct", maxSequenceIdleMicroseconds: 1e9 },
        parameters: { deadlines: "true" },
      },
    });
    await this.#handle.ready();
    return this;
  }

  send(id: number, limitMs: number, caller = "a", start = false): void {
    const options = { parameters: { caller }, queueTimeoutMicroseconds: Math.round(1000 * limitMs) };
    void echo(this.#handle, 1, { sequence: { id, start }, ...options }).catch(() => {});
  }

  async teach(): Promise<this> {
    for (let round = 0; round < 6; round++) {
      for (let slots = 1; slots <= 4; slots++) {
        for (let id = 1; id <= slots; id++) this.send(id, 1_000_000, "a", round === 0 && id === slots);
        await this.pass(5 * this.ms + 5);
      }
    }
    await this.pass(500);
    return this;
  }
}

const SEQUENCES: Partial<Record<LateCause, (seed: number) => Promise<[Planted, object?]>>> = {
  // Requests of one sequence wait for each other.
  queue: async (seed) => {
    const planted = await (await new PlantedSequences(seed).start()).teach();
    for (let i = 0; i < 5; i++) planted.send(1, 3.5 * planted.ms);
    await planted.pass(20 * planted.ms);
    return [planted];
  },
  // A tight request arrives just after the batch of all slots has begun.
  batch: async (seed) => {
    const planted = await (await new PlantedSequences(seed).start()).teach();
    for (let id = 1; id <= 4; id++) planted.send(id, 10_000);
    await planted.pass(1);
    planted.send(1, 3 * planted.ms);
    await planted.pass(20 * planted.ms);
    return [planted];
  },
  other_class: async (seed) => {
    const planted = await (await new PlantedSequences(seed).start()).teach();
    for (let i = 0; i < 5; i++) planted.send(1, 10_000, "a");
    await planted.pass(1);
    planted.send(1, 4 * planted.ms, "b");
    await planted.pass(20 * planted.ms);
    return [planted];
  },
  cold: async (seed) => {
    const planted = await new PlantedSequences(seed).start();
    for (let i = 0; i < 3; i++) planted.send(1, 0.9 * planted.ms, "a", i === 0);
    await planted.pass(10 * planted.ms);
    return [planted];
  },
  slow_model: async (seed) => {
    const planted = await (await new PlantedSequences(seed).start()).teach();
    planted.slowness = 2 + planted.random.uniform();
    planted.send(1, 1.5 * planted.ms);
    await planted.pass(10 * planted.ms);
    // Its slot is in no batch of fewer rows.
    planted.send(4, 2 * planted.ms);
    await planted.pass(10 * planted.ms);
    return [planted];
  },
  overload: async (seed) => {
    const planted = await (await new PlantedSequences(seed).start()).teach();
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) {
        planted.send(1 + (i % 4), 20 * planted.ms, "ab"[i % 2]);
        await planted.pass((planted.random.exponential() * planted.ms) / 1.6);
      }
    };
    await send(200);
    const before = planted.causes();
    await send(100);
    return [planted, before];
  },
};

describe.each([
  ["texts", TEXTS],
  ["sequences under the direct strategy", SEQUENCES],
])("the cause of a late request of %s", (_, plants) => {
  it.each(Object.keys(plants) as LateCause[])("is right in 95% of the planted cases: %s", async (cause) => {
    const sums: Partial<Record<LateCause, number>> = {};
    for (let seed = 1; seed <= 10; seed++) {
      const [planted, before] = await plants[cause]!(seed);
      const causes = planted.causes(before);
      expect(Object.values(causes).reduce((a, b) => a + b, 0)).toBeGreaterThan(0);
      for (const [name, count] of Object.entries(causes) as [LateCause, number][]) {
        sums[name] = (sums[name] ?? 0) + count;
      }
      await planted.close();
    }
    const all = Object.values(sums).reduce((a, b) => a + b, 0);
    expect((sums[cause] ?? 0) / all, JSON.stringify(sums)).toBeGreaterThanOrEqual(0.95);
  });
});
