import { availableParallelism } from "node:os";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import type { LoadClock } from "../../src/load/feeder.js";
import { defaultThreads } from "../../src/load/load-generator.js";
import type { LoadLevel, SessionConcurrencyLevel } from "../../src/load/load-level.js";
import { LoadLoop, type LoopPlan, threadCpuMs } from "../../src/load/load-loop.js";
import { type SequenceLoad, sequenceRules } from "../../src/load/sequence-load.js";
import type { LoadRequest } from "../../src/target/carrier.js";
import { LoopBench, type SentRequest } from "../support/loop-bench.js";

/** A loop under a virtual clock, with a carrier whose requests take `serviceMs`, or fail as lost connections. */
class Bench {
  readonly clock = new VirtualClock();
  readonly sentAt: number[] = [];
  serviceMs = 5;
  isDown = false;
  readonly loop: LoadLoop;
  readonly #time: LoadClock = {
    now: () => this.clock.now(),
    wakeAt: (time, run) => this.clock.setTimer(Math.max(0, time - this.clock.now()), run),
  };

  constructor(share = { index: 0, count: 1 }, sequences?: LoopPlan["sequences"]) {
    const kept = { responses: false, outputs: false, tokens: false };
    this.loop = new LoadLoop(
      { share, seed: 3, payloads: 7, kept, ...(sequences !== undefined && { sequences }) },
      (_, onEnd) => ({
        bytesSent: 0,
        bytesReceived: 0,
        send: (request) => this.#send(request, onEnd),
        cancel: () => {},
        close: () => {},
      }),
      this.#time,
    );
  }

  #send(request: LoadRequest, onEnd: (request: LoadRequest) => void): void {
    this.sentAt.push(this.clock.now());
    request.sent = this.clock.now();
    const end = () => {
      request.end = this.clock.now();
      if (this.isDown) request.fail("cannot connect");
      else request.responded(request.end);
      request.isConnectionLost = this.isDown;
      onEnd(request);
    };
    this.clock.setTimer(this.isDown ? 0 : this.serviceMs, end);
  }
}

describe("a load loop", () => {
  it("sends at a constant rate from the first slot on, whether answers come or not", async () => {
    const bench = new Bench();
    bench.serviceMs = 1000;
    bench.loop.begin({ mode: "request_rate", value: 100, distribution: "constant" }, 0);
    await bench.clock.advance(45);
    expect(bench.sentAt).toEqual([0, 10, 20, 30, 40]);
  });

  it("keeps requests in flight, and follows a ramp", async () => {
    const bench = new Bench();
    bench.serviceMs = 10;
    bench.loop.begin({ mode: "concurrency_ramp", from: 1, to: 3, durationMs: 20 }, 0);
    const inFlight: number[] = [];
    for (let i = 0; i < 5; i++) {
      await bench.clock.advance(6);
      inFlight.push(bench.loop.inFlight);
    }
    expect(inFlight).toEqual([1, 2, 2, 3, 3]);
    void bench.loop.pause();
    await bench.clock.advance(10);
    expect(bench.loop.inFlight).toBe(0);
  });

  it("tries a server that is gone after pauses that double to a second, and goes on when it is back", async () => {
    const bench = new Bench();
    bench.isDown = true;
    bench.loop.begin({ mode: "concurrency", value: 1 }, 0);
    await bench.clock.advance(5000);
    expect(bench.sentAt).toEqual([0, 10, 30, 70, 150, 310, 630, 1270, 2270, 3270, 4270]);
    bench.isDown = false;
    await bench.clock.advance(300);
    expect(bench.sentAt.slice(11, 14)).toEqual([5270, 5275, 5280]);
  });

  it("fails the slots of a rate while the server cannot be reached, without trying each", async () => {
    const bench = new Bench();
    bench.isDown = true;
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, 0);
    await bench.clock.advance(100.5);
    const { records, delayed } = bench.loop.take();
    expect(records.count).toBe(101);
    expect(delayed).toBe(0);
    expect(records.errors).toEqual(["cannot connect"]);
    expect(bench.sentAt.length).toBeLessThan(8);
  });

  it("does not count requests as late that waited for a server which is gone, and tries few of them", async () => {
    const streams = [{ first: 0, count: 3 }];
    const rules = sequenceRules({}, false, { index: 0, count: 1 });
    const bench = new Bench(undefined, { streams, rules, live: 1, serial: true });
    bench.serviceMs = 200;
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, 0);
    await bench.clock.advance(250);
    bench.isDown = true;
    await bench.clock.advance(250);
    const { records, delayed } = bench.loop.take();
    expect(records.count).toBeGreaterThan(300);
    expect(records.errors).toEqual(["cannot connect"]);
    expect(delayed).toBe(0);
    expect(bench.sentAt.length).toBeLessThan(12);
  });

  it.each<LoadLevel>([
    { mode: "request_rate", value: 500, distribution: "poisson" },
    { mode: "request_rate_ramp", from: 0, to: 900, distribution: "poisson", durationMs: 100 },
    { mode: "request_intervals", gapsMicroseconds: [1500, 250, 4000] },
  ])("sends the same schedule from any number of threads: $mode", async (level) => {
    const times = async (count: number) => {
      const all: number[] = [];
      for (let index = 0; index < count; index++) {
        const bench = new Bench({ index, count });
        bench.loop.begin(level, 0);
        await bench.clock.advance(200);
        all.push(...bench.sentAt);
      }
      return all.sort((a, b) => a - b);
    };
    const one = await times(1);
    expect(one.length).toBeGreaterThan(50);
    expect(await times(3)).toEqual(one);
  });

  it("records the scheduled time, and counts requests that were sent late", async () => {
    const bench = new Bench();
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, -3);
    await bench.clock.advance(10.5);
    const { records, delayed } = bench.loop.take();
    expect(Array.from(records.scheduled.slice(0, 4))).toEqual([-3, -2, -1, 0]);
    expect(Array.from(records.sent.slice(0, 4))).toEqual([0, 0, 0, 0]);
    expect(delayed).toBe(2);
  });
});

