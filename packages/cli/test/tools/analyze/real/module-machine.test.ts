import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { analyze } from "../../../../src/analyze/analyze.js";
import type { RealMeasuring } from "../../../../src/analyze/served-machines.js";
import { ModuleMachine } from "../../../../src/analyze/served-machines.js";
import { temporaryFolder } from "../../support/analyze-command.js";
import { DEFAULT_MEASURE_OPTIONS } from "../../support/measure-session.js";

const path = fileURLToPath(new URL("../../support/bound-doubles.mjs", import.meta.url));

/** Runs the command without interruption. */
async function run(args: readonly string[]) {
  let [output, errors] = ["", ""];
  const code = await analyze(args, {
    write: (text) => {
      output += text;
    },
    writeError: (text) => {
      errors += text;
    },
    stopRequested: () => new Promise(() => {}),
  });
  return { code, output, errors };
}

const measuring: RealMeasuring = {
  options: { ...DEFAULT_MEASURE_OPTIONS, mode: "count_windows", windowRequestCount: 20, maxTrials: 1 },
  data: { inputData: "random" },
  seed: 0,
};

describe("the analysis of bound models", () => {
  it("makes the program for each variant, and measures it", async () => {
    const machine = await ModuleMachine.open(path, ["double"], measuring);
    expect(machine.configs.double!.maxBatchSize).toBe(8);
    // The options of `bind` have neither for all models.
    expect(machine.fixed).toEqual(["isolation", "threads"]);
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

  it("runs the loads of several models at the same time", async () => {
    // One load after the other would wait for the second model for ever.
    const pair = fileURLToPath(new URL("../../support/bound-pair.mjs", import.meta.url));
    const folder = await temporaryFolder();
    const { code, errors } = await run([
      ...["--module", pair, "--models", "a,b", "--search", "brute", "--concurrency-range", "2"],
      ...["--instances", "1", "--max-batch-sizes", "4", "--queue-delays", "0", "-e", folder],
      ...["-p", "40", "-r", "1", "--warmup-request-count", "0"],
    ]);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    const { results, measurements } = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
    expect(measurements).toBe(2);
    for (const { best } of results) {
      for (const model of ["a", "b"]) expect(best.models[model].figures.perf_throughput).toBeGreaterThan(0);
    }
  });

  it.each([
    [["--shape", "z:1"], "--shape: expected an input of model 'double' ('x'), got 'z'"],
    [["--shape", "x:1,2"], "--shape: input 'x': expected a shape that matches [1], got [1,2]"],
  ])("ends before the first measurement with wrong data: %j", async (args, text) => {
    const folder = await temporaryFolder();
    const { code, output, errors } = await run(["--module", path, "-m", "double", ...args, "-e", folder]);
    expect({ code, output, errors }).toEqual({
      code: 99,
      output: "",
      errors: expect.stringMatching(/^error: .*\n$/),
    });
    expect(errors).toContain(text);
    expect(await readdir(folder)).toEqual([]);
  });

  it("names what a module lacks", async () => {
    await expect(ModuleMachine.open(`${path}.absent`, ["double"], measuring)).rejects.toThrow(
      "does not exist",
    );
    const other = fileURLToPath(new URL("../../support/level-runs.ts", import.meta.url));
    await expect(ModuleMachine.open(other, ["double"], measuring)).rejects.toThrow("expected");
  });
});
