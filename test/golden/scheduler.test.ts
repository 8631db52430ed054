import { describe } from "vitest";
import { parseConfigText } from "./support/config-text.js";
import { featuresOf } from "./support/feature.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { compareOutcome, compareRefusal } from "./support/scheduler/compare-outcome.js";
import { play, refusalOf } from "./support/scheduler/play.js";
import type { Scenario } from "./support/scheduler/scenario.js";

describe("recorded scheduler scenarios", () => {
  replay<Scenario>({
    cases: loadLines("scheduler/scenarios.jsonl"),
    subject: ({ id, area, config_pbtxt: text, extra_models: others = {}, actions, server_flags: flags }) => ({
      area,
      features: new Set(
        [text, ...Object.values(others)].flatMap((config) => [...featuresOf(parseConfigText(config, id))]),
      ),
      operations: actions.map((action) => `model ${action.do}`),
      flags,
    }),
    run: async (scenario) =>
      scenario.outcome.load_error === undefined
        ? compareOutcome(scenario, await play(scenario))
        : compareRefusal(scenario, await refusalOf(scenario)),
  });
});
