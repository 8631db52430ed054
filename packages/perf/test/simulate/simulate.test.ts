import { readPrototxt } from "@tritonjs/repository/config";
import { describe, expect, it } from "vitest";
import { Random } from "../../src/data/random.js";
import { type SimulatedRequest, simulate } from "../../src/simulate/simulate.js";
import { BatchDurations } from "../../src/trace/recording.js";

const fixed = (ms: number) => ({ duration: () => ms, gapMs: 0, wakeMs: 0 });

function poisson(count: number, perMs: number, seed = 1): SimulatedRequest[] {
  const random = new Random(seed);
  let at = 0;
  return Array.from({ length: count }, () => {
    at += random.exponential() / perMs;
    return { atMs: at, rows: 1 };
  });
}

const mean = (values: Iterable<number>) => {
  const all = [...values];
  return all.reduce((sum, value) => sum + value, 0) / all.length;
};

describe("simulate", () => {
  it("agrees with the formula of the queue M/D/1 for a model without batches", async () => {
    const [serviceMs, load] = [10, 0.7];
    const { latenciesMs, batches, failures } = await simulate({
      config: readPrototxt(`name: "m" backend: "x" max_batch_size: 0 instance_group { count: 1 }`),
      requests: poisson(4000, load / serviceMs),
      times: fixed(serviceMs),
    });
    expect(failures.size).toBe(0);
    expect(batches).toHaveLength(4000);
    // Pollaczek and Khinchine: the mean wait is load * service / (2 * (1 - load)).
    const expected = serviceMs + (load * serviceMs) / (2 * (1 - load));
    expect(mean(latenciesMs) / expected).toBeCloseTo(1, 1);
  });

  it("gives a single worker of ONNX Runtime its next full batch ahead, so that it waits for nothing", async () => {
    const endOf = async (backend: string, instances = 1) => {
      const { batches } = await simulate({
        config: readPrototxt(
          `name: "m" backend: "${backend}" max_batch_size: 2 dynamic_batching { } instance_group { count: ${instances} }`,
        ),
        requests: Array.from({ length: 4 }, () => ({ atMs: 0, rows: 2 })),
        times: { ...fixed(10), gapMs: 3 },
      });
      expect(batches.map(({ rows }) => rows)).toEqual([2, 2, 2, 2]);
      return batches.at(-1)!.endMs;
    };
    // Four batches, with a gap before each but the first.
    expect(await endOf("x")).toBe(4 * 10 + 3 * 3);
    expect(await endOf("onnxruntime")).toBe(4 * 10);
    // With a second instance no batch is given ahead.
    expect(await endOf("onnxruntime", 2)).toBe(2 * 10 + 3);
  });

  it("runs requests by deadline and by share where the configuration says so", async () => {
    const served = async (parameters: string) => {
      // Each fourth request has 100 ms and the others have 2 s, at 1.5 times what the model can do.
      const requests = poisson(1200, 0.15).map((request, i) => {
        const isTight = i % 4 === 0;
        return { ...request, limitMs: isTight ? 100 : 2000, caller: isTight ? "few" : "many" };
      });
      const { latenciesMs, failures } = await simulate({
        config: readPrototxt(`name: "m" backend: "x" max_batch_size: 1 dynamic_batching { } ${parameters}`),
        requests,
        times: fixed(10),
      });
      const inTime = requests.filter(({ limitMs }, i) => latenciesMs[i]! <= limitMs).length / requests.length;
      return { inTime, failures, few: latenciesMs.filter((_, i) => i % 4 === 0) };
    };
    const on = (key: string, value: string) =>
      `parameters { key: "${key}" value { string_value: "${value}" } }`;
    expect((await served("")).inTime).toBeLessThan(0.5);
    const byDeadline = await served(on("deadlines", "true"));
    expect(byDeadline.inTime).toBeGreaterThan(0.6);
    expect([...byDeadline.failures.keys()].join()).toContain(
      "refused, because the answer would have been late",
    );
    const { few } = await served(on("shares_by", "caller"));
    expect(Math.max(...few.filter((ms) => !Number.isNaN(ms)))).toBeLessThan(200);
  });

  it("forms batches by the rules of the dynamic batcher", async () => {
    const { latenciesMs, batches, cuts } = await simulate({
      config: readPrototxt(`
        name: "m" backend: "x" max_batch_size: 8
        dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 5000 }`),
      requests: [0, 1, 2, 3, 100, 101].map((atMs) => ({ atMs, rows: 1 })),
      times: fixed(10),
    });
    expect(batches.map(({ rows, startMs }) => [rows, startMs])).toEqual([
      [4, 3],
      [2, 105],
    ]);
    expect([...latenciesMs].map(Math.round)).toEqual([13, 12, 11, 10, 15, 14]);
    expect(cuts).toMatchObject({ PREFERRED: 1, DELAY: 1 });
  });

  it("runs instances side by side, one batch each", async () => {
    const { latenciesMs, instances } = await simulate({
      config: readPrototxt(`name: "m" backend: "x" max_batch_size: 0 instance_group { count: 2 }`),
      requests: [0, 0, 0, 0].map((atMs) => ({ atMs, rows: 1 })),
      times: fixed(10),
    });
    expect(instances).toBe(2);
    expect([...latenciesMs]).toEqual([10, 10, 20, 20]);
  });

  it("refuses requests at a full queue, and rejects those that wait too long", async () => {
    const { latenciesMs, failures } = await simulate({
      config: readPrototxt(`
        name: "m" backend: "x" max_batch_size: 1
        dynamic_batching { default_queue_policy { max_queue_size: 2 default_timeout_microseconds: 15000 } }`),
      requests: Array.from({ length: 5 }, (_, atMs) => ({ atMs, rows: 1 })),
      times: fixed(10),
    });
    expect([...latenciesMs].map((one) => Math.round(one))).toEqual([
      10,
      19,
      Number.NaN,
      Number.NaN,
      Number.NaN,
    ]);
    expect([...failures.values()].sort()).toEqual([1, 2]);
  });

  it("keeps the requests of a sequence in order, in one slot", async () => {
    const sequence = (id: bigint, atMs: number, start: boolean, end: boolean) => ({
      atMs,
      rows: 1,
      sequence: { id, start, end },
    });
    const { latenciesMs } = await simulate({
      config: readPrototxt(`
        name: "m" backend: "x" max_batch_size: 2
        sequence_batching { oldest { max_candidate_sequences: 2 } }`),
      requests: [sequence(1n, 0, true, false), sequence(1n, 1, false, true), sequence(2n, 1, true, true)],
      times: fixed(10),
    });
    expect([...latenciesMs]).toEqual([10, 19, 19]);
  });

  it("refuses an ensemble", async () => {
    const config = readPrototxt(`
      name: "m" platform: "ensemble"
      ensemble_scheduling { step { model_name: "a" model_version: -1 } }`);
    await expect(simulate({ config, requests: [], times: fixed(1) })).rejects.toThrow(
      "cannot simulate model 'm': expected a model with a batcher or without one, got an ensemble",
    );
  });
});

