import { describe, expect, it } from "vitest";
import {
  type AnalyzeLevel,
  type Candidate,
  candidateKey,
  type ModelSpace,
  parametersKey,
  type SearchGoal,
  type VariantParameters,
} from "../../../src/analyze/candidate.js";
import { modelSearch } from "../../../src/analyze/model-search.js";
import { bruteSearch } from "../../../src/analyze/quick-search.js";
import { isPlateau, runInTurns, type TurnEnd } from "../../../src/analyze/run-candidate.js";
import {
  analysisOf,
  type DurationRule,
  SimulatedMachine,
  sharedCores,
} from "../../support/simulated-machine.js";

describe("the search with a model of the machine", () => {
  it("foretells every candidate, and the measured ones within 5%", async () => {
    const analysis = analysisOf(new SimulatedMachine());
    const small = { instances: [1, 3], maxBatchSize: [1, 4, 16] };
    await modelSearch(analysis, "m", small, { verify: 1 });
    expect(analysis.predictions.size).toBe(6);
    const ratios = [...analysis.predictions.values()].flatMap(({ candidate, runs }) => {
      const measured = analysis.resultOf(candidate)?.runs[0];
      if (measured === undefined) return [];
      return measured.models.m!.figures.perf_throughput / runs[0]!.models.m!.figures.perf_throughput;
    });
    expect(ratios.length).toBeGreaterThan(3);
    for (const ratio of ratios) expect(ratio).toBeCloseTo(1, 1);
  });

  it("takes two measurements for a further isolation, and foretells it with all threads and instances", async () => {
    // A message to a process costs half as much again, with any number of instances and threads.
    const rule: DurationRule = (rows, { instances = 1, isolation, threads }) =>
      (4 + rows) * instances * (threads === 1 ? 1.2 : 1) * (isolation === "process" ? 1.5 : 1);
    const space = { instances: [1, 2], threads: [0, 1], maxBatchSize: [1, 4, 8] };
    const search = async (more: ModelSpace) => {
      const analysis = analysisOf(new SimulatedMachine(rule));
      await modelSearch(analysis, "m", { ...space, ...more }, { verify: 1 });
      return analysis;
    };
    const plain = await search({});
    const isolated = await search({ isolation: ["default", "process"] });
    expect(isolated.measurements).toBe(plain.measurements + 2);
    expect(isolated.predictions.size).toBe(2 * plain.predictions.size);
    const predictions = [...isolated.predictions.values()];
    const throughput = (parameters: VariantParameters) =>
      predictions.find(({ candidate }) => parametersKey(candidate.m!) === parametersKey(parameters))!.runs[0]!
        .models.m!.figures.perf_throughput;
    for (const instances of [1, 2]) {
      for (const threads of [0, 1]) {
        const same = { instances, threads, maxBatchSize: 8 };
        const ratio =
          throughput({ ...same, isolation: "default" }) / throughput({ ...same, isolation: "process" });
        expect(ratio).toBeCloseTo(1.5, 1);
      }
    }
    expect(isolated.best!.candidate.m).toMatchObject({ isolation: "default", maxBatchSize: 8 });
  });

  it("goes on when several of the first configurations fail and others work", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => ((m!.maxBatchSize ?? 16) < 8 ? "too small" : undefined);
    const analysis = analysisOf(machine);
    await modelSearch(analysis, "m", { instances: [1, 2], maxBatchSize: [1, 2, 4, 8, 16] }, { verify: 2 });
    expect(analysis.results.filter(({ fault }) => fault !== undefined).length).toBeGreaterThanOrEqual(3);
    expect(analysis.best!.candidate.m!.maxBatchSize).toBeGreaterThanOrEqual(8);
  });

  it("finds the lowest latency for a request rate", async () => {
    const goal: SearchGoal = { objectives: { perf_latency_p99: 1 }, constraints: {} };
    const load = {
      kind: "levels",
      levels: [{ mode: "request_rate", value: 180, distribution: "poisson" }],
    } as const;
    const analysis = analysisOf(new SimulatedMachine(), { goal, load });
    await modelSearch(
      analysis,
      "m",
      { maxBatchSize: [1, 8], queueDelayMicroseconds: [0, 5000] },
      { verify: 1 },
    );
    // With batches of 1 the instance is busy for 90% of the time.
    expect(analysis.best!.candidate.m).toEqual({ maxBatchSize: 8, queueDelayMicroseconds: 0 });
  });
});

const concurrencies = (...values: number[]) => ({
  kind: "levels" as const,
  levels: values.map((value): AnalyzeLevel => ({ mode: "concurrency", value })),
});

