import { describe } from "vitest";
import { playShutdown } from "./support/cli/play-shutdown.js";
import { playScenario } from "./support/lifecycle/play-scenario.js";
import type { Scenario } from "./support/lifecycle/scenario.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";

describe("recorded life cycles of a repository", () => {
  replay<Scenario>({
    cases: loadLines("config/lifecycle.jsonl"),
    subject: ({ id, flags, steps }) => ({
      area: `lifecycle/${id}`,
      features: new Set(),
      operations: steps.flatMap(({ signal }) => (signal === undefined ? [] : [`signal ${signal}`])),
      flags,
    }),
    run: (scenario) =>
      scenario.steps.some(({ signal }) => signal !== undefined)
        ? playShutdown(scenario)
        : playScenario(scenario),
  });
});