describe("durations of batches", () => {
  const measured = (rows: number, durationMs: number, startMs = 0) => ({ rows, durationMs, startMs });

  it("are those of the line for sizes that were seldom measured", () => {
    const batches = [1, 2, 4, 8].flatMap((rows) =>
      Array.from({ length: 9 }, () => measured(rows, 3 + rows / 2)),
    );
    const durations = new BatchDurations(batches);
    expect(durations.line.fixedMs).toBeCloseTo(3);
    expect(durations.line.perRowMs).toBeCloseTo(0.5);
    expect(durations.at(0, 64)).toBeCloseTo(35);
  });

  it("are longer while the machine was slow, and back to normal afterwards", () => {
    const batches = [0, 10, 20, 30, 40, 50, 60].map((at) => measured(4, at === 30 ? 15 : 10, at));
    const durations = new BatchDurations(batches);
    expect([25, 30, 39, 40].map((at) => durations.at(at, 4))).toEqual([10, 15, 15, 10]);
  });

  it("include a pause of the machine once, whatever the size of the batch", () => {
    const batches = [1, 2, 4].flatMap((rows) => [0, 1, 2, 3, 4].map((at) => measured(rows, rows, at)));
    const durations = new BatchDurations([...batches, measured(1, 102, 50)]);
    expect(durations.at(50, 1)).toBe(102);
    expect(durations.at(50, 4)).toBe(105);
  });

  it("include only what is left of a pause, and nothing of it afterwards", () => {
    const batches = [0, 10, 20, 30, 40].map((at) => measured(4, 10, at));
    // The machine stops for 90 ms; the next batch starts much later.
    const durations = new BatchDurations([...batches, measured(4, 100, 50), measured(4, 10, 400)]);
    expect([49, 50, 100, 149, 150, 399, 400].map((at) => durations.at(at, 4))).toEqual([
      ...[10, 100, 60, 11, 10, 10, 10],
    ]);
  });

  it("are never negative for a model that gets faster with size", () => {
    const durations = new BatchDurations([measured(1, 10), measured(8, 2)]);
    expect(durations.line.perRowMs).toBe(0);
    expect(durations.at(0, 100)).toBeGreaterThan(0);
  });
});
