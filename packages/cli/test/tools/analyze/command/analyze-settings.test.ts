import { describe, expect, it } from "vitest";
import {
  type AnalyzeSettings,
  analyzeOptions,
  readAnalyzeSettings,
} from "../../../../src/analyze/analyze-settings.js";

/** The settings of a command line for the model `m`. */
function settingsOf(line: string, source = "--model-repository models"): AnalyzeSettings {
  const command = analyzeOptions("0").exitOverride();
  command.parse(`-m m ${source} ${line}`.trim().split(" "), { from: "user" });
  return readAnalyzeSettings(command.opts(), line);
}

describe("the lists of values", () => {
  it.each([
    ["--isolation worker,process", { isolation: ["worker", "process"] }],
    ["--isolation default", { isolation: ["default"] }],
    ["--preferred-batch-sizes 4,8+16", { preferredBatchSizes: [[4], [8, 16]] }],
    ["--preferred-batch-sizes 0,4", { preferredBatchSizes: [[], [4]] }],
    ["--target-latencies 0,2.5", { targetLatencyMs: [0, 2.5] }],
    ["--deadlines 0,50", { deadlineMs: [0, 50] }],
    ["--threads 0,1,4", { threads: [0, 1, 4] }],
    ["--queue-delays 0,500", { queueDelayMicroseconds: [0, 500] }],
    ["--instances 1,3", { instances: [1, 3] }],
    ["--max-batch-sizes 1,8", { maxBatchSize: [1, 8] }],
    ["--max-batch-sizes 0", { maxBatchSize: [] }],
    ["", {}],
  ])("are read: %s", (line, space) => {
    expect(settingsOf(line).space).toEqual(space);
  });

  it.each([
    ["--isolation inline", "--isolation: expected default or worker or process, got 'inline'"],
    ["--preferred-batch-sizes 4+x", "--preferred-batch-sizes: expected a whole number"],
    ["--preferred-batch-sizes 4,,8", "--preferred-batch-sizes: expected a whole number"],
    ["--max-batch-sizes 0,8", "--max-batch-sizes: expected sizes of at least 1, or 0 alone"],
    ["--threads 1.5", "--threads: expected a whole number"],
  ])("are refused: %s", (line, text) => {
    expect(() => settingsOf(line)).toThrow(text);
  });

  it.each(["isolation process", "threads 1"])("do not have --%s for bound models", (option) => {
    const [name] = option.split(" ");
    expect(() => settingsOf(`--${option}`, "--module program.js")).toThrow(
      `--${name}: expected models of --model-repository, got bound models of --module`,
    );
  });
});
