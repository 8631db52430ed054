import { join } from "node:path";
import { Command } from "commander";
import { addOptions, type OptionRow, type ParsedOptions } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import type { MeasureOptions } from "../measure/measure-level.js";
import {
  OptionReader,
  readDuration,
  readLevelRange,
  readOptionNumber,
  readShapes,
  readWord,
} from "../perf/option-reader.js";
import {
  type AnalyzeLevel,
  type AnalyzeLoad,
  type Constraints,
  type Limit,
  METRIC_TAGS,
  type MetricTag,
  type ModelSpace,
  type SearchGoal,
  VARIANT_ISOLATIONS,
} from "./candidate.js";
import type { RealMeasuring } from "./served-machines.js";

type SearchMode = "model" | "quick" | "brute";

type AnalyzeSource =
  | { readonly kind: "repository"; readonly path: string }
  | { readonly kind: "module"; readonly path: string };

export interface AnalyzeSettings {
  readonly source: AnalyzeSource;
  readonly models: readonly string[];
  readonly goal: SearchGoal;
  readonly search: SearchMode;
  readonly verify: number;
  readonly endsListsEarly: boolean;
  readonly budgetMs?: number;
  readonly resume: boolean;
  readonly space: ModelSpace;
  readonly load: AnalyzeLoad;
  readonly measuring: RealMeasuring;
  readonly exportPath: string;
  readonly outputPath: string;
  readonly top: number;
  readonly command: string;
}

/** Levels of a search are measured for each configuration, so there may not be many. */
const MOST_LEVELS = 32;

const MOST_IN_FLIGHT = 1024;

