import { describe, expect, it } from "vitest";
import { EnsemblePlan } from "../../../src/scheduler/ensemble/ensemble-plan.js";
import { ensembleConfig, step } from "../../support/ensemble-config.js";

// x -> a -> m -> b -> y
//            m -> c -> z
const plan = new EnsemblePlan(
  ensembleConfig(["x"], ["y", "z", "m"], [step("b", "m", "y"), step("a", "x", "m"), step("c", "m", "z")]),
);

const needed = (...outputs: string[]) =>
  [...plan.select(outputs).requestedOutputs.keys()].map(({ modelName }) => modelName).sort();

describe("what of an ensemble runs", () => {
  it("is all of it when nothing special is asked for", () => {
    expect(needed()).toEqual(["a", "b", "c"]);
  });

  it("is what the outputs that are asked for hang on", () => {
    expect([needed("y"), needed("z"), needed("m")]).toEqual([["a", "b"], ["a", "c"], ["a"]]);
  });

  it("counts who reads each tensor, the answer among them", () => {
    expect(Object.fromEntries(plan.select([]).readers)).toEqual({ x: 1, m: 3, y: 1, z: 1 });
    expect(Object.fromEntries(plan.select(["y"]).readers)).toEqual({ x: 1, m: 1, y: 1 });
  });

  it("asks members for nothing that nobody reads", () => {
    const two = { modelName: "t", inputMap: { x: "x" }, outputMap: { p: "y", q: "z" } };
    const select = new EnsemblePlan(ensembleConfig(["x"], ["y", "z"], [two])).select(["z"]);
    expect([...select.requestedOutputs.values()]).toEqual([["q"]]);
  });
});
