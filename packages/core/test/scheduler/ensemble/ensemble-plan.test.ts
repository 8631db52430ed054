import { describe, expect, it } from "vitest";
import { EnsemblePlan } from "../../../src/scheduler/ensemble-steps.js";
import { ensembleConfig, step } from "../../support/ensemble-config.js";

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
