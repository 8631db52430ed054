import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { analyze } from "../../../src/analyze/analyze.js";
import { ModuleMachine, type RealMeasuring } from "../../../src/analyze/served-machines.js";
import { temporaryFolder } from "../../support/analyze-command.js";
import { DEFAULT_MEASURE_OPTIONS } from "../../support/measure-session.js";
import { runTool } from "../../support/run-tool.js";

const path = fileURLToPath(new URL("../../support/bound-doubles.mjs", import.meta.url));

const run = (args: readonly string[]) => runTool(analyze, args);

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

const TENSORS = `
  input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }
  output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }`;

const CONFIGS = {
  twin: `backend: "identity" max_batch_size: 2 instance_group { kind: KIND_CPU } ${TENSORS}`,
  other: `backend: "identity" max_batch_size: 2 instance_group { kind: KIND_CPU } ${TENSORS}`,
  pair: `platform: "ensemble" max_batch_size: 2 ${TENSORS} ensemble_scheduling { step {
    model_name: "twin" model_version: -1
    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }`,
};

/** Runs the command on a repository on disk, with short measurements. */
async function runAnalyze(args: readonly string[]) {
  const folder = await temporaryFolder();
  const repository = join(folder, "repository");
  for (const [name, text] of Object.entries(CONFIGS)) {
    await mkdir(join(repository, name, "1"), { recursive: true });
    await writeFile(join(repository, name, "config.pbtxt"), text);
  }
  const quick = [
    "-p",
    "40",
    "-r",
    "1",
    "--warmup-request-count",
    "1",
    "--concurrency-range",
    "4",
    "-e",
    folder,
  ];
  const space = ["--instances", "1", "--max-batch-sizes", "1,4", "--queue-delays", "0"];
  const ended = await run(["--model-repository", repository, ...quick, ...space, ...args]);
  return { ...ended, folder, repository };
}

/** Serves the variants, which must not give reason for a warning. */
async function serve(modelRepository: string): Promise<Triton> {
  const warnings: string[] = [];
  const logger = { error() {}, warn: (text: string) => void warnings.push(text), info() {}, debug() {} };
  const triton = new Triton({ logger, extensions: [withRepository({ modelRepository })] });
  onTestFinished(() => triton.close());
  await triton.ready();
  expect(warnings).toEqual([]);
  return triton;
}

describe("the analysis of a repository", () => {
  it("measures variants in this process, and writes them ready to serve", async () => {
    const { code, folder, repository } = await runAnalyze(["-m", "twin", "--verify", "1"]);
    expect(code).toBe(0);
    const models = await readdir(join(folder, "models"));
    expect(models).toContain("twin_config_default");
    const triton = await serve(join(folder, "models"));
    for (const name of models) expect(serviceOf(triton).modelConfig(name, "").name).toBe(name);
    // The repository stays as it was.
    expect(await readFile(join(repository, "twin", "config.pbtxt"), "utf8")).toBe(CONFIGS.twin);
  });

  it("tunes the steps of an ensemble under the load of the ensemble", async () => {
    const { code, errors, folder } = await runAnalyze(["-m", "pair", "--num-configs-per-model", "1"]);
    expect([code, errors]).toEqual([0, expect.stringContaining("does not simulate an ensemble")]);
    const { results, skipped } = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
    for (const { best, parameters } of results) {
      expect([Object.keys(best.models), Object.keys(parameters)]).toEqual([["pair"], ["twin"]]);
      // The ensemble cannot be loaded with a step of smaller batches.
      expect(parameters.twin.maxBatchSize ?? 2).toBeGreaterThanOrEqual(2);
    }
    expect(skipped).toEqual([]);
    const triton = await serve(join(folder, "models"));
    const { ensembleScheduling } = serviceOf(triton).modelConfig("pair_config_default", "");
    expect(ensembleScheduling!.step[0]!.modelName).toBe("twin_config_default");
  });

  it("tunes several models that share the machine", async () => {
    const { code, errors, folder } = await runAnalyze([
      ...[
        "-m",
        "twin,other",
        "--search",
        "brute",
        "--max-batch-sizes",
        "4",
        "--model-weights",
        "twin:3,other:1",
      ],
    ]);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    const { results, measurements } = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
    expect(measurements).toBe(2);
    for (const { best, parameters } of results) {
      expect([Object.keys(best.models), Object.keys(parameters)]).toEqual([
        ["twin", "other"],
        ["twin", "other"],
      ]);
      for (const model of ["twin", "other"])
        expect(best.models[model].figures.perf_throughput).toBeGreaterThan(0);
    }
    const triton = await serve(join(folder, "models"));
    for (const model of ["twin", "other"]) {
      expect(serviceOf(triton).modelConfig(`${model}_config_0`, "").maxBatchSize).toBe(4);
    }
  });

  it("tunes an ensemble and a model together", async () => {
    const { code, folder } = await runAnalyze([
      "-m",
      "pair,other",
      "--search",
      "brute",
      "--max-batch-sizes",
      "4",
    ]);
    expect(code).toBe(0);
    const { results } = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
    for (const { best, parameters } of results) {
      expect([Object.keys(best.models), Object.keys(parameters)]).toEqual([
        ["pair", "other"],
        ["twin", "other"],
      ]);
    }
  });

  it.each([
    [["--shape", "nope:1,2"], "--shape: expected an input of model 'twin' ('INPUT0'), got 'nope'"],
    [["--input-data", "absent.json"], "absent.json"],
  ])("ends before the first measurement with wrong data: %j", async (args, text) => {
    const { code, output, errors } = await runAnalyze(["-m", "twin", ...args]);
    expect([code, output, errors.trimEnd().split("\n").length]).toEqual([99, "", 1]);
    expect(errors).toContain(text);
  });

  it("loads a batch that only variants take", async () => {
    const { code, errors, folder } = await runAnalyze(["-m", "twin", "-b", "4", "--verify", "1"]);
    expect(errors).toMatch(
      /default: skipped, batch size: expected at most 2, the maximum of model 'twin', got 4/,
    );
    expect(code).toBe(0);
    const { results } = JSON.parse(await readFile(join(folder, "analysis.json"), "utf8"));
    expect(results[0].parameters.twin.maxBatchSize).toBe(4);
  });

  it("names a model that the repository does not have", async () => {
    const { code, errors } = await runAnalyze(["-m", "absent"]);
    expect(code).toBe(99);
    expect(errors).toContain("'absent'");
    expect(errors).toContain("other, pair, twin");
  });
});
