import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Left and lower end of each line, as `draw.ts` places them. */
const DRAWN: Readonly<Record<string, readonly [left: number, bottom: number]>> = {
  "Hello Triton in Node": [30, 70],
  "INVOICE 2026-11-21": [30, 160],
  "Total: 1234.56 EUR": [300, 260],
  "Platform 9": [40, 90],
  "Mind the gap between the train and the platform": [40, 180],
  Espresso: [40, 60],
  "2.40": [480, 60],
  Croissant: [40, 130],
  "3.10": [480, 130],
  "Thank you for your visit": [150, 240],
};

describe("the example that reads text in pictures", () => {
  it("reads every line where it was drawn, and recognises several lines in one batch", async () => {
    const main = join(exampleFolder("text-in-pictures"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("text-in-pictures"));
    const lines = [...stdout.matchAll(/^ {2}(.*) \(at (\d+), (\d+)\)$/gm)];
    expect(lines.map(([, text]) => text)).toEqual(Object.keys(DRAWN));
    for (const [, text, left, top] of lines) {
      const [drawnLeft, drawnBottom] = DRAWN[text!]!;
      expect(Math.abs(Number(left) - drawnLeft)).toBeLessThan(16);
      expect(Number(top)).toBeLessThan(drawnBottom);
      expect(Number(top)).toBeGreaterThan(drawnBottom - 64);
    }
    for (const [, batches] of stdout.matchAll(/(\d+) batches of lines/g)) {
      expect(Number(batches)).toBeLessThan(lines.length);
    }
  });
});
