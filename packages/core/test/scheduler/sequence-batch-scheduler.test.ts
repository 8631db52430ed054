import { TritonError } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RESCHEDULE } from "../../src/callback/infer-func.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { SequenceBench } from "../support/sequence-bench.js";

const startMissing = (id: string) =>
  `INVALID_ARG inference request for sequence ${id} to model 'm' must specify the START flag on the first request ` +
  "of the sequence";

const noId = "INVALID_ARG inference request to model 'm' must specify a non-zero or non-empty correlation ID";

const strategies = ["direct", "oldest"] as const;

describe.each(strategies)("sequences under the %s strategy", (strategy) => {
  const bench = (maxBatchSize = 4, more: object = {}, instances = 1) =>
    new SequenceBench({ maxBatchSize, sequence: { strategy, ...more } }, instances);

  it("require a correlation id", () => {
    for (const correlationId of [undefined, 0n, ""]) {
      expect(bench().refusal("A1^", { correlationId })).toBe(noId);
    }
  });

  it("distinguish an integer id from a text id with the same digits", async () => {
    const { send, refusal, clock, ...rest } = open(bench());
    send("A1^", { correlationId: 7n });
    await clock.advance(20);
    expect(refusal("A2", { correlationId: "7" })).toBe(startMissing("7"));
    send("A3", { correlationId: 7n });
    await clock.advance(20);
    expect(rest.bench.batches).toEqual(["A1", "A3"]);
  });

  it("require START on the first request", async () => {
    const subject = bench();
    expect(subject.refusal("A1")).toBe(startMissing("A"));
    expect(subject.refusal("A1$")).toBe(startMissing("A"));
    await subject.sendEach("A1^", "A2$");
    expect(subject.refusal("A3")).toBe(startMissing("A"));
    await subject.sendEach("A4^");
    expect(subject.batches).toEqual(["A1", "A2", "A4"]);
  });

  it("reject more than one row", () => {
    const subject = bench();
    const request = subject.send("A1^");
    request.batchSize = 2;
    expect(() => subject.scheduler.enqueue(request)).toThrow(
      "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
    );
  });

  it("keep their slot when they restart, as a new sequence", async () => {
    const subject = bench();
    await subject.sendEach("A1^", "B1^", "A2^", "A3$");
    expect(subject.batches.at(-1)).toBe("A3");
    const [first, , again, end] = subject.seen.filter(({ ready }) => ready).map(({ sequence }) => sequence);
    expect(again).not.toBe(first);
    expect(again!.slot).toBe(first!.slot);
    expect(end).toBe(again);
    expect(subject.evictions).toEqual(["A: restarted"]);
  });

  it("wait in the backlog in the order in which they began", async () => {
    const subject = bench(1);
    await subject.sendEach("A1^", "B1^", "C1^$", "B2$", "A2$");
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A1", "A2", "B1", "B2", "C1"]);
  });

  it("occupy two places in the backlog when an id restarts after its END", async () => {
    const subject = bench(1);
    await subject.sendEach("A1^", "B1^", "B2$", "B3^", "B4$", "A2$");
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A1", "A2", "B1", "B2", "B3", "B4"]);
    const sequences = new Set(subject.seen.map(({ sequence }) => sequence));
    expect(sequences.size).toBe(3);
  });

  it("end silently after the idle time", async () => {
    const subject = bench(4, { maxSequenceIdleMicroseconds: 100_000 });
    subject.send("A1^");
    await subject.clock.advance(90);
    subject.send("A2");
    await subject.clock.advance(99);
    expect(subject.evictions).toEqual([]);
    await subject.clock.advance(2);
    expect(subject.evictions).toEqual(["A: idle"]);
    expect(subject.refusal("A3")).toBe(startMissing("A"));
    expect(subject.deadlines.size).toBe(0);
  });

  it("do not end while the process stood still, because their requests may wait to be read", async () => {
    const subject = bench(4, { maxSequenceIdleMicroseconds: 100_000 });
    await subject.sendEach("A1^", "B1^");
    const { clock } = subject;
    const now = clock.now.bind(clock);
    clock.now = () => now() + 60_000;
    await clock.advance(100);
    expect(subject.evictions).toEqual([]);
    await subject.sendEach("A2");
    expect(subject.batches).toContain("A2");
    await clock.advance(2000);
    expect(subject.evictions.toSorted()).toEqual(["A: idle", "B: idle"]);
  });

  it("give their slot to the backlog when they are idle, and never time out in the backlog", async () => {
    const subject = bench(1, { maxSequenceIdleMicroseconds: 100_000 });
    await subject.sendEach("A1^", "B1^");
    await subject.clock.advance(50);
    expect(subject.batches).toEqual(["A1"]);
    await subject.clock.advance(40);
    expect(subject.batches).toEqual(["A1", "B1"]);
    await subject.clock.advance(60);
    expect(subject.evictions).toEqual(["A: idle"]);
  });

  it("leave the backlog as a whole when one of their requests times out", async () => {
    const subject = bench(1);
    await subject.sendEach("A1^", "B1^");
    subject.send("B2$", { queueTimeoutMicroseconds: 50_000 });
    subject.send("B3^", {});
    await subject.clock.advance(60);
    const expired = "UNAVAILABLE timeout of the corresponding sequence has been expired";
    expect(subject.outcomes).toEqual(["A1: response", `B1: ${expired}`, `B2: ${expired}`]);
    await subject.sendEach("A2$");
    await subject.clock.advance(50);
    expect(subject.batches).toEqual(["A1", "A2", "B3"]);
  });

  it("have no timeout in a slot", async () => {
    const subject = bench();
    subject.execMs = 100;
    subject.send("A1^");
    subject.send("A2", { queueTimeoutMicroseconds: 10_000 });
    await subject.clock.advance(250);
    expect(subject.outcomes).toEqual(["A1: response", "A2: response"]);
  });

  it("end, with all requests behind it, when a waiting request is cancelled", async () => {
    const subject = bench(1);
    subject.execMs = 50;
    subject.send("A1^");
    await subject.clock.advance(1);
    const [, second] = ["A2", "A3", "A4", "B1^$"].map((what) => subject.send(what));
    second!.cancel();
    await subject.clock.advance(200);
    expect(subject.batches).toEqual(["A1", "A2", "B1"]);
    expect(subject.outcomes.slice(0, 2)).toEqual([
      "A4: CANCELLED another request of the same sequence was cancelled, which ended the sequence",
      "A3: CANCELLED the request was cancelled",
    ]);
    expect(subject.evictions).toEqual(["A: cancelled"]);
    expect(subject.refusal("A5")).toBe(startMissing("A"));
  });

  it("continue when a running request is cancelled", async () => {
    const subject = bench();
    const first = subject.send("A1^");
    await subject.clock.advance(1);
    first.cancel();
    await subject.sendEach("A2$");
    await subject.clock.advance(20);
    expect(subject.outcomes).toEqual(["A1: CANCELLED the request was cancelled", "A2: response"]);
  });

  it("leave the backlog when one of their requests is cancelled there", async () => {
    const subject = bench(1);
    await subject.sendEach("A1^");
    const first = subject.send("B1^");
    subject.send("B2$");
    subject.send("C1^$");
    first.cancel();
    subject.send("A2$");
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A1", "A2", "C1"]);
    expect(subject.scheduler.queuedCount).toBe(0);
  });

  it("leave the backlog with the requests before the cancelled one", async () => {
    const subject = bench(1);
    await subject.sendEach("A1^");
    subject.send("B1^");
    const second = subject.send("B2");
    subject.send("B3$");
    second.cancel();
    const other = "CANCELLED another request of the same sequence was cancelled, which ended the sequence";
    expect(subject.outcomes).toEqual([
      "A1: response",
      `B1: ${other}`,
      `B3: ${other}`,
      "B2: CANCELLED the request was cancelled",
    ]);
    await subject.sendEach("A2$");
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A1", "A2"]);
    expect(subject.scheduler.queuedCount).toBe(0);
  });

  it("continue after an error of the model", async () => {
    const subject = bench();
    subject.answer = ({ id }) => (id === "A1" ? new TritonError("INTERNAL", "no") : new Map());
    await subject.sendEach("A1^", "A2$");
    expect(subject.outcomes).toEqual(["A1: INTERNAL no", "A2: response"]);
  });

  it("finish their requests when the scheduler stops, and no sequence can start", async () => {
    const subject = bench(1);
    for (const what of ["A1^", "A2", "B1^$"]) subject.send(what);
    subject.scheduler.stop();
    expect(subject.refusal("C1^")).toMatch(/^UNAVAILABLE .*Server is stopping/);
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A1", "A2", "B1"]);
    expect([subject.deadlines.size, subject.evictions]).toEqual([0, ["A: stopped"]]);
  });

  it("fail when their instance fails, and free their slots", async () => {
    const subject = bench(2);
    const { executor } = subject.instances.instances[0]!;
    subject.send("A1^");
    await subject.clock.advance(1);
    subject.send("A2");
    subject.send("B1^");
    executor.onHealth?.(false);
    await subject.clock.advance(20);
    expect(subject.outcomes.filter((text) => text.startsWith("A2"))).toEqual([
      "A2: UNAVAILABLE an instance of model 'm' failed, and the state of its sequences is lost: start the sequence again",
    ]);
    expect(subject.refusal("A3")).toBe(startMissing("A"));
    executor.onHealth?.(true);
    const before = subject.batches.length;
    await subject.sendEach("C1^");
    expect(subject.batches.slice(before).join(" ")).toContain("C1");
    expect(subject.evictions).toContain("A: failed");
  });

  it("free all memory of abandoned sequences", async () => {
    const count = 2000;
    const subject = new SequenceBench({
      maxBatchSize: 64,
      sequence: strategy === "direct" ? { strategy } : { strategy, maxCandidateSequences: count },
    });
    subject.execMs = 0;
    const opened = strategy === "direct" ? 64 : count;
    for (let i = 0; i < opened; i++) subject.send("A1^", { correlationId: BigInt(i + 1) });
    await subject.clock.advance(1500);
    expect(subject.outcomes).toHaveLength(opened);
    expect(subject.evictions).toHaveLength(opened);
    expect([subject.deadlines.size, subject.scheduler.queuedCount]).toEqual([0, 0]);
  });
});

