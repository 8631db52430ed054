import { invalidOption } from "../data/invalid-option.js";
import type { LoadLevel, PeriodicConcurrencyLevel } from "../load/load-level.js";
import type { LevelRange, LoadPlan } from "../measure/load-plan.js";
import type { RunDescription } from "../report/run-description.js";
import type { OptionReader } from "./option-reader.js";
import { readGaps, readLevelRange, readRamp } from "./option-readers.js";

/** Options that choose the load; one of them may be given. */
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

/** A plan, and what reports tell about it. */
export interface PlanSettings
  extends Pick<RunDescription, "load" | "highestLevel" | "distribution" | "binarySearch"> {
  /** Undefined for a fixed schedule and for sessions, which the data has. */
  readonly plan: LoadPlan | undefined;
  /** Live sessions of the data. */
  readonly sessionConcurrency?: number;
}

/** Time before and after a spike, in measurement intervals. */
const REST_INTERVALS = 1;

/** Reads the options of the load. */
export function readPlan(options: OptionReader, intervalMs: number): PlanSettings {
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
    case "concurrencyRamp": {
      const { from, to, durationMs } = readRamp("--concurrency-ramp", text);
      const level: LoadLevel = { mode: "concurrency_ramp", from, to, durationMs };
      const phases = [{ name: "ramp", level, durationMs }];
      return { plan: { kind: "phases", phases }, load: "concurrency", ...none };
    }
    case "requestRateRamp": {
      const { from, to, durationMs } = readRamp("--request-rate-ramp", text);
      const level: LoadLevel = { mode: "request_rate_ramp", from, to, distribution, durationMs };
      const phases = [{ name: "ramp", level, durationMs }];
      return { plan: { kind: "phases", phases }, load: "request_rate", distribution, ...none };
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
