import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const line =
  /^(\d+)\/s: (\d+) answered, (\d+) of them in time, in \d+ batches of ([\d.]+) rows; (none|\d+) refused(?:, to come again in (\d+) to (\d+) ms)?$/;

/** The numbers of one line of the example. */
function read(text: string) {
  const [, load, answered, inTime, rows, refused, soonest, latest] = line.exec(text) ?? expect.fail(text);
  return {
    load: Number(load),
    answered: Number(answered),
    inTime: Number(inTime),
    rows: Number(rows),
    refused: refused === "none" ? 0 : Number(refused),
    soonest: Number(soonest),
    latest: Number(latest),
  };
}

describe("the adaptive batching example", () => {
  it("makes larger batches under more load, and rejects only requests that would be late", async () => {
    const main = join(repositoryRoot, "examples", "adaptive-batching", "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("adaptive-batching"));
    const lines = stdout.trimEnd().split("\n");
    const loads = lines.slice(0, 5).map(read);
    expect(loads.map(({ load }) => load)).toEqual([20, 100, 400, 800, 1600]);
    for (const { load, answered, inTime, refused } of loads) {
      expect(answered + refused).toBe(4 * load);
      expect(inTime / answered).toBeGreaterThan(0.9);
    }
    expect(loads.map(({ refused }) => refused > 0)).toEqual([false, false, false, true, true]);
    const [first, second, third, fourth] = loads.map(({ rows }) => rows);
    expect(first).toBe(1);
    expect(first! < second! && second! < third! && third! < fourth!).toBe(true);
    for (const { soonest, latest } of loads.slice(3)) {
      expect(soonest).toBeGreaterThanOrEqual(1);
      expect(latest).toBeLessThan(50);
    }
    const [, atOnce, inTheEnd] = /^100 at once: (\d+) .* attempt, (\d+) in the end$/.exec(lines[5]!) ?? [];
    expect(Number(atOnce)).toBeGreaterThan(0);
    expect(Number(atOnce)).toBeLessThan(100);
    expect(inTheEnd).toBe("100");
    expect(lines[6]).toMatch(/^batches took 11\.0 ms for 1 row, \d+\.0 ms for \d+ rows$/);
  });
});