/** Methods of a bench as functions. */
function open(bench: SequenceBench) {
  return { bench, clock: bench.clock, send: bench.send.bind(bench), refusal: bench.refusal.bind(bench) };
}

describe("holding the first batch of sequences", () => {
  it("lasts until enough requests wait in slots and in the backlog", async () => {
    const hold = { holdUntil: 2, backlogHoldUntil: 2 };
    const bench = new SequenceBench({ maxBatchSize: 1, sequence: { strategy: "direct" } }, 1, hold);
    await bench.sendEach("A1^", "A2$", "B1^$");
    expect(bench.batches).toEqual([]);
    await bench.sendEach("C1^$");
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1", "A2", "B1", "C1"]);
  });

  it("counts cancelled requests", async () => {
    const hold = { holdUntil: 2, backlogHoldUntil: 0 };
    const bench = new SequenceBench({ maxBatchSize: 2, sequence: { strategy: "direct" } }, 1, hold);
    const first = bench.send("A1^$");
    first.cancel();
    await bench.sendEach("B1^$");
    expect(bench.batches.join()).toContain("B1");
  });

  it("uses the batcher's hold in the oldest strategy", async () => {
    const bench = new SequenceBench({ sequence: {} }, 1, { holdUntil: 2 });
    await bench.sendEach("A1^");
    expect(bench.batches).toEqual([]);
    await bench.sendEach("B1^");
    expect(bench.batches).toEqual(["A1 B1"]);
  });
});