export function readAnalyzeSettings(given: ParsedOptions, command: string): AnalyzeSettings {
  const options = new OptionReader(given);
  options.onlyOne(["concurrencyRange", "requestRateRange"]);
  const models = (options.text("models") ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (models.length === 0) throw invalidOption("-m: expected the names of one or more models");
  if (new Set(models).size < models.length) {
    throw invalidOption(`-m: expected different models, got '${models.join(",")}'`);
  }
  const source = sourceOf(options);
  const fixed =
    source.kind === "module" ? ["isolation", "threads"].find((name) => options.has(name)) : undefined;
  if (fixed !== undefined) {
    throw invalidOption(`--${fixed}: expected models of --model-repository, got bound models of --module`);
  }
  const exportPath = options.text("exportPath")!;
  const budget = options.text("budget");
  return {
    source,
    models,
    goal: readGoal(options, models),
    search: options.word("search", ["model", "quick", "brute"]),
    verify: options.whole("verify", 1)!,
    endsListsEarly: options.has("earlyExitEnable"),
    ...(budget !== undefined && { budgetMs: readDuration("--budget", budget) }),
    resume: options.has("resume"),
    space: readSpace(options),
    load: readLoad(options),
    measuring: readMeasuring(options),
    exportPath,
    outputPath: options.text("outputModelRepositoryPath") ?? join(exportPath, "models"),
    top: options.whole("numConfigsPerModel", 1)!,
    command,
  };
}

function sourceOf(options: OptionReader): AnalyzeSource {
  options.onlyOne(["modelRepository", "module"]);
  const repository = options.text("modelRepository");
  if (repository !== undefined) return { kind: "repository", path: repository };
  const module = options.text("module");
  if (module !== undefined) return { kind: "module", path: module };
  throw invalidOption("expected --model-repository <folder> or --module <file>");
}

function readLoad(options: OptionReader): AnalyzeLoad {
  const isRate = options.has("requestRateRange");
  const text = options.text(isRate ? "requestRateRange" : "concurrencyRange");
  if (text === undefined) return { kind: "automatic", min: 1, max: MOST_IN_FLIGHT };
  const flag = isRate ? "--request-rate-range" : "--concurrency-range";
  const { start, end, step } = readLevelRange(flag, text, { whole: !isRate });
  const count = Math.floor((end - start) / step + 1e-9) + 1;
  if (end === 0 || count > MOST_LEVELS) {
    throw invalidOption(`${flag}: expected at most ${MOST_LEVELS} levels, got '${text}'`);
  }
  const distribution = options.word("requestDistribution", ["poisson", "constant"]);
  const levels = Array.from({ length: count }, (_, i): AnalyzeLevel => {
    const value = start + i * step;
    return isRate ? { mode: "request_rate", value, distribution } : { mode: "concurrency", value };
  });
  return { kind: "levels", levels };
}

function readMeasuring(options: OptionReader): RealMeasuring {
  const batchSize = options.whole("batchSize", 1)!;
  const seed = options.whole("seed")!;
  const measure: MeasureOptions = {
    batchSize,
    mode: "time_windows",
    intervalMs: options.number("measurementInterval", { min: 1 })!,
    windowRequestCount: 0,
    warmupRequestCount: options.whole("warmupRequestCount")!,
    maxTrials: options.whole("maxTrials", 1)!,
    stability: { percentage: options.number("stabilityPercentage")! },
  };
  return {
    options: measure,
    seed,
    data: {
      inputData: options.inputData(),
      shapes: readShapes(options.texts("shape")),
      batchSize,
      stringLength: options.whole("stringLength"),
      seed,
    },
  };
}

const REPEATED = ["constraint", "inputData", "shape"];

/** Options by the groups of the help. Where Model Analyzer has an option, the name is the same. */
const GROUPS: Readonly<Record<string, readonly OptionRow[]>> = {
  "Models:": [
    ["-m, --models <names>", "models to tune, by commas; all of them get load at the same time"],
    ["--model-repository <folder>", "repository of the models"],
    ["--module <file>", "module with a function `createTriton(configs)`, for bound models"],
  ],
  "Goal:": [
    ["--objective <metrics>", "metrics to improve, with weights", "perf_throughput:10"],
    ["--constraint <limit>", 'limit such as "perf_latency_p99<50"; may be repeated'],
    ["--latency-budget <ms>", "limit on perf_latency_p99"],
    ["--min-throughput <n>", "limit on perf_throughput"],
    ["--model-weights <weights>", "weights of several models as name:weight, by commas"],
  ],
  "Search:": [
    ["--search <mode>", "model, quick or brute", "model"],
    ["--verify <n>", "best simulated configurations that are verified by real runs", "3"],
    [
      "--early-exit-enable",
      "brute: end given lists of loads and batches where the throughput no longer rises",
    ],
    ["--budget <time>", "time for the search, for instance 10m"],
    ["--resume", "continue with the measurements of the last run"],
  ],
  "Configurations:": [
    ["--instances <list>", "numbers of instances; 1 to the number of cores, at most 4, unless given"],
    ["--isolation <list>", "where instances run: default, worker, process"],
    ["--max-batch-sizes <list>", "largest batches; powers of two up to 128 unless given; 0 to keep"],
    ["--queue-delays <list>", "queue delays in microseconds; 0,500,2000 unless given"],
    [
      "--preferred-batch-sizes <list>",
      "preferred sizes; + joins sizes of one configuration: 4,8+16; 0 for none",
    ],
    ["--target-latencies <list>", "targets of adaptive batching in ms, 0 for none"],
    ["--deadlines <list>", "limits of requests in ms, which then run by their deadlines; 0 for none"],
    ["--threads <list>", "threads of a session of ONNX Runtime, 0 for the default"],
  ],
  "Load:": [
    ["--concurrency-range <range>", "requests in flight as start:end:step"],
    ["--request-rate-range <range>", "requests a second as start:end:step"],
    ["--request-distribution <name>", "gaps between requests: constant or poisson", "poisson"],
    ["-b, --batch-size <n>", "inferences in each request", "1"],
    ["--input-data <source>", "random, zero, a directory, or JSON files; may be repeated"],
    ["--shape <shape>", "shape of an input with variable dimensions as NAME:d1,d2; may be repeated"],
    ["--string-length <n>", "characters of random strings", "128"],
    ["--seed <n>", "seed of random data and gaps", "0"],
  ],
  "Measurement:": [
    ["-p, --measurement-interval <ms>", "length of a time window", "1000"],
    [
      "-s, --stability-percentage <percent>",
      "largest difference of the last 3 windows; not for the search model",
      "10",
    ],
    ["-r, --max-trials <n>", "largest number of windows of a measurement; not for the search model", "6"],
    ["--warmup-request-count <n>", "requests before the first window", "20"],
  ],
  "Reports:": [
    ["-e, --export-path <folder>", "folder of the reports and the checkpoint", "analyze-results"],
    [
      "--output-model-repository-path <folder>",
      "folder of the variants; `models` in the export path unless given",
    ],
    ["--num-configs-per-model <n>", "configurations in the table and in the output", "3"],
  ],
};

const EXAMPLES = `
Examples:
  $ tritonjs analyze --model-repository models -m resnet
      finds the configuration with the highest throughput
  $ tritonjs analyze --model-repository models -m resnet --latency-budget 50 --budget 10m
      the same with a p99 latency of at most 50 ms, in ten minutes
  $ tritonjs analyze --model-repository models -m resnet --request-rate-range 200 --objective perf_latency_p99
      finds the lowest latency for 200 requests a second
  $ tritonjs analyze --model-repository models -m resnet --search brute --instances 1,2 --max-batch-sizes 8,16
      measures every combination
  $ tritonjs analyze --model-repository models -m resnet --search brute --max-batch-sizes 4,8,16,32,64 --early-exit-enable
      the same, but leaves out the larger batches once the throughput no longer rises
  $ tritonjs analyze --model-repository models -m detect,classify --model-weights detect:2,classify:1
      tunes two models that share the machine

Exit codes:
  0    a configuration that meets the constraints is found
  1    no measured configuration meets the constraints
  99   anything else: options, the models, or a file of a report
  130  interrupted`;

export function analyzeOptions(version: string): Command {
  const command = new Command("tritonjs analyze")
    .description("Finds the configuration of a model that meets a goal, like Triton's Model Analyzer.")
    .version(version, "--version")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run 'tritonjs analyze --help' for the options.");
  return addOptions(command, GROUPS, REPEATED);
}

function readGoal(options: OptionReader, models: readonly string[]): SearchGoal {
  const objectives = Object.fromEntries(
    readWeights("--objective", options.text("objective")!, METRIC_TAGS, 1),
  ) as SearchGoal["objectives"];
  const constraints: Record<string, Limit> = {};
  const modelConstraints: Record<string, Record<string, Limit>> = {};
  const add = (tag: MetricTag, limit: Limit, model?: string) => {
    if (model === undefined) constraints[tag] = { ...constraints[tag], ...limit };
    else {
      const known = modelConstraints[model];
      modelConstraints[model] = { ...known, [tag]: { ...known?.[tag], ...limit } };
    }
  };
  const budget = options.number("latencyBudget");
  if (budget !== undefined) add("perf_latency_p99", { max: budget });
  const least = options.number("minThroughput");
  if (least !== undefined) add("perf_throughput", { min: least });
  for (const text of options.texts("constraint").flatMap((one) => one.split(","))) {
    const { model, tag, limit } = readConstraint(text, models);
    add(tag, limit, model);
  }
  const weights = options.text("modelWeights");
  return {
    objectives,
    constraints: constraints as Constraints,
    ...(Object.keys(modelConstraints).length > 0 && { modelConstraints }),
    ...(weights !== undefined && {
      modelWeights: Object.fromEntries(readWeights("--model-weights", weights, models)),
    }),
  };
}

/** Reads `name:weight,name:weight`. */
function readWeights<Name extends string>(
  option: string,
  text: string,
  names: readonly Name[],
  fallback?: number,
): [Name, number][] {
  return text.split(",").map((part) => {
    const colon = part.lastIndexOf(":");
    const [name, weight] =
      colon === -1 ? [part.trim()] : [part.slice(0, colon).trim(), part.slice(colon + 1)];
    const known = names.find((one) => one === name);
    if (known === undefined) throw invalidOption(`${option}: expected ${names.join(", ")}, got '${name}'`);
    if (weight === undefined && fallback === undefined) {
      throw invalidOption(`${option}: expected name:weight, got '${part}'`);
    }
    const value = weight === undefined ? fallback! : readOptionNumber(option, weight);
    if (value === 0) throw invalidOption(`${option}: expected a weight above 0, got '${part}'`);
    return [known, value];
  });
}

/** Reads `perf_latency_p99<50`, or `resnet.perf_latency_p99<50` for one of the models. */
function readConstraint(
  text: string,
  models: readonly string[],
): { readonly model?: string; readonly tag: MetricTag; readonly limit: Limit } {
  const [, name = "", relation = "", number = ""] = /^\s*([\w.-]+?)\s*(<=?|>=?)\s*(\S+)\s*$/.exec(text) ?? [];
  const tag = METRIC_TAGS.find((one) => name === one || name.endsWith(`.${one}`));
  if (tag === undefined) {
    throw invalidOption(
      `--constraint: expected a limit such as perf_latency_p99<50 of ${METRIC_TAGS.join(", ")}, got '${text}'`,
    );
  }
  const value = readOptionNumber("--constraint", number);
  const limit = relation.startsWith("<") ? { max: value } : { min: value };
  if (name === tag) return { tag, limit };
  const model = name.slice(0, -tag.length - 1);
  if (!models.includes(model)) {
    throw invalidOption(`--constraint: expected one of the models ${models.join(", ")}, got '${model}'`);
  }
  return { model, tag, limit };
}

function readSpace(options: OptionReader): ModelSpace {
  const list = (name: string, flag: string, min: number, whole = true) =>
    options
      .text(name)
      ?.split(",")
      .map((text) => readOptionNumber(flag, text.trim(), { min, whole }));
  const sizes = list("maxBatchSizes", "--max-batch-sizes", 0);
  const given = {
    instances: list("instances", "--instances", 1),
    isolation: options
      .text("isolation")
      ?.split(",")
      .map((word) => readWord("--isolation", word.trim(), VARIANT_ISOLATIONS)),
    maxBatchSize: sizes?.length === 1 && sizes[0] === 0 ? [] : sizes,
    queueDelayMicroseconds: list("queueDelays", "--queue-delays", 0),
    preferredBatchSizes: options.text("preferredBatchSizes")?.split(",").map(preferredOf),
    targetLatencyMs: list("targetLatencies", "--target-latencies", 0, false),
    deadlineMs: list("deadlines", "--deadlines", 0, false),
    threads: list("threads", "--threads", 0),
  };
  if (given.maxBatchSize?.includes(0)) {
    throw invalidOption(
      "--max-batch-sizes: expected sizes of at least 1, or 0 alone to keep the configured one",
    );
  }
  return Object.fromEntries(Object.entries(given).filter(([, values]) => values !== undefined));
}

/** `4+8` are the sizes of one configuration; `0` is none. */
function preferredOf(text: string): number[] {
  return text
    .split("+")
    .map((size) => readOptionNumber("--preferred-batch-sizes", size.trim(), { whole: true }))
    .filter((size) => size > 0);
}
