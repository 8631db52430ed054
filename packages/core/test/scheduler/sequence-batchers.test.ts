import { deadlines } from "@tritonjs/scheduling";
import { describe, expect, it } from "vitest";
import type { SequenceOptions } from "../../src/config/sequence-options.js";
import type { Batcher } from "../../src/scheduler/batcher.js";
import { ControlInputs, type ControlValues } from "../../src/scheduler/sequence/slot-batchers.js";
import { modelConfig } from "../support/model-config.js";
import { SequenceBench } from "../support/sequence-bench.js";

function controlsOf(
  controls: SequenceOptions["controls"],
  values: Partial<ControlValues>,
  maxBatchSize = 4,
): Record<string, unknown> {
  const config = modelConfig({ options: { sequence: { controls }, batching: maxBatchSize > 0 } });
  const given = { correlationId: 7n, sequenceStart: false, sequenceEnd: false, ready: true, ...values };
  const inputs = new ControlInputs(config).addTo(new Map(), given);
  return Object.fromEntries(
    [...inputs].map(([name, { datatype, shape, elements }]) => [name, [datatype, shape, [...elements]]]),
  );
}

describe("control tensors", () => {
  const flags = {
    start: "S",
    end: { name: "E", dtype: "FP32" },
    ready: { name: "R", dtype: "BOOL" },
  } as const;

  it("mark the place of a request in its sequence", () => {
    expect(controlsOf(flags, { sequenceStart: true })).toEqual({
      S: ["INT32", [1, 1], [1]],
      E: ["FP32", [1, 1], [0]],
      R: ["BOOL", [1, 1], [1]],
    });
    expect(controlsOf(flags, { sequenceEnd: true })).toMatchObject({
      S: ["INT32", [1, 1], [0]],
      E: ["FP32", [1, 1], [1]],
    });
  });

  it("have one dimension when the model has no batch axis", () => {
    expect(controlsOf({ start: "S" }, {}, 0)).toEqual({ S: ["INT32", [1], [0]] });
  });

  it("are false, zero and empty for a null request", () => {
    const none = { ready: false, sequenceStart: true, sequenceEnd: true };
    expect(controlsOf({ ...flags, correlationId: { name: "C" } }, none)).toEqual({
      S: ["INT32", [1, 1], [0]],
      E: ["FP32", [1, 1], [0]],
      R: ["BOOL", [1, 1], [0]],
      C: ["UINT64", [1, 1], [0n]],
    });
  });

  it.each([
    ["UINT64", 2n ** 63n, 2n ** 63n],
    ["INT64", 2n ** 64n - 1n, -1n],
    ["UINT32", 2n ** 32n + 5n, 5],
    ["INT32", 3_000_000_000n, -1_294_967_296],
  ] as const)("carry an integer id as %s", (dtype, id, element) => {
    const { C } = controlsOf({ correlationId: { name: "C", dtype } }, { correlationId: id });
    expect(C).toEqual([dtype, [1, 1], [element]]);
  });

  it("carry a text id as UTF-8", () => {
    const { C } = controlsOf({ correlationId: { name: "C", dtype: "BYTES" } }, { correlationId: "né" });
    expect(C).toEqual(["BYTES", [1, 1], [new TextEncoder().encode("né")]]);
  });
});

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
    const batcher = deadlines() as unknown as Batcher;
    const bench = new SequenceBench(oldest(1, { maxCandidateSequences: 8 }), 1, { batcher });
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
