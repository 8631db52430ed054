import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { StepLimit } from "../../src/scheduler/ensemble/ensemble-scheduler.js";
import { convertShape, EnsemblePlan, EnsembleTensor } from "../../src/scheduler/ensemble/ensemble-steps.js";
import { ensembleConfig, step } from "../support/ensemble-config.js";

// x -> a -> m -> b -> y
//            m -> c -> z
const plan = new EnsemblePlan(
  ensembleConfig(["x"], ["y", "z", "m"], [step("b", "m", "y"), step("a", "x", "m"), step("c", "m", "z")]),
);

const needed = (...outputs: string[]) =>
  [...plan.select(outputs).requestedOutputs.keys()].map(({ modelName }) => modelName).sort();

describe("the steps of an ensemble that run", () => {
  it("are all steps when no output is requested by name", () => {
    expect(needed()).toEqual(["a", "b", "c"]);
  });

  it("are those that the requested outputs depend on", () => {
    expect([needed("y"), needed("z"), needed("m")]).toEqual([["a", "b"], ["a", "c"], ["a"]]);
  });

  it("are counted as readers of each tensor, together with the response", () => {
    expect(Object.fromEntries(plan.select([]).readers)).toEqual({ x: 1, m: 3, y: 1, z: 1 });
    expect(Object.fromEntries(plan.select(["y"]).readers)).toEqual({ x: 1, m: 1, y: 1 });
  });

  it("request from members only outputs that are read", () => {
    const two = { modelName: "t", inputMap: { x: "x" }, outputMap: { p: "y", q: "z" } };
    const select = new EnsemblePlan(ensembleConfig(["x"], ["y", "z"], [two])).select(["z"]);
    expect([...select.requestedOutputs.values()]).toEqual([["q"]]);
  });
});

describe("a tensor between models with and without a batch axis", () => {
  it.each([
    ["is unchanged between models that both have or both lack the axis", [3, 4], 3, [4], true, [3, 4]],
    ["gets an axis of one row when it has none", [4], 0, [4], true, [1, 4]],
    ["keeps its first axis when that is the batch", [6, 4], 0, [4], true, [6, 4]],
    ["keeps all axes for a model whose dims include the batch", [2, 4], 2, [-1, 4], false, [2, 4]],
    ["loses an axis of one row", [1, 4], 1, [4], false, [4]],
    ["keeps an axis of several rows, which the model then rejects", [2, 4], 2, [4], false, [2, 4]],
  ] as const)("%s", (_, shape, batchSize, dims, batched, expected) => {
    expect(convertShape(shape, batchSize, dims, batched)).toEqual(expected);
  });
});

describe("the readers of a tensor", () => {
  it("get copies, except the last one, which gets the tensor itself", () => {
    const elements = Float32Array.of(1, 2);
    const tensor = new EnsembleTensor(Tensor.fromElements("FP32", [2], elements), 0, 2);
    const first = tensor.take([2], false)!.elements as Float32Array;
    const last = tensor.take([2], false)!.elements;
    expect([first === elements, last === elements]).toEqual([false, true]);
    expect([...first]).toEqual([1, 2]);
  });
});

function starter(started: string[], name: string, wanted = true) {
  return {
    start: () => {
      if (wanted) started.push(name);
      return wanted;
    },
  };
}

describe("the limit of an ensemble step", () => {
  it("starts requests up to the limit, and the others in order", () => {
    const started: string[] = [];
    const limit = new StepLimit(2);
    expect(["a", "b", "c", "d"].map((name) => limit.acquire(starter(started, name)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    limit.release();
    expect(started).toEqual(["a", "b", "c"]);
    limit.release();
    expect(started).toEqual(["a", "b", "c", "d"]);
  });

  it("skips a waiting request that was cancelled", () => {
    const started: string[] = [];
    const limit = new StepLimit(1);
    limit.acquire(starter(started, "a"));
    limit.acquire(starter(started, "b", false));
    limit.acquire(starter(started, "c"));
    limit.release();
    expect(started).toEqual(["a", "c"]);
  });

  it("forgets a request that leaves the line", () => {
    const started: string[] = [];
    const limit = new StepLimit(1);
    const [a, b, c] = ["a", "b", "c"].map((name) => starter(started, name));
    for (const one of [a, b, c]) limit.acquire(one!);
    limit.leave(b!);
    limit.release();
    expect(started).toEqual(["a", "c"]);
    limit.release();
    expect(limit.acquire(b!)).toBe(true);
  });

  it("is off when it is 0", () => {
    const started: string[] = [];
    const limit = new StepLimit(0);
    for (const name of ["a", "b", "c"]) limit.acquire(starter(started, name));
    expect(started).toEqual(["a", "b", "c"]);
  });
});
