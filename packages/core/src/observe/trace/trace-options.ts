import { TritonError } from "@tritonjs/protocol";
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
  /**
   * Destination of traces: files in Triton's format, or spans made by the option `tracer`.
   * @default "opentelemetry" with the option `tracer`, else "triton"
   */
  readonly mode?: TraceMode;
  /** Further settings of mode "opentelemetry" that clients can read, by Triton's names: `url`, `bsp_max_queue_size`. */
  readonly modeSettings?: Readonly<Record<string, string>>;
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
 * @param hasTracer true if a tracer makes spans; then every request is handed to it, unless the options say otherwise
 * @throws TritonError INVALID_ARG that lists every problem of the options.
 */
export function resolveTraceOptions(options: TraceOptions, hasTracer = false): TraceSettings {
  const problems: string[] = [];
  const given = options.level ?? (hasTracer ? "TIMESTAMPS" : []);
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
  const defaults = hasTracer ? { ...DEFAULT_TRACE_SETTINGS, rate: 1 } : DEFAULT_TRACE_SETTINGS;
  const whole = (name: "rate" | "count" | "logFrequency", least: number, most: number): number => {
    const value = options[name] ?? defaults[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      problems.push(`trace.${name}: expected an integer from ${least} to ${most}, got ${String(value)}`);
    }
    return value;
  };
  const file = options.file ?? DEFAULT_TRACE_SETTINGS.file;
  if (typeof file !== "string") problems.push(`trace.file: expected a path, got ${String(file)}`);
  const mode = options.mode ?? (hasTracer ? "opentelemetry" : "triton");
  if (!TRACE_MODES.includes(mode)) {
    problems.push(`trace.mode: expected "triton" or "opentelemetry", got '${String(mode)}'`);
  }
  if (mode === "opentelemetry" && !hasTracer) {
    problems.push(
      'trace.mode: "opentelemetry" needs the option tracer, got none; ' +
        "pass openTelemetry() of @tritonjs/opentelemetry, or otlp() of @tritonjs/opentelemetry/otlp",
    );
  }
  const settings = {
    levels: TRACE_LEVELS.filter((level) => levels.has(level)),
    rate: whole("rate", 0, 2 ** 32 - 1),
    count: whole("count", -1, 2 ** 31 - 1),
    logFrequency: whole("logFrequency", 0, 2 ** 32 - 1),
    file,
    mode,
    ofMode: mode === "triton" ? {} : (options.modeSettings ?? {}),
  };
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_OPTION" });
  return settings;
}
