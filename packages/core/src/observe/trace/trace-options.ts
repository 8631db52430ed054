import { TritonError } from "@tritonjs/protocol";
import { collectorUrl, DEFAULT_OPEN_TELEMETRY, type OpenTelemetryOptions } from "./span-exporter.js";
import {
  DEFAULT_TRACE_SETTINGS,
  TRACE_LEVELS,
  TRACE_MODES,
  type TraceLevel,
  type TraceMode,
  type TraceSettings,
} from "./trace-settings.js";

/** A level as options name it. MIN and MAX are old names of TIMESTAMPS. */
export type TraceLevelOption = TraceLevel | "OFF" | "MIN" | "MAX";

/** Which requests are traced, and where the traces go. Clients can change all settings except the file. */
export interface TraceOptions {
  /** The recorded levels; several as a list. @default "OFF" */
  readonly level?: TraceLevelOption | readonly TraceLevelOption[];
  /** Sampling interval: one of `rate` requests is traced. @default 1000 */
  readonly rate?: number;
  /** Number of traces to record; -1 for no limit. @default -1 */
  readonly count?: number;
  /**
   * Number of traces per file; the names of the files get numbers: `<file>.0`, `<file>.1`. @default 0: one file,
   * written by `close()`
   */
  readonly logFrequency?: number;
  /** File to which traces are written, as JSON, in mode "triton". Nothing is recorded without it. */
  readonly file?: string;
  /** Destination of traces: files in Triton's format, or spans sent to a collector. @default "triton" */
  readonly mode?: TraceMode;
  /** Settings of the collector, in mode "opentelemetry". */
  readonly openTelemetry?: OpenTelemetryOptions;
}

const LEVELS: Readonly<Record<TraceLevelOption, TraceLevel | undefined>> = {
  OFF: undefined,
  TIMESTAMPS: "TIMESTAMPS",
  TENSORS: "TENSORS",
  MIN: "TIMESTAMPS",
  MAX: "TIMESTAMPS",
};

/**
 * Makes the settings that the options ask for.
 *
 * @throws TritonError INVALID_ARG that lists every problem of the options.
 */
export function resolveTraceOptions(options: TraceOptions): TraceSettings {
  const problems: string[] = [];
  const given = options.level ?? [];
  const names: readonly TraceLevelOption[] = typeof given === "string" ? [given] : given;
  for (const name of names) {
    if (!Object.hasOwn(LEVELS, name)) {
      problems.push(`trace.level: expected OFF, TIMESTAMPS or TENSORS, got '${String(name)}'`);
    }
  }
  if (names.includes("OFF") && names.length > 1) {
    problems.push("trace.level: Expect only one trace level 'OFF' is specified");
  }
  const levels = new Set(names.map((name) => LEVELS[name]).filter((level) => level !== undefined));
  const whole = (name: "rate" | "count" | "logFrequency", least: number, most: number): number => {
    const value = options[name] ?? DEFAULT_TRACE_SETTINGS[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      problems.push(`trace.${name}: expected an integer from ${least} to ${most}, got ${String(value)}`);
    }
    return value;
  };
  const file = options.file ?? DEFAULT_TRACE_SETTINGS.file;
  if (typeof file !== "string") problems.push(`trace.file: expected a path, got ${String(file)}`);
  const mode = options.mode ?? "triton";
  if (!TRACE_MODES.includes(mode)) {
    problems.push(`trace.mode: expected "triton" or "opentelemetry", got '${String(mode)}'`);
  }
  const { maxQueueSize, scheduleDelayMs, maxExportBatchSize, url } = resolveOpenTelemetry(options);
  for (const [name, value] of Object.entries({ maxQueueSize, scheduleDelayMs, maxExportBatchSize })) {
    if (!Number.isInteger(value) || value < 0 || value > 2 ** 32 - 1) {
      problems.push(`trace.openTelemetry.${name}: expected an integer of at least 0, got ${String(value)}`);
    }
  }
  if (!URL.canParse(collectorUrl(url)))
    problems.push(`trace.openTelemetry.url: expected a URL, got '${url}'`);
  const settings = {
    levels: TRACE_LEVELS.filter((level) => levels.has(level)),
    rate: whole("rate", 0, 2 ** 32 - 1),
    count: whole("count", -1, 2 ** 31 - 1),
    logFrequency: whole("logFrequency", 0, 2 ** 32 - 1),
    file,
    mode,
    ofMode: mode === "triton" ? {} : settingsOfMode(options),
  };
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_OPTION" });
  return settings;
}

/** Settings of the collector, with defaults. */
export function resolveOpenTelemetry({ openTelemetry }: TraceOptions): Required<OpenTelemetryOptions> {
  return { ...DEFAULT_OPEN_TELEMETRY, ...openTelemetry };
}

function settingsOfMode(options: TraceOptions): Record<string, string> {
  const { maxQueueSize, scheduleDelayMs, maxExportBatchSize } = resolveOpenTelemetry(options);
  const { url, resource = {} } = options.openTelemetry ?? {};
  const [attribute] = Object.entries(resource);
  return {
    ...(url === undefined ? {} : { url }),
    ...(attribute === undefined ? {} : { resource: attribute.join("=") }),
    bsp_max_queue_size: String(maxQueueSize),
    bsp_schedule_delay: String(scheduleDelayMs),
    bsp_max_export_batch_size: String(maxExportBatchSize),
  };
}
