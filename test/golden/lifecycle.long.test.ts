import { describe } from "vitest";
import { lifecycleDifferences } from "./differences/lifecycle-differences.js";
import { playShutdown } from "./support/cli/play-shutdown.js";
import { playScenario } from "./support/lifecycle/play-scenario.js";
import type { Scenario } from "./support/lifecycle/scenario.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";

describe("recorded life cycles of a repository", () => {
  replay<Scenario>({
    cases: loadLines("config/lifecycle.jsonl"),
    differences: lifecycleDifferences,
    run: (scenario, intended) =>
      scenario.steps.some(({ signal }) => signal !== undefined)
        ? playShutdown(intended(undefined))
        : playScenario(intended(undefined)),
  });
});
