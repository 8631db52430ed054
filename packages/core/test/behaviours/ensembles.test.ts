import { batch, sample, Tensor, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import {
  adds,
  bindCounter,
  bindPipeline,
  bindStage,
  heldStage,
  pipelineInputs,
  pipelineOutputs,
  type Stage,
  stage,
} from "../../../../test/support/pipeline.js";
import { sendRequest } from "../../../../test/support/send-request.js";

function open() {
  const clock = new VirtualClock();
  return { clock, triton: new Triton({ clock }) };
}

const infer = async (handle: Stage, value: number, options = {}) =>
  (await handle.infer({ x: [[value]] }, options)).y.data[0];

describe("an ensemble", () => {
  it("runs its steps in the order of their tensors", async () => {
    const triton = new Triton();
    bindStage(triton, "a", adds(1));
    bindStage(triton, "b", adds(10));
    const ensemble = bindPipeline(triton, [stage("b", "m", "y"), stage("a", "x", "m")]);
    expect(await infer(ensemble, 1)).toBe(12);
    expect(ensemble.metadata().platform).toBe("ensemble");
    expect(ensemble.instances()).toEqual([]);
    await triton.close();
  });

  it("is called like any model, and its members batch", async () => {
    const { clock, triton } = open();
    const member = bindStage(triton, "a", adds(1), { maxBatchSize: 8 });
    const ensemble = bindPipeline(triton, [stage("a", "x", "y")]);
    await clock.settle();
    const answers = Promise.all([1, 2, 3].map((value) => infer(ensemble, value)));
    await clock.settle();
    expect(await answers).toEqual([2, 3, 4]);
    expect(member.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 1 });
    expect(ensemble.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 3 });
  });

  it("runs independent steps at the same time", async () => {
    const { clock, triton } = open();
    const held = ["a", "b"].map((name) => {
      const one = heldStage();
      bindStage(triton, name, one.run);
      return one;
    });
    triton.bind({
      modelName: "sum",
      inputs: [...pipelineInputs, { name: "z", dtype: "INT32", shape: [1] }],
      outputs: pipelineOutputs,
      inferFunc: sample(({ x, z }) => ({ y: [x.data[0]! + z.data[0]!] })),
      config: { batching: false },
    });
    const ensemble = triton.bindEnsemble({
      modelName: "join",
      inputs: pipelineInputs,
      outputs: pipelineOutputs,
      steps: [
        stage("a", "x", "p"),
        stage("b", "x", "q"),
        { modelName: "sum", inputMap: { x: "p", z: "q" }, outputMap: { y: "y" } },
      ],
    });
    await clock.settle();
    const answer = infer(ensemble, 4);
    await clock.settle();
    expect(held.map(({ seen }) => seen.runs)).toEqual([1, 1]);
    for (const one of held) one.release();
    await clock.settle();
    expect(await answer).toBe(8);
  });

  it("passes tensors on without a copy, and hides one reader's changes from others", async () => {
    const triton = new Triton();
    const seen: ArrayBufferLike[] = [];
    const watch = (amount: number) => (x: Parameters<ReturnType<typeof adds>>[0]) => {
      seen.push(x.data.buffer);
      for (let i = 0; i < x.data.length; i++) x.data[i]! += amount;
      return x;
    };
    bindStage(triton, "a", watch(1));
    bindStage(triton, "b", watch(10));
    expect(await infer(bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]), 1)).toBe(12);
    expect(seen[0]).toBe(seen[1]);
    const both = triton.bindEnsemble({
      modelName: "both",
      inputs: pipelineInputs,
      outputs: [...pipelineOutputs, { name: "m", dtype: "INT32", shape: [1] }],
      steps: [stage("a", "x", "m"), stage("b", "m", "y")],
    });
    const { m, y } = await both.infer({ x: [[1]] });
    expect([m.data[0], y.data[0]]).toEqual([2, 12]);
    expect((await both.infer({ x: [[5]] })).m.data[0]).toBe(6);
    await triton.close();
  });

  it("passes on id, priority, parameters and the time left", async () => {
    const { clock, triton } = open();
    const seen: unknown[] = [];
    for (const modelName of ["a", "b"]) {
      triton.bind({
        modelName,
        inputs: pipelineInputs,
        outputs: pipelineOutputs,
        inferFunc: async (requests) => {
          const [{ id, priority, parameters, queueTimeoutMicroseconds }] =
            requests as readonly (typeof requests)[0][] as [(typeof requests)[0]];
          seen.push({ id, priority, parameters, queueTimeoutMicroseconds });
          await new Promise<void>((resolve) => void clock.setTimer(100, resolve));
          return requests.map(({ inputs }) => ({ y: inputs.x }));
        },
        config: { batcher: false },
      });
    }
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]);
    await clock.settle();
    const told = { id: "r", priority: 1, parameters: { p: "q" } };
    const first = infer(ensemble, 1, { ...told, queueTimeoutMicroseconds: 500_000 });
    await clock.advance(300);
    expect(await first).toBe(1);
    const same = { id: "r", priority: 1, parameters: { p: "q" } };
    expect(seen).toEqual([
      { ...same, queueTimeoutMicroseconds: 500_000 },
      { ...same, queueTimeoutMicroseconds: 400_000 },
    ]);
    const late = outcomeOf(infer(ensemble, 1, { timeoutMs: 150 }));
    await clock.advance(150);
    expect(await late).toBe("UNAVAILABLE Request timeout expired");
  });

  it("reports the error of a step once under its own name and cancels the other steps", async () => {
    const { clock, triton } = open();
    const held = heldStage();
    const slow = bindStage(triton, "slow", held.run);
    bindStage(triton, "bad", () => {
      throw new TritonError("UNAVAILABLE", "no luck");
    });
    const ensemble = triton.bindEnsemble({
      modelName: "pair",
      inputs: pipelineInputs,
      outputs: [...pipelineOutputs, { name: "z", dtype: "INT32", shape: [1] }],
      steps: [stage("slow", "x", "y"), stage("bad", "x", "z")],
    });
    await clock.settle();
    const answer = outcomeOf(ensemble.infer({ x: [[1]] }));
    await clock.settle();
    expect(await answer).toBe("UNAVAILABLE in ensemble 'pair', no luck");
    expect(held.seen.aborted).toBe(1);
    expect(ensemble.statistics().inferenceStats).toMatchObject({ fail: { count: 1 }, success: { count: 0 } });
    expect(slow.statistics().inferenceStats.fail.count).toBe(1);
    held.release();
  });

  it("cancels its steps when it is cancelled", async () => {
    const { clock, triton } = open();
    const held = heldStage();
    bindStage(triton, "a", held.run);
    const after = bindStage(triton, "b", adds(1));
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]);
    await clock.settle();
    const giveUp = new AbortController();
    const answer = outcomeOf(infer(ensemble, 1, { signal: giveUp.signal }));
    await clock.settle();
    giveUp.abort();
    expect(await answer).toBe("CANCELLED the request was cancelled");
    expect(held.seen.aborted).toBe(1);
    held.release();
    await clock.settle();
    expect(after.statistics().executionCount).toBe(0);
  });

  it("may be a member of another, and returns outputs that another step reads", async () => {
    const triton = new Triton();
    bindStage(triton, "a", adds(1));
    bindPipeline(triton, [stage("a", "x", "m"), stage("a", "m", "y")], {}, "inner");
    const outer = triton.bindEnsemble({
      modelName: "outer",
      inputs: pipelineInputs,
      outputs: [...pipelineOutputs, { name: "m", dtype: "INT32", shape: [1] }],
      steps: [stage("inner", "x", "m"), stage("inner", "m", "y")],
    });
    const { m, y } = await outer.infer({ x: [[0]] });
    expect([m.data[0], y.data[0]]).toEqual([2, 4]);
    await triton.close();
  });

  it("answers with the sequence id of the request, as Triton does", async () => {
    const { clock, triton } = open();
    bindStage(triton, "a", adds(1));
    bindPipeline(triton, [stage("a", "x", "y")]);
    await clock.settle();
    const answers: unknown[] = [];
    const inputs = new Map([["x", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1))]]);
    sendRequest(
      serviceOf(triton).model("pipeline", ""),
      { inputs, correlationId: 7n, sequenceEnd: true },
      (outcome) => answers.push(outcome),
    );
    await clock.settle();
    expect(answers).toMatchObject([
      { parameters: { sequence_id: 7, sequence_start: false, sequence_end: true } },
    ]);
  });
});

