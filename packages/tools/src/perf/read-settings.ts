import { availableParallelism } from "node:os";
import { VERSION } from "@tritonjs/core/frontend";
import type { DataOptions } from "../data/data-options.js";
import { invalidOption } from "../data/invalid-option.js";
import type { SequenceLoad } from "../load/sequence-load.js";
import { readGoals } from "../measure/tokens/goals.js";
import { readAssertions } from "./assertions.js";
import { OptionReader } from "./option-reader.js";
import { readModelNames, readOptionNumber, readShapes } from "./option-readers.js";
import type { PerfOptions } from "./perf-options.js";
import type { PerfSettings, TargetSettings } from "./perf-settings.js";
import { readPlan } from "./read-plan.js";
import { readTarget } from "./read-target.js";
import { UNSUPPORTED } from "./unsupported-options.js";

/**
 * Reads and checks the options of the command.
 *
 * @param given options as commander read them
 * @param command the command line, for reports
 * @throws TritonError INVALID_ARG that names the option, with what was expected and what came
 */
export function readSettings(given: PerfOptions, command: string): PerfSettings {
  refuseUnsupported(given);
  const options = new OptionReader(withoutDefaults(given));
  const target = readTarget(options);
  const intervalMs = options.number("measurementInterval", { min: 1 })!;
  const { plan, sessionConcurrency, ...described } = readPlan(options, intervalMs);
  const isOneThread = sessionConcurrency !== undefined || options.has("periodicConcurrencyRange");
  const percentile = options.number("percentile", { min: 1, max: 99.999 });
  const latencyLimitMs = options.number("latencyThreshold");
  const requestCount = options.whole("requestCount", 1);
  const batchSize = options.whole("batchSize", 1)!;
  const seed = options.whole("seed")!;
  const profile = options.text("profileExportFile");
  const goals = readGoals(options.text("goodput") ?? "");
  const mode = options.word("measurementMode", ["time_windows", "count_windows"]);
  const measure = {
    batchSize,
    mode,
    intervalMs,
    windowRequestCount: options.whole("measurementRequestCount", 1)!,
    requestCount,
    warmupRequestCount: options.whole("warmupRequestCount")!,
    maxTrials: options.whole("maxTrials", 1)!,
    stability: { percentage: options.number("stabilityPercentage")!, percentile },
    latencyLimitMs,
  };
  options.needs("verboseCsv", "filename");
  return {
    target,
    calledModels: readModelNames(options.text("blsComposingModels") ?? ""),
    data: readData(options, batchSize, seed),
    load: {
      threads: isOneThread ? 1 : options.whole("maxThreads", 1),
      seed,
      keepResponses: true,
      keepOutputs: profile !== undefined,
      timeoutMs: options.number("requestTimeout", { min: 0.001 }),
      sequences: readSequences(options),
    },
    measure,
    plan,
    ...(sessionConcurrency !== undefined && { sessionConcurrency }),
    goals,
    assertions: readAssertions(options.text("assert") ?? ""),
    ...(options.has("collectMetrics") && {
      metrics: {
        url: metricsUrl(options.text("metricsUrl")!),
        intervalMs: options.number("metricsInterval", { min: 10 })!,
      },
    }),
    reports: {
      csv: options.text("filename"),
      verboseCsv: options.has("verboseCsv"),
      profile,
      json: options.text("json"),
      html: options.text("html"),
      verbose: options.has("verbose"),
    },
    description: {
      ...describedTarget(target),
      ...described,
      batchSize,
      mode,
      intervalMs,
      windowRequestCount: measure.windowRequestCount,
      requestCount,
      percentile,
      stabilityPercentage: measure.stability.percentage,
      latencyLimitMs,
      asynchronous: !options.has("sync"),
      command,
      toolVersion: VERSION,
    },
  };
}

