import { join } from "node:path";
import { invalidOption } from "../../data/invalid-option.js";
import type { MeasureOptions } from "../../measure/measure-options.js";
import { OptionReader } from "../../perf/option-reader.js";
import { readDuration, readLevelRange, readShapes } from "../../perf/option-readers.js";
import type { PerfOptions } from "../../perf/perf-options.js";
import type { AnalyzeLevel } from "../figures.js";
import type { SearchGoal } from "../goal.js";
import type { AnalyzeLoad } from "../load.js";
import type { RealMeasuring } from "../real/measured-level.js";
import type { ModelSpace } from "../search-space.js";
import { readGoal } from "./read-goal.js";
import { readSpace } from "./read-space.js";

export type SearchMode = "model" | "quick" | "brute";

/** Models, as the user gave them. */
export type AnalyzeSource =
  | { readonly kind: "repository"; readonly path: string }
  | { readonly kind: "module"; readonly path: string };

/** The options of a run. */
export interface AnalyzeSettings {
  readonly source: AnalyzeSource;
  readonly models: readonly string[];
  readonly goal: SearchGoal;
  readonly search: SearchMode;
  readonly verify: number;
  /** Ends lists that the user gave where the throughput no longer rises. */
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

/** Largest number of requests in flight that is chosen without a range. */
const MOST_IN_FLIGHT = 1024;

/** @throws TritonError INVALID_ARG for options that do not fit */
export function readAnalyzeSettings(given: PerfOptions, command: string): AnalyzeSettings {
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
  const [first, ...more] = options.texts("inputData");
  const isGenerated = first === "random" || first === "zero";
  if (isGenerated && more.length > 0) {
    throw invalidOption(`--input-data: expected '${first}' alone, or files, got '${more.join("', '")}' too`);
  }
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
      inputData: first === undefined ? "random" : isGenerated ? first : [first, ...more],
      shapes: readShapes(options.texts("shape")),
      batchSize,
      stringLength: options.whole("stringLength"),
      seed,
    },
  };
}
