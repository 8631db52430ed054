import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { duel } from "./compare.js";
import { duelCells } from "./report.js";
import { SCENARIOS, type Scenario } from "./scenario.js";

/** The scenarios that are simulated; the table of the documents has the figures of all. `SIMULATE_ALL=1` simulates them. */
const SIMULATED = /drift$|two instances, bursts$/;

/** Requirements for adaptive batching in the scenarios whose names begin with this. */
export function adaptiveKeepsUp(kind: string): void {
  const all = SCENARIOS.filter(({ name }) => name.startsWith(kind));
  const document = readFileSync(join(repositoryRoot, "docs", "batching.md"), "utf8");
  const rows = document.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  /** Cells of the document about a scenario: the best fixed rate, the adaptive one, their ratio, and the machine times. */
  const cellsOf = (scenario: Scenario) => rows.find(([, name]) => name === scenario.name)?.slice(5, 9);

  it.each(all.filter(({ name }) => process.env.SIMULATE_ALL === "1" || SIMULATED.test(name)))(
    "adaptive batching sustains at least 0.98 of the best fixed rate, as the document says: $name",
    async (scenario) => {
      const one = await duel(scenario);
      expect(one.rates.adaptive).toBeGreaterThanOrEqual(0.98 * one.rates.bestFixed);
      expect(cellsOf(scenario)).toEqual(duelCells(one));
    },
  );

  it("adaptive batching is better in at least half of the document's scenarios, in rate or in machine time", () => {
    const better = all.filter((scenario) => {
      const [, , ratio, machineTime] = cellsOf(scenario)!;
      const [fixed, adaptive] = machineTime!.split(" -> ").map((share) => Number.parseInt(share, 10));
      return Number(ratio) > 1 || adaptive! < fixed!;
    });
    expect(better.length).toBeGreaterThanOrEqual(all.length / 2);
  });
}
