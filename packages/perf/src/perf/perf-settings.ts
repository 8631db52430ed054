import { availableParallelism } from "node:os";
import { VERSION } from "@tritonjs/core/internal";
import type { ParsedOptions } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import type { DataOptions } from "../data/data-set.js";
import type { LoadOptions } from "../load/load-generator.js";
import type { LoadLevel, PeriodicConcurrencyLevel } from "../load/load-level.js";
import type { SequenceLoad } from "../load/sequence-load.js";
import type { LevelRange, LoadPlan, MeasureOptions } from "../measure/measure-level.js";
import { type Goal, readGoals } from "../measure/request-figures.js";
import type { ModelName } from "../measure/server-watch.js";
import type { RunDescription } from "../report/write-report.js";
import {
  type GrpcTargetOptions,
  type HttpTargetOptions,
  type OpenAiTargetOptions,
  readPem,
  type TlsSettings,
} from "../target/target-options.js";
import {
  OptionReader,
  readGaps,
  readHeaders,
  readLevelRange,
  readModelNames,
  readOptionNumber,
  readParameterOptions,
  readRamp,
  readShapes,
} from "./option-reader.js";
import { UNSUPPORTED } from "./perf-options.js";
import { type Assertion, readAssertions } from "./run-verdict.js";

/** The models of this process: a repository, or a module. */
export type InProcessSource =
  | {
      readonly repository: string;
      /** Models that are loaded beside the measured one and the steps of an ensemble. @default none */
      readonly calledModels?: readonly string[];
    }
  /** Path of a module that exports a `Triton` as `default` or `triton`. */
  | { readonly module: string };

/** A model that runs in this process, before it is opened. */
export interface InProcessSettings {
  readonly kind: "in-process";
  readonly modelName: string;
  readonly modelVersion?: string;
  readonly parameters: HttpTargetOptions["parameters"];
  readonly source: InProcessSource;
}

export type TargetSettings = HttpTargetOptions | GrpcTargetOptions | OpenAiTargetOptions | InProcessSettings;

export interface ReportSettings {
  readonly csv?: string;
  readonly verboseCsv: boolean;
  readonly profile?: string;
  readonly json?: string;
  readonly html?: string;
  readonly verbose: boolean;
}

/** The command line as read and checked, before anything is opened. */
export interface PerfSettings {
  readonly target: TargetSettings;
  readonly calledModels: readonly ModelName[];
  readonly data: DataOptions;
  readonly load: LoadOptions;
  readonly measure: Omit<MeasureOptions, "tokens">;
  /** Undefined for a fixed schedule and for sessions, which the data has. */
  readonly plan: LoadPlan | undefined;
  readonly sessionConcurrency?: number;
  readonly goals: readonly Goal[];
  readonly assertions: readonly Assertion[];
  readonly metrics?: { readonly url: string; readonly intervalMs: number };
  readonly reports: ReportSettings;
  readonly description: Omit<RunDescription, "decoupled" | "isSequenceModel">;
}

/**
 * Reads and checks the options of the command.
 *
 * @param given options as commander read them
 * @param command the command line, for reports
 * @throws TritonError INVALID_ARG that names the option, with what was expected and what came
 */
export function readSettings(given: ParsedOptions, command: string): PerfSettings {
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

function withoutDefaults(given: ParsedOptions): ParsedOptions {
  return Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value === "" || Number(value) !== NOT_GIVEN[name]),
  );
}

function refuseUnsupported(given: ParsedOptions): void {
  for (const { flags, instead, accepted } of UNSUPPORTED) {
    const long = /--([\w-]+)/.exec(flags)?.[1] ?? flags.slice(1, 2);
    const name = long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    if (given[name] !== undefined && given[name] !== accepted)
      throw invalidOption(`${flags} is not supported: ${instead}`);
  }
}

