import { batch, type InferFunc, type InferRequest, type ModelOptions, Triton } from "@tritonjs/core";
import type { RebindOptions } from "@tritonjs/core/types";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { servedOptions } from "../../../../test/support/served-options.js";
import { randomOf } from "../../../operations/test/rollout/release-bench.js";
import { HeldBackend } from "../../../repository/test/held-backend.js";

const X = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
const Y = [{ name: "y", dtype: "FP32", shape: [1] }] as const;

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

function server(options = {}): Triton {
  const triton = new Triton(
    servedOptions({ logger: { error() {}, warn() {}, info() {}, debug() {} }, ...options }),
  );
  open.push(triton);
  return triton;
}

/** A model `m` that is ready. */
async function served(inferFunc: InferFunc<typeof X, typeof Y>, config: ModelOptions, triton = server()) {
  const model = triton.bind({ modelName: "m", inputs: X, outputs: Y, inferFunc, config });
  await model.ready();
  return model;
}

/** A function whose batches wait until a test lets them run. It adds `offset` to its input. */
function gated(offset: number) {
  const waiting: (() => void)[] = [];
  const sizes: number[] = [];
  let isOpen = false;
  const fn = batch<typeof X, typeof Y>(async ({ x }) => {
    sizes.push(x.shape[0]!);
    if (!isOpen) await new Promise<void>((resolve) => waiting.push(resolve));
    return { y: x.data.map((value) => value + offset) };
  });
  return {
    fn,
    sizes,
    pass() {
      isOpen = true;
      for (const go of waiting.splice(0)) go();
    },
  };
}