describe("sequence batch scheduler iterative", () => {
  /** Each request runs as often as the number in its id says. */
  function bench(more: object = {}): SequenceBench {
    const subject = new SequenceBench({ sequence: { iterative: true, ...more } });
    const runs = new Map<string, number>();
    subject.answer = ({ id }) => {
      const count = (runs.get(id) ?? 0) + 1;
      runs.set(id, count);
      return count < Number(id.slice(1)) ? RESCHEDULE : new Map();
    };
    return subject;
  }

  const noId = { correlationId: undefined };

  describe.each(["direct", "oldest"] as const)("iterative sequences under the %s strategy", (strategy) => {
    it("get an id of their own, and run until the model has finished with them", async () => {
      const subject = bench({ strategy });
      const request = subject.send("A3", noId);
      await subject.clock.advance(100);
      expect(subject.batches).toEqual(["A3", "A3", "A3"]);
      expect(subject.outcomes).toEqual(["A3: response"]);
      expect([request.correlationId, subject.evictions, subject.deadlines.size]).toEqual([1n, [], 0]);
      expect(subject.statistics).toMatchObject({
        inferenceCount: 3,
        success: { count: 3 },
        pendingCount: -1,
      });
    });

    it("admit new requests between two runs", async () => {
      const subject = bench({ strategy });
      subject.send("A4", noId);
      await subject.clock.advance(15);
      subject.send("B2", noId);
      await subject.clock.advance(100);
      const batches = subject.batches.map((batch) => batch.split(" ").sort().join(" "));
      expect(batches).toEqual(["A4", "A4", "A4 B2", "A4 B2"]);
    });

    it("end as idle when one run takes longer than the limit, so that the next one is refused", async () => {
      const subject = bench({ strategy, maxSequenceIdleMicroseconds: 5000 });
      subject.send("A3", noId);
      subject.send("B1", noId);
      await subject.clock.advance(100);
      expect(subject.outcomes).toContain("B1: response");
      expect(subject.outcomes).toContainEqual(expect.stringMatching(/^A3: .*must specify the START flag/));
    });

    it("end between two runs when they are cancelled", async () => {
      const subject = bench({ strategy });
      const request = subject.send("A9", noId);
      await subject.clock.advance(15);
      request.cancel();
      await subject.clock.advance(100);
      expect(subject.batches).toEqual(["A9", "A9"]);
      subject.send("B1", noId);
      await subject.clock.advance(20);
      expect(subject.batches).toEqual(["A9", "A9", "B1"]);
    });

    it("finish when the scheduler stops", async () => {
      const subject = bench({ strategy });
      subject.send("A3", noId);
      await subject.clock.advance(5);
      subject.scheduler.stop();
      await subject.clock.advance(100);
      expect(subject.outcomes).toEqual(["A3: response"]);
    });
  });

  it("a model without iterative sequences cannot ask for another run", async () => {
    const subject = new SequenceBench({ sequence: {} });
    subject.answer = () => RESCHEDULE;
    await subject.sendEach("A1^");
    expect(subject.outcomes).toEqual([
      "A1: INTERNAL model 'm' returned RESCHEDULE, which needs sequence batching with iterative sequences",
    ]);
  });
});

