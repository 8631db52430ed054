import { describe } from "vitest";
import { schedulerDifferences } from "./differences/scheduler-differences.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { compareOutcome, compareRefusal } from "./support/scheduler/compare-outcome.js";
import { play, refusalOf } from "./support/scheduler/play.js";
import type { Outcome, Scenario } from "./support/scheduler/scenario.js";

describe("recorded scheduler scenarios", () => {
  replay<Scenario, Outcome | undefined>({
    cases: loadLines("scheduler/scenarios.jsonl"),
    differences: schedulerDifferences,
    run: async (scenario, intended) => {
      if (scenario.outcome.load_error !== undefined) {
        return compareRefusal(intended(undefined), await refusalOf(scenario));
      }
      const got = await play(scenario);
      return compareOutcome(intended(got), got);
    },
  });
});