describe("load options", () => {
  it.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [4, 2],
    [7, 3],
    [16, 8],
    [96, 8],
  ])("a machine with %i cores has %i threads that send: half of the cores, from 1 to 8", (cores, threads) => {
    expect(defaultThreads(cores)).toBe(threads);
  });

  it("the threads depend on the cores that this process may use", () => {
    expect(defaultThreads()).toBe(defaultThreads(availableParallelism()));
  });
});

const LEVEL = { mode: "periodic_concurrency", start: 2, end: 7, step: 3, responses: 3 } as const;

/** A response each 10 ms. */
const responding = (count: number) => ({
  responsesMs: Array.from({ length: count }, (_, i) => 10 * (i + 1)),
  endMs: 10 * count,
});

describe("a periodic concurrency", () => {
  it("sends the next batch when all requests of the last one have their responses", async () => {
    // The second request is slower: its third response comes after 45 ms.
    const bench = new LoopBench((n) =>
      n === 1 ? { responsesMs: [15, 30, 45], endMs: 100 } : { ...responding(5), endMs: 100 },
    );
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(300);
    await run;
    // 2, then 3 more, then the 2 that are left of 7 in all.
    expect(bench.sent.map(({ at }) => at)).toEqual([0, 0, 45, 45, 45, 75, 75]);
    expect(bench.loop.take().records.count).toBe(7);
  });

  it("goes on when a request ends before it has its responses", async () => {
    const bench = new LoopBench((n) =>
      n === 0 ? { responsesMs: [], endMs: 50, failure: "boom" } : responding(3),
    );
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(300);
    await run;
    expect(bench.sent.map(({ at }) => at)).toEqual([0, 0, 50, 50, 50, 80, 80]);
    expect(bench.loop.take().records.errors).toEqual(["boom"]);
  });

  it("ends with the batch in flight when it is paused", async () => {
    const bench = new LoopBench(() => responding(3));
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(5);
    const paused = bench.loop.pause();
    await bench.clock.advance(300);
    await Promise.all([run, paused]);
    expect(bench.sent).toHaveLength(2);
  });

  it("is sent by the first of several threads", async () => {
    const bench = new LoopBench(() => responding(3), { index: 1, count: 2 });
    await bench.loop.run(LEVEL, LEVEL.end, 0);
    expect(bench.sent).toEqual([]);
  });
});

