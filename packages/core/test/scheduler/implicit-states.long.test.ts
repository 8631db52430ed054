import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { SequenceOptions } from "../../src/config/sequence-options.js";
import type { ExecutionResult } from "../../src/instance/backend.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { SequenceBench } from "../support/sequence-bench.js";

const int32 = (...values: number[]) =>
  Tensor.fromElements("INT32", [1, values.length], Int32Array.from(values));

/** A model whose state counts its requests: it grows by one element per request when its length is variable. */
function counting(sequence: SequenceOptions, shape: readonly number[] = [1]) {
  const bench = new SequenceBench({
    sequence: { ...sequence, states: [{ input: "S", output: "S_NEW", dtype: "INT32", shape }] },
  });
  const seen: string[] = [];
  bench.answer = (request: InferenceRequest): ExecutionResult => {
    const state = request.inputs.get("S")!;
    seen.push(`${request.ready ? request.id : "-"}: ${[...state.elements].join(" ")}`);
    const values = [...(state.elements as Int32Array)];
    return new Map([["S_NEW", shape[0] === -1 ? int32(...values, values.length) : int32(values[0]! + 1)]]);
  };
  return { bench, seen };
}

describe.each([["direct"], ["oldest"]] as const)("with the %s strategy, a state output", (strategy) => {
  it("becomes the state input of the next request of its sequence", async () => {
    const { bench, seen } = counting({ strategy });
    await bench.sendEach("A1^", "B1^", "A2", "B2", "A3$", "B3$");
    expect(seen.filter((line) => !line.startsWith("-"))).toEqual(
      ["A1: 0", "B1: 0", "A2: 1", "B2: 1", "A3: 2", "B3: 2"], // biome-ignore format: in order
    );
  });

  it("is dropped at END, at START and after the idle time", async () => {
    const { bench, seen } = counting({ strategy });
    await bench.sendEach("A1^", "A2$", "A3^", "A4", "A5^");
    await bench.clock.advance(2000);
    await bench.sendEach("A6^");
    expect(seen).toEqual(["A1: 0", "A2: 1", "A3: 0", "A4: 1", "A5: 0", "A6: 0"]);
  });

  it("is kept when its request was cancelled meanwhile, and dropped when the model failed", async () => {
    const { bench, seen } = counting({ strategy });
    const { answer } = bench;
    await bench.sendEach("A1^");
    const running = bench.send("A2");
    await bench.clock.advance(5);
    running.cancel();
    await bench.clock.advance(20);
    bench.answer = (request) => {
      answer(request);
      return new Map();
    };
    await bench.sendEach("A3", "A4");
    expect(seen).toEqual(["A1: 0", "A2: 1", "A3: 2", "A4: 2"]);
  });

  it("runs in a separate batch when its length differs", async () => {
    const { bench, seen } = counting({ strategy }, [-1]);
    await bench.sendEach("A1^", "A2", "B1^");
    bench.batches.length = 0;
    bench.send("A3");
    bench.send("B2");
    await bench.clock.advance(50);
    expect(bench.batches.map((batch) => batch.replace(/ ?-/g, "").trim())).toEqual(["A3", "B2"]);
    expect(seen.filter((line) => !line.startsWith("-"))).toEqual(
      ["A1: 0", "A2: 0 1", "B1: 0", "A3: 0 1 2", "B2: 0 1"], // biome-ignore format: in order
    );
  });
});

it("the states of 20000 abandoned sequences can be collected after the idle time", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const count = 20_000;
  const states = [{ input: "S", output: "S_NEW", dtype: "INT32", shape: [1] }] as const;
  const bench = new SequenceBench({
    maxBatchSize: 64,
    sequence: { maxCandidateSequences: count, maxSequenceIdleMicroseconds: 60_000_000, states },
  });
  bench.execMs = 0;
  const sequences: WeakRef<object>[] = [];
  const kept: WeakRef<object>[] = [];
  bench.answer = (request) => {
    sequences.push(new WeakRef(request.sequence!));
    kept.push(new WeakRef(request.inputs.get("S")!));
    return new Map([["S_NEW", int32(1)]]);
  };
  for (let i = 0; i < count; i++) bench.send("A1^", { correlationId: BigInt(i + 1) });
  await bench.clock.advance(1000);
  expect([sequences.length, bench.deadlines.size]).toEqual([count, count]);
  await bench.clock.advance(120_000);
  expect([bench.evictions.length, bench.deadlines.size, bench.scheduler.queuedCount]).toEqual([count, 0, 0]);
  bench.seen.length = 0;
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  const alive = (refs: readonly WeakRef<object>[]) => refs.filter((ref) => ref.deref() !== undefined).length;
  expect(alive(sequences)).toBeLessThan(100);
  expect(alive(kept)).toBeLessThan(100);
});

it("a null request has a zero state and does not change the states of others", async () => {
  const { bench, seen } = counting({ strategy: "direct" });
  await bench.sendEach("A1^", "B1^", "B2", "A2");
  expect(seen).toEqual(["A1: 0", "-: 0", "B1: 0", "-: 0", "B2: 1", "A2: 1"]);
});

it("the states of two sequences share no memory", async () => {
  const { bench } = counting({ strategy: "oldest" });
  const states: Tensor[] = [];
  bench.answer = (request) => {
    const state = request.inputs.get("S")!;
    states.push(state);
    (state.elements as Int32Array)[0] = 9;
    return new Map();
  };
  await bench.sendEach("A1^", "B1^");
  expect(new Set(states.map((state) => state.bytes.buffer)).size).toBe(2);
  bench.answer = (request) => {
    states.push(request.inputs.get("S")!);
    return new Map();
  };
  await bench.sendEach("C1^");
  expect([...states[2]!.elements]).toEqual([0]);
});
