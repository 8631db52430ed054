import { describe, expect, it } from "vitest";
import { type Candidate, candidateKey } from "../../../src/analyze/candidate.js";
import { runInTurns, type TurnEnd } from "../../../src/analyze/run-candidate.js";
import { SimulatedMachine } from "../support/simulated-machine.js";

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