describe("session feeder", () => {
  const LEVEL: SessionConcurrencyLevel = {
    mode: "session_concurrency",
    value: 2,
    sessions: [
      {
        id: "a",
        turns: [
          { payload: 0, delayMs: 30 },
          { payload: 3, delayMs: 0 },
          { payload: 4, delayMs: 0 },
        ],
      },
      { id: "b", turns: [{ payload: 1, delayMs: 500 }] },
      {
        id: "c",
        turns: [
          { payload: 2, delayMs: 5 },
          { payload: 5, delayMs: 0 },
        ],
      },
    ],
  };

  const answered = { responsesMs: [10], endMs: 10 };

  describe("a session concurrency", () => {
    it("sends each turn after the answer and the delay of the one before, and keeps sessions alive", async () => {
      const bench = new LoopBench(() => answered);
      const run = bench.loop.run(LEVEL, 6, 0);
      await bench.clock.advance(200);
      await run;
      expect(bench.sent.map(({ at, payload, sequenceId }) => [at, payload, sequenceId])).toEqual([
        [0, 0, 1],
        [0, 1, 2],
        // The third session begins when the second one has ended: no delay follows a last turn.
        [10, 2, 3],
        [25, 5, 3],
        [40, 3, 1],
        [50, 4, 1],
      ]);
      // A turn is scheduled after the delay, so the delay is not latency.
      expect(bench.sent.every(({ at, scheduled }) => at === scheduled)).toBe(true);
      expect(bench.sent.filter(({ isFirst }) => isFirst).map(({ payload }) => payload)).toEqual([0, 1, 2]);
      expect(bench.sent.filter(({ isLast }) => isLast).map(({ payload }) => payload)).toEqual([1, 5, 4]);
    });

    it("ends a session with a turn that fails, and begins the next one", async () => {
      const bench = new LoopBench((n) => (n === 0 ? { ...answered, failure: "boom" } : answered));
      const run = bench.loop.run(LEVEL, 6, 0);
      await bench.clock.advance(200);
      await run;
      expect(bench.sent.map(({ payload }) => payload)).toEqual([0, 1, 2, 5]);
    });

    it("sends no further turn when it is paused during a delay", async () => {
      const bench = new LoopBench(() => answered);
      const run = bench.loop.run(LEVEL, 6, 0);
      await bench.clock.advance(20);
      await Promise.all([bench.loop.pause(), run]);
      await bench.clock.advance(200);
      expect(bench.sent.map(({ payload }) => payload)).toEqual([0, 1, 2]);
    });
  });
});

describe("sequence load", () => {
  it("options of sequences that are undefined leave the defaults as they are", () => {
    const options = {
      idStart: undefined,
      idRange: undefined,
      length: undefined,
      lengthVariationPercent: undefined,
    };
    expect(sequenceRules(options, false, { index: 1, count: 2 })).toEqual({
      hasGivenSteps: false,
      length: undefined,
      defaultLength: 20,
      lengthVariationPercent: 20,
      idStart: 0x8000_0000,
      idRange: 0x8000_0000,
    });
  });
});

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

describe("thread cpu", () => {
  it("the CPU time of a thread rises while it works, and is not more than that of its process", () => {
    const before = threadCpuMs();
    const processBefore = process.cpuUsage();
    // Some systems count in steps.
    while (threadCpuMs() < before + 20) JSON.stringify({ before });
    const used = threadCpuMs() - before;
    const { user, system } = process.cpuUsage(processBefore);
    expect(used).toBeGreaterThanOrEqual(20);
    // Elsewhere it is the time for which the event loop was busy.
    const isKnown = process.platform === "linux" || "threadCpuUsage" in process;
    // Steps of the two clocks differ.
    if (isKnown) expect(used).toBeLessThan((user + system) / 1000 + 20);
  });
});
