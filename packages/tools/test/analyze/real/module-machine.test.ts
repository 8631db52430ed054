import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RealMeasuring } from "../../../src/analyze/real/measured-level.js";
import { ModuleMachine } from "../../../src/analyze/real/module-machine.js";
import { temporaryFolder } from "../../support/analyze-command.js";
import { DEFAULT_MEASURE_OPTIONS } from "../../support/measure-session.js";

const path = fileURLToPath(new URL("../../support/bound-doubles.mjs", import.meta.url));

const measuring: RealMeasuring = {
  options: { ...DEFAULT_MEASURE_OPTIONS, mode: "count_windows", windowRequestCount: 20, maxTrials: 1 },
  data: { inputData: "random" },
  seed: 0,
};

describe("the analysis of bound models", () => {
  it("makes the program for each variant, and measures it", async () => {
    const machine = await ModuleMachine.open(path, ["double"], measuring);
    expect(machine.configs.double!.maxBatchSize).toBe(8);
    const candidate = { double: { maxBatchSize: 2, queueDelayMicroseconds: 0 } };
    const opened = await machine.open(candidate);
    onTestFinished(() => opened.close());
    const { models } = await opened.measure({ mode: "concurrency", value: 4 }, new AbortController().signal);
    const run = models.double!;
    expect(run.failures).toBe(0);
    expect(run.figures.perf_throughput).toBeGreaterThan(0);
    expect(run.meanRows).toBeLessThanOrEqual(2);
    const folder = await temporaryFolder();
    await machine.writeVariants({ number: 0, candidate, runs: [] }, folder);
    expect(JSON.parse(await readFile(join(folder, "double_config_0.json"), "utf8"))).toEqual({
      maxBatchSize: 2,
      batcher: { maxQueueDelayMicroseconds: 0 },
    });
  });

  it("names what a module lacks", async () => {
    await expect(ModuleMachine.open(`${path}.absent`, ["double"], measuring)).rejects.toThrow(
      "does not exist",
    );
    const other = fileURLToPath(new URL("../../support/level-runs.ts", import.meta.url));
    await expect(ModuleMachine.open(other, ["double"], measuring)).rejects.toThrow("expected");
  });
});