function readData(options: OptionReader, batchSize: number, seed: number): DataOptions {
  return {
    inputData: options.inputData(),
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

const COMPRESSIONS = ["none", "gzip", "deflate"] as const;

function readTarget(options: OptionReader): TargetSettings {
  const serviceKind = options.word("serviceKind", ["triton", "triton_c_api", "openai"]);
  const protocol = options.word("protocol", ["http", "grpc"], { anyCase: true });
  const headers = readHeaders(options.texts("header"));
  const parameters = readParameterOptions(options.texts("requestParameter"));
  const modelVersion = options.text("modelVersion");
  const streaming = options.has("streaming");
  const name = options.text("modelName");
  if (serviceKind === "openai") {
    const url = options.text("url") ?? "localhost:8000";
    const endpoint = options.text("endpoint");
    const tls = httpsTls(options);
    return { kind: "openai", url, endpoint, streaming, modelName: name, headers, tls };
  }
  if (name === undefined) throw invalidOption("-m: expected the name of a model");
  const model = { modelName: name, modelVersion, parameters };
  if (serviceKind === "triton_c_api") return { kind: "in-process", ...model, source: sourceOf(options) };
  const remote = {
    ...model,
    headers,
    sharedMemory: sharedMemoryOf(options),
    outputSharedMemorySize: options.whole("outputSharedMemorySize", 1),
  };
  if (protocol === "grpc") {
    const compression = compressionOf(options, "grpcCompressionAlgorithm");
    const url = options.text("url") ?? "localhost:8001";
    return { kind: "grpc", ...remote, url, streaming, compression, tls: grpcTls(options) };
  }
  if (streaming) throw invalidOption("--streaming: expected -i grpc, got http");
  return {
    kind: "http",
    ...remote,
    url: options.text("url") ?? "localhost:8000",
    inputTensorFormat: options.word("inputTensorFormat", ["binary", "json"]),
    outputTensorFormat: options.word("outputTensorFormat", ["binary", "json"]),
    requestCompression: compressionOf(options, "requestCompression"),
    responseCompression: compressionOf(options, "responseCompression"),
    tls: httpsTls(options),
  };
}

function sourceOf(options: OptionReader): InProcessSource {
  const repository = options.text("modelRepository");
  const module = options.text("module");
  options.onlyOne(["modelRepository", "module"]);
  if (repository !== undefined) {
    const called = readModelNames(options.text("blsComposingModels") ?? "").map(({ name }) => name);
    return { repository, ...(called.length > 0 && { calledModels: called }) };
  }
  if (module !== undefined) return { module };
  throw invalidOption("--service-kind triton_c_api needs --model-repository or --module");
}

function sharedMemoryOf(options: OptionReader): "none" | "system" {
  if (options.text("sharedMemory") === "cuda") {
    throw invalidOption("--shared-memory cuda is not supported: expected none or system");
  }
  return options.word("sharedMemory", ["none", "system"]);
}

function compressionOf(options: OptionReader, name: string): "gzip" | "deflate" | undefined {
  const algorithm = options.word(name, COMPRESSIONS);
  return algorithm === "none" ? undefined : algorithm;
}

function grpcTls(options: OptionReader): TlsSettings | undefined {
  const files = pemFiles(options, {
    ca: "sslGrpcRootCertificationsFile",
    cert: "sslGrpcCertificateChainFile",
    key: "sslGrpcPrivateKeyFile",
  });
  return options.has("sslGrpcUseSsl") || files !== undefined ? (files ?? {}) : undefined;
}

function httpsTls(options: OptionReader): TlsSettings | undefined {
  const files = pemFiles(options, {
    ca: "sslHttpsCaCertificatesFile",
    cert: "sslHttpsClientCertificateFile",
    key: "sslHttpsPrivateKeyFile",
  });
  const acceptAny = options.word("sslHttpsVerifyPeer", ["0", "1"]) === "0";
  const host = options.word("sslHttpsVerifyHost", ["0", "1", "2"]);
  if (host !== "2" && !acceptAny) {
    throw invalidOption(
      "--ssl-https-verify-host: expected 2, or --ssl-https-verify-peer 0, which checks nothing",
    );
  }
  return acceptAny ? { ...files, acceptAny } : files;
}

function pemFiles(
  options: OptionReader,
  names: Readonly<Record<"ca" | "cert" | "key", string>>,
): TlsSettings | undefined {
  const found = Object.entries(names).flatMap(([member, name]) => {
    const path = options.text(name);
    return path === undefined ? [] : [[member, readPem(name, path)] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

const LOADS = [
  "concurrencyRange",
  "requestRateRange",
  "requestIntervals",
  "fixedSchedule",
  "concurrencyRamp",
  "requestRateRamp",
  "requestRateSpike",
  "periodicConcurrencyRange",
  "sessionConcurrency",
] as const;

interface PlanSettings
  extends Pick<RunDescription, "load" | "highestLevel" | "distribution" | "binarySearch"> {
  readonly plan: LoadPlan | undefined;
  readonly sessionConcurrency?: number;
}

/** Time before and after a spike, in measurement intervals. */
const REST_INTERVALS = 1;

function readPlan(options: OptionReader, intervalMs: number): PlanSettings {
  const chosen = options.onlyOne(LOADS) as (typeof LOADS)[number] | undefined;
  const distribution = options.word("requestDistribution", ["constant", "poisson"]);
  const binarySearch = options.has("binarySearch");
  if (binarySearch) {
    options.needs("binarySearch", "latencyThreshold");
    if (chosen !== undefined && chosen !== "concurrencyRange" && chosen !== "requestRateRange") {
      throw invalidOption("--binary-search needs --concurrency-range or --request-rate-range");
    }
  }
  const rate = (value: number): LoadLevel => ({ mode: "request_rate", value, distribution });
  const text = chosen === undefined ? "" : (options.text(chosen) ?? "");
  const none = { highestLevel: 0, binarySearch: false } as const;
  switch (chosen) {
    case "requestRateRange": {
      const range = readLevelRange("--request-rate-range", text);
      const plan = rangePlan(options, range, binarySearch, rate);
      return { plan, load: "request_rate", highestLevel: range.end, distribution, binarySearch };
    }
    case "requestIntervals": {
      const level: LoadLevel = { mode: "request_intervals", gapsMicroseconds: readGaps(text) };
      return { plan: { kind: "single", level }, load: "request_intervals", ...none };
    }
    case "fixedSchedule":
      options.onlyOne(["fixedSchedule", "requestCount"]);
      return { plan: undefined, load: "request_intervals", ...none };
    case "concurrencyRamp":
    case "requestRateRamp": {
      const isRate = chosen === "requestRateRamp";
      const ramp = readRamp(isRate ? "--request-rate-ramp" : "--concurrency-ramp", text);
      const level: LoadLevel = isRate
        ? { mode: "request_rate_ramp", ...ramp, distribution }
        : { mode: "concurrency_ramp", ...ramp };
      const plan: LoadPlan = {
        kind: "phases",
        phases: [{ name: "ramp", level, durationMs: ramp.durationMs }],
      };
      return isRate
        ? { plan, load: "request_rate", distribution, ...none }
        : { plan, load: "concurrency", ...none };
    }
    case "requestRateSpike": {
      const { from, to, durationMs } = readRamp("--request-rate-spike", text);
      if (from === 0) throw invalidOption(`--request-rate-spike: expected a rate above 0, got '${text}'`);
      const restMs = intervalMs * REST_INTERVALS;
      const phases = [
        { name: "before", level: rate(from), durationMs: restMs },
        { name: "peak", level: rate(to), durationMs },
        { name: "after", level: rate(from), durationMs: restMs },
      ];
      return { plan: { kind: "phases", phases }, load: "request_rate", distribution, ...none };
    }
    case "periodicConcurrencyRange": {
      const level = readPeriodicLevel(options, text);
      return { plan: { kind: "single", level }, load: "concurrency", highestLevel: level.end, binarySearch };
    }
    case "sessionConcurrency": {
      if (options.text("serviceKind") !== "openai")
        throw invalidOption("--session-concurrency needs --service-kind openai");
      options.needs("sessionConcurrency", "inputData");
      options.onlyOne(["sessionConcurrency", "requestCount"]);
      const sessionConcurrency = options.whole("sessionConcurrency", 1)!;
      const load = { load: "concurrency", highestLevel: sessionConcurrency, binarySearch } as const;
      return { plan: undefined, sessionConcurrency, ...load };
    }
    default: {
      const range = readLevelRange("--concurrency-range", text === "" ? "1" : text, { whole: true });
      const plan = rangePlan(options, range, binarySearch, (value) => ({ mode: "concurrency", value }));
      return { plan, load: "concurrency", highestLevel: range.end, binarySearch };
    }
  }
}

function readPeriodicLevel(options: OptionReader, text: string): PeriodicConcurrencyLevel {
  options.needs("periodicConcurrencyRange", "streaming");
  options.needs("periodicConcurrencyRange", "profileExportFile");
  options.onlyOne(["periodicConcurrencyRange", "requestCount"]);
  const { start, end, step } = readLevelRange("--periodic-concurrency-range", text, { whole: true });
  if (end === 0)
    throw invalidOption(
      `--periodic-concurrency-range: expected an end of at least the start ${start}, got 0`,
    );
  return { mode: "periodic_concurrency", start, end, step, responses: options.whole("requestPeriod", 1)! };
}

function rangePlan(
  options: OptionReader,
  range: LevelRange,
  binarySearch: boolean,
  levelAt: (value: number) => LoadLevel,
): LoadPlan {
  if (range.end === 0 && binarySearch)
    throw invalidOption("--binary-search needs a range with an end above 0");
  if (range.end === 0 && !options.has("latencyThreshold")) {
    throw invalidOption("a range with the end 0 has no limit: it needs --latency-threshold");
  }
  return { kind: binarySearch ? "search" : "sweep", range, levelAt };
}