type Step =
  | {
      readonly do: "send";
      readonly id: number;
      readonly start: boolean;
      readonly end: boolean;
      readonly timeout: number;
    }
  | { readonly do: "cancel"; readonly which: number }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "break" };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 30,
      arbitrary: fc.record({
        do: fc.constant("send" as const),
        id: fc.integer({ min: 1, max: 6 }),
        start: fc.boolean(),
        end: fc.boolean(),
        timeout: fc.constantFrom(0, 0, 0, 15_000),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("cancel" as const), which: fc.nat(40) }) },
    { weight: 15, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("break" as const) }) },
  ),
  { maxLength: 60 },
);

describe("sequence batch scheduler settlement", () => {
  it.each(["direct", "oldest"] as const)(
    "under the %s strategy, each request settles once under random events, and no state is left",
    async (strategy) => {
      await fc.assert(
        fc.asyncProperty(
          steps,
          fc.integer({ min: 1, max: 3 }),
          fc.integer({ min: 1, max: 2 }),
          async (all, size, count) => {
            const sequence = { strategy, maxSequenceIdleMicroseconds: 60_000 };
            const bench = new SequenceBench({ maxBatchSize: size, sequence }, count);
            const accepted: InferenceRequest[] = [];
            const answers = new Map<string, number>();
            for (const [i, step] of all.entries()) {
              if (step.do === "advance") await bench.clock.advance(step.ms);
              else if (step.do === "cancel") accepted[step.which]?.cancel();
              else if (step.do === "break") {
                const { executor } = bench.instances.instances[0]!;
                executor.onHealth?.(false);
                await bench.clock.advance(5);
                executor.onHealth?.(true);
              } else {
                const id = `r${i}`;
                try {
                  accepted.push(
                    bench.send(id, {
                      correlationId: BigInt(step.id),
                      sequenceStart: step.start,
                      sequenceEnd: step.end,
                      queueTimeoutMicroseconds: step.timeout,
                      onResponse: () => answers.set(id, (answers.get(id) ?? 0) + 1),
                    }),
                  );
                } catch (error) {
                  expect(TritonError.is(error)).toBe(true);
                }
              }
            }
            await bench.clock.advance(5000);
            expect([...answers]).toEqual(expect.arrayContaining(accepted.map(({ id }) => [id, 1])));
            expect(answers.size).toBe(accepted.length);
            expect([bench.deadlines.size, bench.scheduler.queuedCount]).toEqual([0, 0]);
            // Requests of one id reached the instance in order of arrival.
            const order = bench.seen.filter(({ ready }) => ready);
            for (let id = 1n; id <= 6n; id++) {
              const places = order
                .filter((one) => one.correlationId === id)
                .map(({ id: name }) => Number(name.slice(1)));
              const starts = order.filter((one) => one.correlationId === id && one.sequenceStart).length;
              if (starts <= 1) expect(places).toEqual([...places].sort((a, b) => a - b));
            }
          },
        ),
        { numRuns: 150 },
      );
    },
  );
});
