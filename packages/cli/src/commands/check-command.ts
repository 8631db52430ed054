import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Triton, type TritonOptions } from "@tritonjs/core";
import { repositoryServer } from "@tritonjs/perf/internal";
import { errorFor, type InferOptions, TritonError } from "@tritonjs/protocol";
import { toConfigJson } from "@tritonjs/protocol/config";
import { modelFileBackend } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import type { CheckedModel, CheckModelOptions, CheckName, ModelReport } from "@tritonjs/testing";
import { Command } from "commander";
import type { CommandAdditions, CommandContext } from "../command-context.js";
import { inspectHere } from "./config-command.js";

interface CheckOptions {
  readonly json?: true;
  readonly model?: readonly string[];
  readonly samples?: string;
  readonly runs?: string;
  readonly seed?: string;
  readonly absolute?: string;
  readonly relative?: string;
  readonly skip?: string;
  readonly inputs?: string;
}

/** `tritonjs check`: loads models, and checks that each treats the rows of a batch by itself. */
export function checkCommand({ terminal, additions, finish }: CommandContext): Command {
  const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
  return new Command("check")
    .description(
      "run models and check that a batch equals single samples, that answers repeat, and that memory does not grow; " +
        "exits with 1 when a check fails",
    )
    .argument("<path>", "a model repository, a directory of a model in one, or a model file")
    .option("--model <name>", "model of the repository, again for each; all unless given", collect)
    .option(
      "--inputs <module>",
      "module whose default export makes the inputs of a sample: (index, random) => inputs",
    )
    .option("--samples <count>", "number of samples; 8 unless given")
    .option("--runs <count>", "runs over which memory is watched; 1000 unless given")
    .option("--seed <number>", "seed of random inputs; 1 unless given")
    .option("--absolute <number>", "difference of outputs that counts as none; 0.00001 unless given")
    .option(
      "--relative <number>",
      "difference in proportion to the output that counts as none; 0.001 unless given",
    )
    .option("--skip <checks>", "checks that are left out, separated by commas")
    .option("--json", "print the report as JSON")
    .action(async (path: string, options: CheckOptions) => {
      const { checkModel } = await import("@tritonjs/testing");
      const settings = await settingsOf(options);
      const reports: ModelReport[] = [];
      let failed = false;
      for await (const { name, model } of openModels(path, options.model, additions)) {
        try {
          const report = await checkModel(model(), settings);
          reports.push(report);
          if (!options.json) terminal.write(reportText(report));
          failed ||= !report.ok;
        } catch (error) {
          failed = true;
          terminal.writeError(`${name}: cannot be checked: ${TritonError.from(error).message}\n`);
        }
      }
      if (options.json) terminal.write(`${JSON.stringify(reports, null, 2)}\n`);
      finish(failed ? 1 : 0);
    });
}

async function settingsOf(options: CheckOptions): Promise<CheckModelOptions> {
  const number = (name: "samples" | "runs" | "seed" | "absolute" | "relative") => {
    const text = options[name];
    if (text === undefined) return undefined;
    const value = Number(text);
    if (text.trim() !== "" && value >= 0) return value;
    throw errorFor("INVALID_OPTION", `--${name}: expected a number of at least 0, got '${text}'`);
  };
  const [samples, runs, seed] = [number("samples"), number("runs"), number("seed")];
  const [absolute, relative] = [number("absolute"), number("relative")];
  return {
    ...(samples !== undefined && { samples }),
    ...(runs !== undefined && { runs }),
    ...(seed !== undefined && { seed }),
    ...((absolute !== undefined || relative !== undefined) && {
      tolerance: { absolute: absolute ?? 1e-5, relative: relative ?? 1e-3 },
    }),
    ...(options.skip !== undefined && {
      skip: options.skip.split(",").map((name) => name.trim()) as CheckName[],
    }),
    ...(options.inputs !== undefined && { sample: await sampleOf(options.inputs) }),
  };
}