describe("the exhaustive search", () => {
  it("takes four values whose best is at most 5% above the first for a plateau", () => {
    expect(isPlateau([100, 104, 105, 105])).toBe(true);
    expect(isPlateau([100, 104, 106, 105])).toBe(false);
    expect(isPlateau([100, 104, 105])).toBe(false);
    expect(isPlateau([10, 100, 90, 80, 70])).toBe(true);
  });

  it("ends the batch sizes where the throughput no longer rises", async () => {
    const machine = new SimulatedMachine();
    const analysis = analysisOf(machine, { load: concurrencies(8) });
    const sizes = { maxBatchSize: [128, 64, 32, 16, 8, 4, 2, 1], queueDelayMicroseconds: [0, 500] };
    await bruteSearch(analysis, { m: sizes }, { endsSizesEarly: true });
    const measured = (delay: number | undefined) =>
      machine.opened
        .map(({ m }) => m!)
        .filter(
          ({ maxBatchSize, queueDelayMicroseconds }) => maxBatchSize && queueDelayMicroseconds === delay,
        )
        .map(({ maxBatchSize }) => maxBatchSize);
    // With 8 requests in flight, batches of more than 8 gain nothing. A batch of 1 knows no delay, and is measured once.
    expect(measured(undefined)).toEqual([1]);
    expect(measured(0)).toEqual([2, 4, 8, 16, 32, 64]);
    expect(measured(500)).toEqual([2, 4, 8, 16, 32, 64]);
  });

  it("measures all batch sizes of a list unless it may end early", async () => {
    const machine = new SimulatedMachine();
    await bruteSearch(analysisOf(machine, { load: concurrencies(8) }), {
      m: { maxBatchSize: [1, 8, 16, 32, 64] },
    });
    expect(machine.opened.length).toBe(6);
  });

  it("ends the batch sizes at one that does not work, and goes on with the next number of instances", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => (m!.maxBatchSize! > 2 ? "no memory" : undefined);
    const analysis = analysisOf(machine, { load: concurrencies(8) });
    const space = { instances: [1, 2], maxBatchSize: [1, 2, 4, 8] };
    await bruteSearch(analysis, { m: space }, { endsSizesEarly: true });
    expect(machine.opened.map(({ m }) => [m!.instances, m!.maxBatchSize]).slice(1)).toEqual([
      [1, 1],
      [1, 2],
      [1, 4],
      [2, 1],
      [2, 2],
      [2, 4],
    ]);
  });

  it("ends the loads of a configuration where the throughput no longer rises", async () => {
    const analysis = analysisOf(new SimulatedMachine(), { load: concurrencies(1, 2, 4, 8, 16, 32, 64) });
    await bruteSearch(analysis, { m: { maxBatchSize: [2], instances: [1] } }, { endsLoadsEarly: true });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // Batches are full from 2 requests in flight on.
    expect(runs.map(({ level }) => level.value)).toEqual([1, 2, 4, 8, 16]);
  });

  it("bisects between the last load that meets the constraints and the first that does not", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 40 } } };
    const analysis = analysisOf(new SimulatedMachine(), { goal, load: concurrencies(1, 20, 200) });
    await bruteSearch(analysis, { m: { maxBatchSize: [16], instances: [1] } });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // A batch of 16 takes 20 ms, so 32 requests in flight take 40 ms.
    expect(runs.map(({ level }) => level.value)).toEqual([1, 20, 200, 110, 65, 42, 31, 36]);
    expect(analysis.best!.runs).toBe(runs);
  });

  it("bisects request rates too", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 40 } } };
    const levels = [100, 400].map(
      (value) => ({ mode: "request_rate", value, distribution: "constant" }) as const,
    );
    const analysis = analysisOf(new SimulatedMachine(), { goal, load: { kind: "levels", levels } });
    await bruteSearch(analysis, { m: { maxBatchSize: [1], instances: [1] } });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // 5 ms for each request: 200 a second.
    expect(runs.slice(2).map(({ level }) => level.value)).toEqual([250, 175, 212.5, 193.75, 203.125]);
    expect(runs.every(({ level }) => "distribution" in level)).toBe(true);
  });

  it("sweeps the load of the best configurations when it has chosen the load itself", async () => {
    const analysis = analysisOf(new SimulatedMachine(sharedCores), {
      load: { kind: "automatic", min: 1, max: 64 },
    });
    await bruteSearch(analysis, { m: { maxBatchSize: [1, 2, 4, 8, 16] } });
    const { best, results } = analysis;
    const [fallback] = results;
    expect([best!.runs.length > 3, fallback!.runs.length > 3]).toEqual([true, true]);
    expect(results.filter(({ runs }) => runs.length === 1).length).toBeGreaterThan(1);
  });
});