describe("the members of an ensemble", () => {
  it("may be bound after it", async () => {
    const { clock, triton } = open();
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]);
    const ready = ensemble.ready();
    const missing = "ensemble 'pipeline' depends on 'a' which has no loaded version";
    expect(await outcomeOf(infer(ensemble, 1))).toContain(missing);
    expect(await outcomeOf(triton.serve({ frontends: [] }))).toContain(missing);
    expect(serviceOf(triton).isModelReady("pipeline", "")).toBe(false);
    bindStage(triton, "b", adds(10));
    bindStage(triton, "a", adds(1));
    const answer = infer(ensemble, 1);
    await clock.settle();
    await ready;
    await clock.settle();
    expect(await answer).toBe(12);
  });

  it("make it unavailable when they are unbound, and ready when they return", async () => {
    const { clock, triton } = open();
    const member = bindStage(triton, "a", adds(1));
    const ensemble = bindPipeline(triton, [stage("a", "x", "y")]);
    await clock.settle();
    await member.unbind();
    const text = "ensemble 'pipeline' depends on 'a' which has no loaded version";
    expect(await outcomeOf(infer(ensemble, 1))).toContain(text);
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "pipeline", version: "1", state: "UNAVAILABLE", reason: text },
    ]);
    expect(thrownBy(() => serviceOf(triton).model("pipeline", ""))).toContain(text);
    bindStage(triton, "a", adds(2));
    await clock.settle();
    const answer = infer(ensemble, 1);
    await clock.settle();
    expect(await answer).toBe(3);
  });

  it("fail only requests inside when they are unbound", async () => {
    const { clock, triton } = open();
    const held = heldStage();
    bindStage(triton, "a", held.run);
    const last = bindStage(triton, "b", adds(1));
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]);
    await clock.settle();
    const inside = outcomeOf(infer(ensemble, 1));
    await clock.settle();
    await last.unbind();
    held.release();
    await clock.settle();
    expect(await inside).toBe(
      "UNAVAILABLE in ensemble 'pipeline', Request for unknown model: 'b' is not found",
    );
    bindStage(triton, "b", adds(5));
    await clock.settle();
    const next = infer(ensemble, 1);
    await clock.settle();
    held.release();
    await clock.settle();
    expect(await next).toBe(6);
  });

  it("are rejected when they do not match, at bind and when they are bound later", async () => {
    const { clock, triton } = open();
    const steps = [stage("a", "x", "y")];
    const ensemble = bindPipeline(triton, steps);
    triton.bind({
      modelName: "a",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: pipelineOutputs,
      inferFunc: () => [],
    });
    const ready = outcomeOf(ensemble.ready());
    await clock.settle();
    const text =
      "in ensemble pipeline, ensemble tensor x: inconsistent data type: TYPE_INT32 is inferred from model pipeline " +
      "while TYPE_FP32 is inferred from model a";
    expect(await ready).toBe(`INVALID_ARG ${text}`);
    expect(thrownBy(() => bindPipeline(triton, steps, {}, "second"))).toContain(
      text.replaceAll("pipeline", "second"),
    );
  });

  it("make it fail when they fail to load", async () => {
    const { triton } = open();
    const ensemble = bindPipeline(triton, [stage("a", "x", "y")]);
    const member = triton.bind({
      modelName: "a",
      inputs: pipelineInputs,
      outputs: pipelineOutputs,
      inferFunc: new URL("./fixtures/throws-while-loading.mjs", import.meta.url),
    });
    await outcomeOf(member.ready());
    expect(await outcomeOf(ensemble.ready())).toContain(
      "UNAVAILABLE ensemble 'pipeline' depends on 'a' which has no loaded version. " +
        "Model 'a' loading failed with error:",
    );
  });

  it("may not form a circle with it", () => {
    const { triton } = open();
    bindPipeline(triton, [stage("second", "x", "y")], {}, "first");
    expect(thrownBy(() => bindPipeline(triton, [stage("first", "x", "y")], {}, "second"))).toContain(
      "circular dependency between ensembles: second -> first -> second",
    );
    expect(thrownBy(() => bindPipeline(triton, [stage("self", "x", "y")], {}, "self"))).toContain(
      "circular dependency between ensembles: self -> self",
    );
  });

  it("answer all accepted requests when the server closes", async () => {
    const { clock, triton } = open();
    const held = heldStage();
    bindStage(triton, "a", held.run);
    bindStage(triton, "b", adds(1));
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")]);
    await clock.settle();
    const answer = infer(ensemble, 1);
    await clock.settle();
    const closed = triton.close();
    await clock.settle();
    held.release();
    await clock.settle();
    expect(await answer).toBe(2);
    await closed;
  });
});