const turns = async (count = 4) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a change of a bound model", () => {
  it("moves the requests that wait to the new batcher and function, in their order", async () => {
    const [old, fresh] = [gated(0), gated(1000)];
    const model = await served(old.fn, { maxBatchSize: 2 });
    const order: number[] = [];
    const asked = Array.from({ length: 12 }, async (_, i) => {
      const { y } = await model.infer({ x: [[i]] });
      order.push(y.data[0]!);
    });
    await turns();
    const changed = model.rebind({ inferFunc: fresh.fn, config: { maxBatchSize: 8 } });
    await turns();
    // The new instance waits for the batch that runs.
    expect([old.sizes, fresh.sizes]).toEqual([[2], []]);
    fresh.pass();
    old.pass();
    await Promise.all([changed, ...asked]);
    expect(order).toEqual([0, 1, ...Array.from({ length: 10 }, (_, i) => 1002 + i)]);
    expect(fresh.sizes).toEqual([8, 2]);
    expect(model.config().maxBatchSize).toBe(8);
    expect(model.statistics().inferenceCount).toBe(12);
  });

  it("loses no request to a queue that is shorter, or to batches that are smaller", async () => {
    const [old, fresh] = [gated(0), gated(1000)];
    const model = await served(old.fn, { maxBatchSize: 8 });
    const first = model.infer({ x: [[0]] });
    await turns();
    const asked = [
      ...Array.from({ length: 6 }, (_, i) => model.infer({ x: [[i]] })),
      model.infer({ x: [[1], [2], [3], [4]] }),
    ];
    await turns();
    const changed = model.rebind({
      inferFunc: fresh.fn,
      config: { maxBatchSize: 2, batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } },
    });
    fresh.pass();
    await turns();
    old.pass();
    const answers = await Promise.all([first, ...asked, changed]);
    expect(answers.slice(0, -1).map((one) => one!.y.data.length)).toEqual([1, 1, 1, 1, 1, 1, 1, 4]);
    await expect(model.infer({ x: [[1], [2], [3]] })).rejects.toThrow("at most 2 rows, got 3");
  });

  it("forgets a request that is cancelled after it moved", async () => {
    const [old, fresh] = [gated(0), gated(1000)];
    const model = await served(old.fn, { maxBatchSize: 1 });
    const first = model.infer({ x: [[0]] });
    const controller = new AbortController();
    const second = model.infer({ x: [[1]] }, { signal: controller.signal });
    const third = model.infer({ x: [[2]] });
    await turns();
    const changed = model.rebind({ inferFunc: fresh.fn });
    await turns();
    controller.abort();
    await expect(second).rejects.toThrow("cancelled");
    old.pass();
    fresh.pass();
    expect([(await first).y.data[0], (await third).y.data[0]]).toEqual([0, 1002]);
    await changed;
    expect(fresh.sizes).toEqual([1]);
  });

  it("keeps open sequences on the instance that has their state, and begins new ones on the new", async () => {
    const counting = (name: number) => {
      const sums = new Map<unknown, number>();
      return (requests: readonly InferRequest<typeof X, typeof Y>[]) =>
        requests.map(({ inputs, sequence }) => {
          const sum = (sums.get(sequence!.correlationId) ?? 0) + inputs.x.data[0]!;
          sums.set(sequence!.correlationId, sum);
          return { y: [[name + sum]] };
        });
    };
    const model = await served(counting(0), { maxBatchSize: 4, sequence: {} });
    const step = async (id: number, start = false, end = false) =>
      (await model.infer({ x: [[1]] }, { sequence: { id, start, end } })).y.data[0];
    expect([await step(1, true), await step(2, true)]).toEqual([1, 1]);
    await model.rebind({ inferFunc: counting(100) as RebindOptions["inferFunc"] });
    expect([await step(1), await step(3, true)]).toEqual([2, 101]);
    await model.rebind({
      inferFunc: counting(200) as RebindOptions["inferFunc"],
      config: { maxBatchSize: 4, sequence: { strategy: "oldest" } },
    });
    expect([await step(1), await step(2), await step(3), await step(4, true)]).toEqual([3, 2, 102, 201]);
    expect([await step(1, false, true), await step(2, false, true)]).toEqual([4, 3]);
    expect(await step(1, true)).toBe(201);
    await expect(step(9)).rejects.toThrow("must specify the START flag");
  });

  it("happens a hundred times under load, and loses and reorders nothing", async () => {
    const triton = server();
    const changes: RebindOptions[] = [
      { config: { maxBatchSize: 4 } },
      { config: { maxBatchSize: 16, batcher: { maxQueueDelayMicroseconds: 50 } } },
      { config: { maxBatchSize: 8, batcher: { preferredBatchSize: [4], preserveOrdering: true } } },
      { config: { maxBatchSize: 4, batcher: false } },
      { config: { maxBatchSize: 8, batcher: { priorityLevels: 3, defaultPriorityLevel: 2 } } },
      { config: { maxBatchSize: 8, batcher: { defaultQueuePolicy: { maxQueueSize: 1000 } } } },
    ];
    const model = await served(
      batch(({ x }) => ({ y: x })),
      { maxBatchSize: 4 },
      triton,
    );
    let isOver = false;
    let next = 0;
    let last = -1;
    let reordered = 0;
    const caller = async () => {
      while (!isOver) {
        const number = next++;
        const { y } = await model.infer({ x: [[number]] });
        if (y.data[0] !== number) reordered++;
        if (number < last) reordered++;
        last = number;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const callers = Array.from({ length: 16 }, caller);
    for (let i = 0; i < 100; i++) {
      const inferFunc = batch<typeof X, typeof Y>(({ x }) => ({ y: x }));
      await model.rebind({ inferFunc, ...changes[i % changes.length] } as RebindOptions);
      await turns(1);
    }
    isOver = true;
    await Promise.all(callers);
    expect(reordered).toBe(0);
    expect(next).toBeGreaterThan(100);
    expect(model.statistics().inferenceCount).toBe(next);
    expect(model.instances()).toHaveLength(1);
  });

  it("is refused for other tensors, with the difference, and for an ensemble", async () => {
    const triton = server();
    const model = await served(gated(0).fn, { maxBatchSize: 4 }, triton);
    const text = "cannot change model 'm' version 1 while it serves";
    await expect(model.rebind({ config: { batching: false } })).rejects.toThrow(
      `${text}: batching: expected true, got false`,
    );
    await expect(model.rebind({ config: { maxBatchSize: 4, sequence: {} } })).rejects.toThrow(
      `${text}: sequences: expected false, got true`,
    );
    await expect(model.rebind({ config: { maxBatchSize: -1 } })).rejects.toThrow("max_batch_size");
    await expect(model.rebind({ inputs: [] } as never)).rejects.toThrow("unknown option 'inputs'");
    const ensemble = triton.bindEnsemble({
      modelName: "e",
      inputs: X,
      outputs: Y,
      steps: [{ modelName: "m", inputMap: { x: "x" }, outputMap: { y: "y" } }],
    });
    await expect(ensemble.rebind({})).rejects.toThrow("cannot rebind model 'e': it is an ensemble");
  });

  it("leaves the model as it was if a new instance cannot be loaded", async () => {
    const model = await served(
      batch(({ x }) => ({ y: x })),
      { maxBatchSize: 2 },
    );
    const missing = new URL("./there-is-no-such-module.js", import.meta.url);
    await expect(model.rebind({ inferFunc: missing })).rejects.toThrow("there-is-no-such-module");
    expect((await model.infer({ x: [[3]] })).y.data[0]).toBe(3);
    expect(model.config().maxBatchSize).toBe(2);
  });

  it("answers all requests of two changes at once, and of a close in the middle", async () => {
    const triton = server();
    const functions = [gated(0), gated(100), gated(200)];
    const model = await served(functions[0]!.fn, { maxBatchSize: 1 }, triton);
    const asked = [model.infer({ x: [[1]] }), model.infer({ x: [[2]] })];
    await turns();
    const changes = [
      model.rebind({ inferFunc: functions[1]!.fn }),
      model.rebind({ inferFunc: functions[2]!.fn }),
    ];
    await turns(10);
    asked.push(model.infer({ x: [[3]] }));
    await turns();
    const closed = triton.close();
    for (const one of functions) one.pass();
    const answers = await Promise.all(asked);
    expect(answers.map(({ y }) => y.data[0])).toEqual([1, 202, 203]);
    await Promise.allSettled(changes);
    await closed;
  });

  it("lets the 99th percentile be at most 1.5 times that without changes, in the time of a virtual clock", async () => {
    const p99Of = async (changes: boolean) => {
      const clock = new VirtualClock();
      const random = randomOf(7);
      // A batch takes 4 ms, and a new instance 100 ms to load.
      const timed = () =>
        batch<typeof X, typeof Y>(async ({ x }) => {
          await new Promise<void>((resolve) => clock.setTimer(4, resolve));
          return { y: x };
        });
      const model = server({ clock, allowCpuMetrics: false }).bind({
        modelName: "m",
        inputs: X,
        outputs: Y,
        inferFunc: timed(),
        config: { maxBatchSize: 8 },
      });
      await model.ready();
      const times: number[] = [];
      const asked: Promise<void>[] = [];
      let changed = 0;
      for (let i = 0; i < 1000; i++) {
        const since = clock.now();
        asked.push(model.infer({ x: [[i]] }).then(() => void times.push(clock.now() - since)));
        if (changes && i % 4 === 0) {
          const config = { maxBatchSize: 8 - (i % 3), batcher: { maxQueueDelayMicroseconds: (i % 2) * 100 } };
          asked.push(
            model
              .rebind({ inferFunc: timed() as RebindOptions["inferFunc"], config })
              .then(() => void changed++),
          );
        }
        await clock.advance(-Math.log(1 - random()) * 2);
      }
      for (let i = 0; i < 200; i++) await clock.advance(4);
      await Promise.all(asked);
      expect([times.length, changed]).toEqual([1000, changes ? 250 : 0]);
      return times.sort((a, b) => a - b)[990]!;
    };
    expect((await p99Of(true)) / (await p99Of(false))).toBeLessThanOrEqual(1.5);
  });

  it("does not wait for ever for a batch of the old instance", async () => {
    const clock = new VirtualClock();
    const [old, fresh] = [gated(0), gated(1000)];
    const triton = server({ clock, allowCpuMetrics: false });
    const model = await served(old.fn, { maxBatchSize: 1 }, triton);
    const first = model.infer({ x: [[0]] });
    await clock.advance(1);
    const changed = model.rebind({ inferFunc: fresh.fn });
    await clock.advance(1);
    const second = model.infer({ x: [[1]] });
    fresh.pass();
    await clock.advance(9000);
    expect(fresh.sizes).toEqual([]);
    await clock.advance(2000);
    expect((await second).y.data[0]).toBe(1001);
    old.pass();
    await clock.advance(1);
    expect((await first).y.data[0]).toBe(0);
    await changed;
  });
});