/** Values by which perf_analyzer says that an option is not given. */
const NOT_GIVEN: Readonly<Record<string, number>> = { percentile: -1, requestCount: 0, latencyThreshold: 0 };

function withoutDefaults(given: PerfOptions): PerfOptions {
  return Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value === "" || Number(value) !== NOT_GIVEN[name]),
  );
}

function refuseUnsupported(given: PerfOptions): void {
  for (const { flags, instead, accepted } of UNSUPPORTED) {
    const long = /--([\w-]+)/.exec(flags)?.[1] ?? flags.slice(1, 2);
    const name = long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    if (given[name] !== undefined && given[name] !== accepted)
      throw invalidOption(`${flags} is not supported: ${instead}`);
  }
}

function readData(options: OptionReader, batchSize: number, seed: number): DataOptions {
  const [first, ...more] = options.texts("inputData");
  const isGenerated = first === "random" || first === "zero";
  if (isGenerated && more.length > 0) {
    throw invalidOption(`--input-data: expected '${first}' alone, or files, got '${more.join("', '")}' too`);
  }
  return {
    inputData: first === undefined ? "random" : isGenerated ? first : [first, ...more],
    shapes: readShapes(options.texts("shape")),
    batchSize,
    stringLength: options.whole("stringLength"),
    stringData: options.text("stringData"),
    seed,
    freshData: !options.has("sameData"),
    fixedSchedule: options.has("fixedSchedule"),
    sessions: options.has("sessionConcurrency"),
  };
}

function readSequences(options: OptionReader): SequenceLoad {
  const range = options.text("sequenceIdRange");
  const [start = 1, end] =
    range?.split(":").map((part) => readOptionNumber("--sequence-id-range", part, { min: 1, whole: true })) ??
    [];
  if (end !== undefined && end <= start) {
    throw invalidOption(
      `--sequence-id-range: expected start:end with an end above the start, got '${range}'`,
    );
  }
  return {
    count: options.whole("numOfSequences", 1),
    length: options.whole("sequenceLength", 1),
    lengthVariationPercent: options.number("sequenceLengthVariation", { max: 100 }),
    idStart: start,
    idRange: end === undefined ? undefined : end - start,
    serial: options.has("serialSequences") ? true : undefined,
  };
}

/** An address without a scheme is of HTTP, and one without a path is of Triton's page. */
function metricsUrl(text: string): string {
  const url = /^https?:\/\//.test(text) ? text : `http://${text}`;
  try {
    const parsed = new URL(url);
    return parsed.pathname === "/" ? new URL("/metrics", parsed).href : parsed.href;
  } catch (error) {
    throw invalidOption(`--metrics-url: expected an address, got '${text}'`, error);
  }
}

function describedTarget(target: TargetSettings) {
  const common = { version: "", streaming: "streaming" in target && target.streaming === true };
  if (target.kind === "openai") {
    const model = target.modelName ?? target.endpoint ?? "";
    return { ...common, serviceKind: "openai", model, url: target.url, protocol: "http" } as const;
  }
  const model = { ...common, model: target.modelName, version: target.modelVersion ?? "" };
  if (target.kind === "in-process") {
    return { ...model, serviceKind: "triton_c_api", url: "", protocol: "http" } as const;
  }
  return { ...model, serviceKind: "triton", url: target.url, protocol: target.kind } as const;
}

/** Warnings about settings that cannot give a good measurement. */
export function settingWarnings({ measure, plan, load }: PerfSettings): string[] {
  const warnings: string[] = [];
  if (measure.requestCount === undefined && measure.maxTrials < 3 && plan?.kind !== "phases") {
    warnings.push(`--max-trials ${measure.maxTrials}: a level needs 3 windows to be stable`);
  }
  if (load.threads !== undefined && load.threads > availableParallelism()) {
    warnings.push(
      `--max-threads ${load.threads}: this machine has ${availableParallelism()} cores, and each thread sends any number of requests`,
    );
  }
  return warnings;
}
