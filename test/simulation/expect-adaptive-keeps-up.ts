import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { type Duel, duel } from "./compare.js";
import { duelCells } from "./report.js";
import { SCENARIOS } from "./scenario.js";

/** Requirements for adaptive batching in the scenarios whose names begin with this. */
export function adaptiveKeepsUp(kind: string): void {
  const scenarios = SCENARIOS.filter(({ name }) => name.startsWith(kind));
  const duels: Duel[] = [];
  const document = readFileSync(join(repositoryRoot, "docs", "batching.md"), "utf8");

  it.each(scenarios)(
    "adaptive batching sustains at least 0.98 of the best fixed rate: $name",
    async (scenario) => {
      const one = await duel(scenario);
      duels.push(one);
      expect(one.rates.adaptive).toBeGreaterThanOrEqual(0.98 * one.rates.bestFixed);
    },
  );

  it("adaptive batching is better in at least half of the scenarios, in rate or in machine time", () => {
    expect(duels).toHaveLength(scenarios.length);
    const better = duels.filter(
      ({ rates, busy }) => rates.adaptive > 1.005 * rates.bestFixed || busy.adaptive < 0.98 * busy.bestFixed,
    );
    expect(better.length).toBeGreaterThanOrEqual(scenarios.length / 2);
  });

  it("the table in the documents has these figures", () => {
    const rows = document.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    for (const one of duels) {
      const row = rows.find(([, name]) => name === one.scenario.name);
      expect([one.scenario.name, ...(row ?? []).slice(5, 9)]).toEqual([one.scenario.name, ...duelCells(one)]);
    }
  });
}
