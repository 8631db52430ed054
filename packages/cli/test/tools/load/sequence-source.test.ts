import { describe, expect, it } from "vitest";
import type { LoadLevel } from "../../../src/load/load-level.js";
import { type SequenceLoad, sequenceRules } from "../../../src/load/sequence-load.js";
import { LoopBench, type SentRequest } from "../support/loop-bench.js";

const RATE: LoadLevel = { mode: "request_rate", value: 1000, distribution: "constant" };
const ANSWER_MS = 20;

interface SequenceBench extends SequenceLoad {
  readonly level?: LoadLevel;
  readonly requests: number;
  readonly hasGivenSteps?: boolean;
  readonly answerMs?: number;
}

/** The requests of a run with sequences, over two streams of 3 and 5 steps. */
async function send(options: SequenceBench): Promise<readonly SentRequest[]> {
  const { level = RATE, requests, hasGivenSteps = false, answerMs = ANSWER_MS, serial = true } = options;
  const share = { index: 0, count: 1 };
  const streams = [
    { first: 0, count: 3 },
    { first: 3, count: 5 },
  ];
  const rules = sequenceRules(options, hasGivenSteps, share);
  const bench = new LoopBench(() => ({ responsesMs: [answerMs], endMs: answerMs }), share, {
    streams,
    rules,
    live: options.count ?? 4,
    serial,
  });
  const run = bench.loop.run(level, requests, 0);
  for (let hasEnded = false; !hasEnded; ) {
    void run.then(() => {
      hasEnded = true;
    });
    await bench.clock.advance(100);
  }
  return bench.sent;
}

/** Sequences in the order of their first requests. Ids come again, so a first request begins a new one. */
function sequencesOf(sent: readonly SentRequest[]): (readonly SentRequest[])[] {
  const all: SentRequest[][] = [];
  const open = new Map<number, SentRequest[]>();
  for (const request of sent) {
    if (request.isFirst) {
      expect(open.has(request.sequenceId)).toBe(false);
      const sequence: SentRequest[] = [];
      all.push(sequence);
      open.set(request.sequenceId, sequence);
    }
    open.get(request.sequenceId)!.push(request);
    if (request.isLast) open.delete(request.sequenceId);
  }
  expect(open.size).toBe(0);
  return all;
}

const lengthsOf = (sent: readonly SentRequest[]) => sequencesOf(sent).map(({ length }) => length);

describe("the lengths of sequences", () => {
  it.each([
    ["20, and up to 20% more or less, by default", {}, 16, 24],
    ["the given one without a variation", { length: 7, lengthVariationPercent: 0 }, 7, 7],
    ["the given one with a variation", { length: 10, lengthVariationPercent: 50 }, 5, 15],
    ["never less than 1", { length: 2, lengthVariationPercent: 100 }, 1, 3],
  ])("are %s", async (_, options, least, most) => {
    // The last sequences of a run are shorter, so that it has exactly its number of requests.
    const lengths = lengthsOf(await send({ ...options, requests: 1500 })).slice(0, -4);
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(least);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(most);
    if (least === most) return;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    expect(Math.abs(mean / ((least + most) / 2) - 1)).toBeLessThan(0.15);
    expect(new Set(lengths).size).toBeGreaterThan(2);
  });

  it("are those of the given data, whose steps come in their order", async () => {
    for (const sequence of sequencesOf(await send({ requests: 400, hasGivenSteps: true })).slice(0, -4)) {
      const payloads = sequence.map(({ payload }) => payload);
      expect([
        [0, 1, 2],
        [3, 4, 5, 6, 7],
      ]).toContainEqual(payloads);
    }
  });

  it("are the given one with given data, which begins again", async () => {
    const sent = await send({ requests: 120, hasGivenSteps: true, length: 6, lengthVariationPercent: 0 });
    for (const sequence of sequencesOf(sent).slice(0, -4)) {
      expect([
        [0, 1, 2, 0, 1, 2],
        [3, 4, 5, 6, 7, 3],
      ]).toContainEqual(sequence.map(({ payload }) => payload));
    }
  });
});

/** Most sequences that had begun and whose last request was not sent. */
function mostLive(sent: readonly SentRequest[]): number {
  const open = new Set<number>();
  let most = 0;
  for (const { sequenceId, isLast } of sent) {
    open.add(sequenceId);
    most = Math.max(most, open.size);
    if (isLast) open.delete(sequenceId);
  }
  return most;
}

/** Most requests of one sequence in flight. */
function mostOfOneInFlight(sent: readonly SentRequest[]): number {
  return Math.max(
    ...sent.map(
      ({ at, sequenceId }) =>
        sent.filter((one) => one.sequenceId === sequenceId && one.at <= at && at < one.at + ANSWER_MS).length,
    ),
  );
}

describe("live sequences", () => {
  it.each([
    ["--num-of-sequences with a rate", {}, 4],
    ["--num-of-sequences with a rate, when it is given", { count: 7 }, 7],
    ["the concurrency", { level: { mode: "concurrency", value: 3 } as const }, 3],
  ])("are as many as %s", async (_, options, live) => {
    expect(mostLive(await send({ ...options, requests: 300 }))).toBe(live);
  });

  it("have one request in flight when they are serial, and several when they are not", async () => {
    expect(mostOfOneInFlight(await send({ requests: 200, idRange: 1000 }))).toBe(1);
    expect(mostOfOneInFlight(await send({ requests: 200, serial: false }))).toBeGreaterThan(1);
  });

  it("get the ids of --sequence-id-range in turn", async () => {
    const sent = await send({
      requests: 200,
      idStart: 10,
      idRange: 6,
      length: 4,
      lengthVariationPercent: 0,
      answerMs: 0,
    });
    const ids = sequencesOf(sent).map(([first]) => first!.sequenceId);
    expect(new Set(ids)).toEqual(new Set([10, 11, 12, 13, 14, 15]));
    expect(ids.slice(0, 6)).toEqual([10, 11, 12, 13, 14, 15]);
  });

  it("wait for an id while the last request of another sequence has it, even when requests overlap", async () => {
    const sent = await send({ requests: 200, serial: false, count: 3, idRange: 3, length: 5 });
    expect(new Set(sent.map(({ sequenceId }) => sequenceId))).toEqual(new Set([1, 2, 3]));
    const lastOf = new Map<number, number>();
    for (const { at, sequenceId, isFirst, isLast } of sent) {
      if (isFirst) expect(at).toBeGreaterThanOrEqual((lastOf.get(sequenceId) ?? -ANSWER_MS) + ANSWER_MS);
      if (isLast) lastOf.set(sequenceId, at);
    }
  });
});
