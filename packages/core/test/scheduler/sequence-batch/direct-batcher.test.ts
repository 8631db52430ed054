import { describe, expect, it } from "vitest";
import { SequenceBench } from "../../support/sequence-bench.js";

const direct = (maxBatchSize = 4, more: object = {}) =>
  ({ maxBatchSize, sequence: { strategy: "direct", ...more } }) as const;

describe("the direct strategy", () => {
  it("gives each sequence its own row, and fills rows without a request", async () => {
    const bench = new SequenceBench(direct());
    await bench.sendEach("A1^", "B1^", "C1^", "B2", "A2", "C2$");
    expect(bench.batches).toEqual(["A1", "- B1", "- - C1", "- B2", "A2", "- - C2"]);
  });

  it("joins one waiting request of each sequence when the instance becomes idle", async () => {
    const bench = new SequenceBench(direct());
    bench.send("A1^");
    await bench.clock.advance(1);
    for (const what of ["A2", "B1^", "B2", "A3"]) bench.send(what);
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1", "A2 B1", "A3 B2"]);
  });

  it("lets clients that have just got their answers join one batch", async () => {
    const bench = new SequenceBench(direct());
    const next: Record<string, string> = { A1: "A2", B1: "B2" };
    const onResponse = (id: string) => () => void Promise.resolve().then(() => bench.send(next[id]!));
    bench.send("A1^", { onResponse: onResponse("A1") });
    bench.send("B1^", { onResponse: onResponse("B1") });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1 B1", "A2 B2"]);
  });

  it("gives the lowest free slot to a new sequence", async () => {
    const bench = new SequenceBench(direct());
    await bench.sendEach("A1^", "B1^", "C1^", "B2$", "A2$", "D1^", "E1^", "F1^");
    expect(bench.batches.slice(5)).toEqual(["D1", "- E1", "- - - F1"]);
  });

  it("chooses the lowest slot across instances", async () => {
    const bench = new SequenceBench(direct(2), 2);
    await bench.sendEach("A1^", "B1^", "C1^", "D1^", "A2$", "E1^");
    expect(bench.takenBy).toEqual([0, 1, 0, 1, 0, 0]);
    expect(bench.batches).toEqual(["A1", "B1", "- C1", "- D1", "A2", "E1"]);
  });

  it("runs a request with another shape later, with null requests for the other rows", async () => {
    const bench = new SequenceBench(direct(), 1, {}, { inputs: [{ name: "x", dtype: "FP32", shape: [-1] }] });
    bench.send("A1^", { columns: 2 });
    bench.send("B1^", { columns: 3 });
    bench.send("C1^", { columns: 2 });
    await bench.clock.advance(100);
    expect(bench.batches).toEqual(["A1 - C1", "- B1"]);
    expect(bench.seen.map(({ inputs }) => inputs.get("x")!.shape)).toEqual(
      [2, 2, 2, 3, 3].map((columns) => [1, columns]),
    );
  });

  it("gives null requests zeros and no id, and leaves them out of the statistics", async () => {
    const bench = new SequenceBench(direct(4, { controls: { ready: "READY" } }));
    await bench.sendEach("A1^", "B1^");
    const filler = bench.seen[1]!;
    expect([filler.ready, filler.correlationId, filler.sequence]).toEqual([false, undefined, undefined]);
    expect([...filler.inputs].map(([name, { elements }]) => [name, [...elements]])).toEqual([
      ["x", [0, 0]],
      ["READY", [0]],
    ]);
    expect(bench.statistics.success.count).toBe(2);
    expect([...bench.statistics.batches.keys()]).toEqual([1, 2]);
  });

  it("waits for enough slots or for the delay of the oldest request", async () => {
    const bench = new SequenceBench(
      direct(4, { minimumSlotUtilization: 0.5, maxQueueDelayMicroseconds: 50_000 }),
    );
    await bench.sendEach("A1^", "B1^");
    expect(bench.batches).toEqual(["A1 B1"]);
    bench.send("A2");
    await bench.clock.advance(49);
    expect(bench.batches).toHaveLength(1);
    await bench.clock.advance(2);
    expect(bench.batches).toEqual(["A1 B1", "A2"]);
  });

  it("runs one request at a time when the model has no batch axis", async () => {
    const bench = new SequenceBench({ batching: false, sequence: { strategy: "direct" } });
    await bench.sendEach("A1^", "B1^$", "A2$");
    await bench.clock.advance(50);
    expect(bench.batches).toEqual(["A1", "A2", "B1"]);
  });
});