describe("a decoupled member of an ensemble", () => {
  const read = async (handle: Stage, value: number, limit = Number.POSITIVE_INFINITY) => {
    const values: number[] = [];
    for await (const { y } of handle.stream({ x: [[value]] })) {
      values.push(y.data[0]!);
      if (values.length === limit) break;
    }
    return values;
  };

  it("makes the ensemble decoupled, and later steps run for each response", async () => {
    const triton = new Triton();
    bindCounter(triton, "count");
    bindStage(triton, "a", adds(100));
    const ensemble = bindPipeline(triton, [stage("count", "x", "m"), stage("a", "m", "y")]);
    await ensemble.ready();
    expect((await read(ensemble, 3)).sort()).toEqual([101, 102, 103]);
    expect(await read(ensemble, 0)).toEqual([]);
    expect(await outcomeOf(infer(ensemble, 1))).toContain("UNSUPPORTED");
    expect(ensemble.statistics().inferenceStats).toMatchObject({ success: { count: 2 } });
    await triton.close();
  });

  it("produces no more responses than are read, and ends when the reader leaves", async () => {
    const triton = new Triton();
    const progress = bindCounter(triton, "count");
    bindStage(triton, "a", adds(0));
    const ensemble = bindPipeline(triton, [stage("count", "x", "m"), stage("a", "m", "y")]);
    await ensemble.ready();
    expect(await read(ensemble, 2 ** 30, 5)).toHaveLength(5);
    expect(progress.made).toBeLessThan(100);
    await triton.close();
    expect(progress.ended).toBe(true);
  });

  it("waits while the next step has its maximum of requests", async () => {
    const { clock, triton } = open();
    const progress = bindCounter(triton, "count");
    const held = heldStage();
    bindStage(triton, "a", held.run, { instanceGroup: { count: 4 }, batcher: false });
    const steps = [stage("count", "x", "m"), stage("a", "m", "y")];
    const ensemble = bindPipeline(triton, steps, { maxInflightRequests: 2 });
    await clock.settle();
    const values = read(ensemble, 5);
    await clock.settle();
    expect([held.seen.runs, progress.made]).toEqual([2, 3]);
    for (let round = 0; round < 5; round++) {
      held.release();
      await clock.settle();
    }
    expect((await values).sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it("ends the request when it fails", async () => {
    const triton = new Triton();
    bindCounter(triton, "count");
    bindStage(triton, "a", (x) => {
      if (x.data.includes(3)) throw new TritonError("INTERNAL", "three");
      return x;
    });
    const ensemble = bindPipeline(triton, [stage("count", "x", "m"), stage("a", "m", "y")]);
    await ensemble.ready();
    expect(await outcomeOf(read(ensemble, 2 ** 30))).toBe("INTERNAL in ensemble 'pipeline', three");
    await triton.close();
  });
});

describe("many requests to an ensemble", () => {
  it("settle once each, even when steps fail or requests are cancelled", async () => {
    const triton = new Triton();
    bindStage(triton, "a", adds(1), { maxBatchSize: 8 });
    bindStage(triton, "b", async (x) => {
      await new Promise(setImmediate);
      if (x.data[0]! % 7 === 0) throw new TritonError("INTERNAL", "seven");
      return x;
    });
    const ensemble = bindPipeline(triton, [stage("a", "x", "m"), stage("b", "m", "y")], {
      maxInflightRequests: 3,
    });
    await ensemble.ready();
    const controllers = Array.from({ length: 300 }, () => new AbortController());
    const outcomes = outcomesOf(controllers.map(({ signal }, i) => infer(ensemble, i, { signal })));
    for (const [i, controller] of controllers.entries()) {
      if (i % 5 === 0) setImmediate(() => controller.abort());
    }
    const kinds = (await outcomes).map((outcome) => outcome.split(" ")[0]);
    expect([...new Set(kinds)].sort()).toEqual(["CANCELLED", "INTERNAL", "done"]);
    const { success, fail } = ensemble.statistics().inferenceStats;
    const failed = kinds.filter((kind) => kind === "INTERNAL").length;
    // A failed step counts once more at its ensemble.
    expect(success.count + fail.count).toBe(300 + failed);
    await triton.close();
  });
});

describe("ensemble timeouts", () => {
  it("a step that exceeds the timeout of its request ends that request, and the ensemble keeps working", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const number = { dtype: "INT32", shape: [1] } as const;
    let started = 0;
    for (const modelName of ["quick", "slow"]) {
      triton.bind({
        modelName,
        inputs: [{ name: "x", ...number }],
        outputs: [{ name: "y", ...number }],
        inferFunc: batch(async ({ x }) => {
          started++;
          const ms = modelName === "slow" ? x.get(0, 0) : 1;
          await new Promise<void>((resolve) => clock.setTimer(ms, resolve));
          return { y: x };
        }),
      });
    }
    const handle = triton.bindEnsemble({
      modelName: "both",
      inputs: [{ name: "x", ...number }],
      outputs: [{ name: "y", ...number }],
      steps: [
        { modelName: "quick", inputMap: { x: "x" }, outputMap: { y: "m" } },
        { modelName: "slow", inputMap: { x: "m" }, outputMap: { y: "y" } },
      ],
    });
    await handle.ready();
    const late = handle.inferSample({ x: [500] }, { timeoutMs: 100 });
    const refused = expect(late).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await clock.advance(150);
    await refused;
    expect(started).toBe(2);
    await clock.advance(1000);
    const next = handle.inferSample({ x: [5] }, { timeoutMs: 100 });
    await clock.advance(50);
    expect((await next).y.get(0)).toBe(5);
    const { success, fail } = handle.statistics().inferenceStats;
    expect([success.count, fail.count]).toEqual([1, 1]);
    await triton.close();
  });
});