async function sampleOf(module: string): Promise<NonNullable<CheckModelOptions["sample"]>> {
  const { pathToFileURL } = await import("node:url");
  const { default: sample } = (await import(pathToFileURL(resolve(module)).href)) as { default?: unknown };
  if (typeof sample === "function") return sample as NonNullable<CheckModelOptions["sample"]>;
  throw errorFor(
    "INVALID_OPTION",
    `--inputs: expected a function as the default export of ${module}, got ${typeof sample}`,
  );
}

interface OpenedModel {
  readonly name: string;
  /** @throws TritonError for a model that could not be loaded */
  model(this: void): CheckedModel;
}

const QUIET: TritonOptions = {
  logger: { error() {}, warn() {}, info() {}, debug() {} },
  allowCpuMetrics: false,
};

/** Opens models one after the other, and closes each before the next. */
async function* openModels(
  path: string,
  models: readonly string[] | undefined,
  additions: CommandAdditions,
): AsyncGenerator<OpenedModel> {
  const file = await modelFileBackend(path);
  if (file !== undefined) {
    const { gpu } = await import("@tritonjs/backends/gpu");
    await using triton = new Triton({ ...QUIET, extensions: [gpu()] });
    const { name, backend } = file;
    yield { name, model: () => triton.bind({ modelName: name, inferFunc: backend }) };
    return;
  }
  const found = await stat(path).catch(() => undefined);
  if (!found?.isDirectory()) {
    const got = found === undefined ? "a path that does not exist" : "another file";
    throw errorFor(
      "INVALID_OPTION",
      `cannot check '${path}': expected a model repository, a model in one, or a model file, got ${got}`,
    );
  }
  const isModel = await isModelDirectory(path);
  const repository = isModel ? dirname(resolve(path)) : path;
  const names = isModel ? [basename(resolve(path))] : (models ?? (await namesIn(repository, additions)));
  for (const name of names) {
    await using triton = await repositoryServer(
      { ...additions, modelRepository: repository, modelControlMode: "explicit", exitOnError: false },
      QUIET,
    );
    const failure = await triton.loadModel(name).then(
      () => undefined,
      (error: unknown) => TritonError.from(error),
    );
    yield {
      name,
      model: () => {
        if (failure !== undefined) throw failure;
        return modelOfRepository(triton, name);
      },
    };
  }
}

async function namesIn(repository: string, additions: CommandAdditions): Promise<string[]> {
  return (await inspectHere([repository], additions)).map(({ name }) => name);
}

/** True for a directory with a configuration or with versions. */
async function isModelDirectory(path: string): Promise<boolean> {
  for (const entry of ["config.pbtxt", "1"]) {
    if ((await stat(join(path, entry)).catch(() => undefined)) !== undefined) return true;
  }
  return false;
}

/** A model of a repository, whose instances change by loading it with another configuration. */
function modelOfRepository(triton: Triton, name: string): CheckedModel {
  const { config } = serviceOf(triton).model(name, "");
  const [group] = config.instanceGroup;
  const isChangeable = config.ensembleScheduling === undefined && config.instanceGroup.length === 1;
  let count = group?.count ?? 1;
  return {
    name,
    config: () => config,
    infer: (inputs: never, options?: InferOptions) => triton.infer(name, inputs, options),
    ...(isChangeable && {
      instances: () => Array.from({ length: count }, () => ({})),
      updateInstances: async (wanted: number) => {
        const changed = { ...config, instanceGroup: [{ ...group!, count: wanted }] };
        await triton.loadModel(name, { config: JSON.stringify(toConfigJson(changed, String)) });
        count = wanted;
      },
    }),
  };
}

const MARKS = { passed: "ok  ", failed: "FAIL", skipped: "-   " } as const;

function reportText({ model, checks }: ModelReport): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(({ name, outcome, text }) =>
    `  ${MARKS[outcome]}  ${name.padEnd(width)}  ${text}`.trimEnd(),
  );
  const count = (outcome: string) => checks.filter((check) => check.outcome === outcome).length;
  return [
    `${model}: ${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`,
    ...lines,
    "",
  ].join("\n");
}