describe("a change of a model of a repository", () => {
  it("keeps its queue when another configuration, also with another backend, is loaded", async () => {
    const config = (more: string, backend = "held") =>
      identityConfig(more).replace('"identity"', `"${backend}"`);
    const models = await RepositoryOnDisk.create({ "m/config.pbtxt": config(""), "m/1/": "" });
    const [held, other] = [new HeldBackend(), new HeldBackend()];
    const triton = server({
      modelRepository: models.path,
      modelControlMode: "explicit",
      loadModel: ["m"],
      backends: { held: held.factory, other: other.factory },
    });
    open.push({ close: () => models[Symbol.asyncDispose]() });
    await triton.ready();
    const ask = (value: number) => triton.infer("m", { INPUT0: [[value]] });
    const asked = [ask(1)];
    await held.next();
    asked.push(ask(2), ask(3));
    await models.write({ "m/config.pbtxt": config("dynamic_batching {}", "other") });
    await triton.loadModel("m");
    asked.push(ask(4));
    held.answerAll();
    await asked[0];
    await other.next();
    expect(held.created + other.created).toBe(2);
    const all = Promise.all(asked);
    let isOver = false;
    void all.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      other.answerAll();
      await turns(1);
    }
    expect((await all).map(({ OUTPUT0 }) => OUTPUT0!.data[0])).toEqual([1, 2, 3, 4]);
    expect(serviceOf(triton).modelConfig("m", "").backend).toBe("other");
    expect(serviceOf(triton).statistics("m", "")[0]!.inferenceStats.success.count).toBe(4);
    await held.stopped(1);
  });
});
