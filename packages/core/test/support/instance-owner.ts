import { ModelStatistics } from "../../src/observe/statistics.js";
import type { Clock } from "../../src/system/clock.js";

/** What instances of model `m` know of it. The model calls no other one. */
export function instanceOwner<C extends Clock>(
  clock: C,
  statistics = new ModelStatistics(),
  iterative = false,
) {
  return {
    modelName: "m",
    modelVersion: "1",
    decoupled: false,
    iterative,
    clock,
    statistics,
    outputNames: [],
    callModels: (): never => {
      throw new Error("nobody calls other models");
    },
  };
}
