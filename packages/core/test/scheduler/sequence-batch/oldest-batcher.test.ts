import { describe, expect, it } from "vitest";
import { SequenceBench } from "../../support/sequence-bench.js";

const oldest = (maxBatchSize = 4, more: object = {}) => ({ maxBatchSize, sequence: { ...more } }) as const;

describe("the oldest strategy", () => {
  it("joins the next requests of different sequences, without null requests", async () => {
    const bench = new SequenceBench(oldest());
    for (const what of ["A1^", "B1^", "A2", "C1^"]) bench.send(what);
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1 B1 C1", "A2"]);
  });

  it("runs one request of a sequence at a time", async () => {
    const bench = new SequenceBench(oldest());
    for (const what of ["A1^", "A2", "A3$"]) bench.send(what);
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1", "A2", "A3"]);
  });

  it("takes more sequences than fit a batch, the oldest requests first", async () => {
    const bench = new SequenceBench(oldest(2, { maxCandidateSequences: 4 }));
    for (const what of ["A1^", "B1^", "C1^", "D1^", "E1^$"]) bench.send(what);
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1 B1", "C1 D1"]);
    bench.send("B2$");
    await bench.clock.advance(100);
    expect(bench.batches.slice(2)).toEqual(["B2", "E1"]);
  });

  it("runs the ready requests of sequences by deadline, and refuses those without hope", async () => {
    const bench = new SequenceBench({
      ...oldest(1, { maxCandidateSequences: 8 }),
      parameters: { deadlines: "true" },
    });
    for (let i = 0; i < 6; i++) {
      bench.send("A1^$");
      await bench.clock.advance(20);
    }
    bench.batches.length = 0;
    bench.outcomes.length = 0;
    const now = bench.clock.now();
    for (const [what, limitMs] of [
      ["A1^", 500],
      ["B1^", 400],
      ["C1^", 50],
      ["D1^$", 5],
    ] as const) {
      bench.send(what, { deadline: now + limitMs });
    }
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["C1", "B1", "A1"]);
    expect(bench.outcomes[0]).toContain("D1: UNAVAILABLE");
  });

  it("counts the queue delay from the time a request may run", async () => {
    const bench = new SequenceBench(
      oldest(4, { preferredBatchSize: [2], maxQueueDelayMicroseconds: 100_000 }),
    );
    bench.send("A1^");
    bench.send("A2$");
    await bench.clock.advance(109);
    expect(bench.batches).toEqual(["A1"]);
    await bench.clock.advance(99);
    expect(bench.batches).toEqual(["A1"]);
    await bench.clock.advance(3);
    expect(bench.batches).toEqual(["A1", "A2"]);
  });

  it("frees the slot when END is dispatched, and delays the next sequence in it", async () => {
    const bench = new SequenceBench(oldest(4, { maxQueueDelayMicroseconds: 100_000 }));
    for (const what of ["A1^$", "B1^$", "C1^$"]) bench.send(what);
    await bench.clock.advance(300);
    expect(bench.batches).toEqual(["A1 C1", "B1"]);
  });

  it("continues a sequence after one of its waiting requests was cancelled", async () => {
    const bench = new SequenceBench(oldest(4, { maxQueueDelayMicroseconds: 100_000 }));
    const first = bench.send("A1^");
    bench.send("A2");
    first.cancel();
    await bench.clock.advance(150);
    expect(bench.batches).toEqual(["A2"]);
  });

  it("fails the batched requests when the instance fails, and keeps sequences that have not begun", async () => {
    const bench = new SequenceBench(oldest(1, { maxQueueDelayMicroseconds: 0 }));
    await bench.sendEach("A1^");
    bench.instances.instances[0]!.executor.onHealth?.(false);
    await bench.sendEach("B1^", "C1^$");
    expect(bench.refusal("A2")).toMatch(/must specify the START flag/);
    bench.instances.instances[0]!.executor.onHealth?.(false);
    expect(bench.outcomes).toEqual([
      "A1: response",
      "B1: UNAVAILABLE an instance of model 'm' failed, and the state of its sequences is lost: start the sequence again",
    ]);
    bench.instances.instances[0]!.executor.onHealth?.(true);
    await bench.clock.advance(50);
    expect(bench.batches).toEqual(["A1", "C1"]);
  });
});