const levels = [{ mode: "concurrency", value: 8 }] as const;

const candidates: readonly Candidate[] = [1, 2, 4].map((maxBatchSize) => ({ m: { maxBatchSize } }));

const sizesOf = (opened: readonly Candidate[]) => opened.map(({ m }) => m!.maxBatchSize);

/** Runs three candidates in turns, on a machine on which loading and measuring take these milliseconds. */
async function endsOf(
  machine: SimulatedMachine,
  { loadMs = 0, measureMs = 1200, leastMs = 0, isOver = (): boolean => false } = {},
): Promise<TurnEnd[]> {
  let time = 0;
  const { open } = machine;
  machine.open = async (candidate) => {
    const { measure, close } = await open.call(machine, candidate);
    time += loadMs;
    return {
      close,
      measure: (level, signal, share = 1) => {
        time += Math.max(share * measureMs, leastMs);
        return measure(level, signal, share);
      },
    };
  };
  const ends: TurnEnd[] = [];
  await runInTurns(
    {
      machine,
      signal: new AbortController().signal,
      now: () => time,
      isOver,
      onBegin() {},
      onTurn() {},
      onEnd: async (end) => void ends.push(end),
    },
    candidates.map((candidate) => ({ candidate, levels })),
  );
  return ends;
}

describe("measuring in turns", () => {
  it("goes to and fro, and ends each candidate with the means of its turns", async () => {
    const machine = new SimulatedMachine();
    const ends = await endsOf(machine);
    expect(sizesOf(machine.opened).slice(0, 9)).toEqual([1, 2, 4, 4, 2, 1, 1, 2, 4]);
    expect(machine.opened.length).toBe(3 * 7);
    expect(machine.measured).toBe(3);
    expect(ends.map(({ isPartial, runs }) => [isPartial, runs.length])).toEqual(Array(3).fill([false, 1]));
    expect(ends.map(({ runs }) => runs[0]!.measurements)).toEqual([undefined, undefined, undefined]);
  });

  it.each([
    ["that takes a sixth of a measurement gives six turns", 200, 6],
    ["that takes half of a measurement gives two turns", 600, 2],
    ["that takes longer than a measurement gives one turn", 5000, 1],
  ])("a load %s", async (_, loadMs, turns) => {
    const machine = new SimulatedMachine();
    await endsOf(machine, { loadMs });
    expect(machine.opened.length).toBe(3 * (1 + turns));
  });

  it.each([
    ["a sixth", 200, 6],
    ["half", 600, 2],
    ["more than the whole", 1500, 1],
  ])(
    "gives a slow model that needs %s of a measurement for an answer fewer turns",
    async (_, leastMs, turns) => {
      const machine = Object.assign(new SimulatedMachine(), { wholeMs: 1200 });
      await endsOf(machine, { leastMs });
      expect(machine.opened.length).toBe(3 * (1 + turns));
    },
  );

  it("tells how much the throughput of a candidate varied between its turns", async () => {
    const machine = new SimulatedMachine();
    let turns = 0;
    machine.noise = ({ m }) => (m!.maxBatchSize === 4 && turns++ % 2 === 1 ? 1.5 : 1);
    const spreads = new Map(
      (await endsOf(machine)).map(({ turn, runs }) => [turn.candidate.m!.maxBatchSize, runs[0]!.spread]),
    );
    expect(spreads.get(1)).toBeCloseTo(0);
    expect(spreads.get(4)).toBeCloseTo(0.5 / 1.25);
  });

  it("leaves out a candidate that cannot be loaded", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => (m!.maxBatchSize === 2 ? "no memory" : undefined);
    const ends = await endsOf(machine);
    expect(ends[0]).toMatchObject({ fault: "no memory", runs: [], isPartial: false });
    expect(machine.opened.filter(({ m }) => m!.maxBatchSize === 2)).toHaveLength(1);
    expect(ends).toHaveLength(3);
  });

  it("keeps the turns before an end as partial measurements", async () => {
    const machine = new SimulatedMachine();
    const ends = await endsOf(machine, { isOver: () => machine.opened.length >= 5 });
    expect(ends.map(({ turn, isPartial }) => [candidateKey(turn.candidate), isPartial])).toEqual(
      [candidates[1]!, candidates[2]!].map((candidate) => [candidateKey(candidate), true]),
    );
  });
});
