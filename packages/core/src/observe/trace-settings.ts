import { errorFor, keyList, throwProblems } from "@tritonjs/protocol";

/** The recorded parts of a request: the times of its events, or its input and output tensors. */
export type TraceLevel = "TIMESTAMPS" | "TENSORS";

const TRACE_LEVELS = keyList<Record<TraceLevel, unknown>>({ TIMESTAMPS: true, TENSORS: true });

/** The settings of traces, of a server or of one of its models. */
export interface TraceSettings {
  /** Recorded levels. Without any, nothing is recorded. */
  readonly levels: readonly TraceLevel[];
  /** Sampling interval: one of `rate` requests is traced. */
  readonly rate: number;
  /** Number of traces that remain to be recorded; -1 for no limit. */
  readonly count: number;
  /** Number of traces per file, with numbered files; 0 for one file, written when the server ends. */
  readonly logFrequency: number;
  /** File of the traces, or prefix of the numbered files. */
  readonly file: string;
  /** Whether traces go to files, or as spans to an OpenTelemetry collector. */
  readonly mode: TraceMode;
  /** Further settings of the mode that clients can read, by Triton's names. */
  readonly ofMode: Readonly<Record<string, string>>;
}

export type TraceMode = "triton" | "opentelemetry";

const TRACE_MODES = keyList<Record<TraceMode, unknown>>({ triton: true, opentelemetry: true });

export type ChangeableTraceSetting = "levels" | "rate" | "count" | "logFrequency";

export const CHANGEABLE_TRACE_SETTINGS = keyList<Record<ChangeableTraceSetting, unknown>>({
  levels: true,
  rate: true,
  count: true,
  logFrequency: true,
});

/** New settings. null removes a setting, so that its inherited value applies again. */
export type TraceChanges = {
  -readonly [Name in ChangeableTraceSetting]?: TraceSettings[Name] | null;
};

export const DEFAULT_TRACE_SETTINGS: TraceSettings = {
  levels: [],
  rate: 1000,
  count: -1,
  logFrequency: 0,
  file: "",
  mode: "triton",
  ofMode: {},
};

/** Why nothing is recorded with these settings, in Triton's words; empty if recording works. */
export function whyInvalid({ levels, rate, file, mode }: TraceSettings): string {
  if (levels.length === 0) return "tracing is disabled";
  if (rate === 0) return "sample rate must be non-zero";
  return file === "" && mode === "triton" ? "trace file name is not given" : "";
}

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
   * Destination of traces: files in Triton's format, or spans that an extension makes.
   * @default "opentelemetry" with such an extension, else "triton"
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
      'trace.mode: "opentelemetry" needs an extension that makes spans, got none; ' +
        "pass one in the option extensions of new Triton()",
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
  throwProblems(problems, "INVALID_OPTION");
  return settings;
}

const INT_MAX = 2 ** 31 - 1;
const UINT_MAX = 2 ** 32 - 1;

/**
 * Reads the levels that a client names. Undefined if none of them exists, which changes nothing. Like Triton, it
 * ignores unknown levels.
 *
 * @throws TritonError INVALID_ARG for OFF together with other levels.
 */
export function readTraceLevels(names: readonly string[]): readonly TraceLevel[] | undefined {
  if (names.includes("OFF")) {
    if (names.length === 1) return [];
    throw errorFor("INVALID_SETTING", "Expect only one trace level 'OFF' is specified");
  }
  const levels = TRACE_LEVELS.filter((level) => names.includes(level));
  return levels.length > 0 ? levels : undefined;
}

/** Reads a rate or a frequency as clients write it. Negative ones wrap around, as in Triton. */
export function readTraceNumber(name: "trace_rate" | "log_frequency", text: string): number {
  return readInteger(name, text, 0, UINT_MAX) >>> 0;
}

/** Reads the number of traces. Triton's two protocols differ in the text before a rejected value. */
export function readTraceCount(text: string, got = "got: "): number {
  const count = readInteger("trace_count", text, -1, INT_MAX);
  if (count >= -1) return count;
  throw errorFor("INVALID_SETTING", `Unable to parse 'trace_count'. Expecting value >= -1, ${got}${text}`);
}

/** The settings as clients see them, by Triton's names. All values are texts. */
export function traceSettingTexts(settings: TraceSettings): Record<string, string | readonly string[]> {
  const { levels, rate, count, logFrequency, file, mode, ofMode } = settings;
  return {
    trace_level: levels.length === 0 ? ["OFF"] : levels,
    trace_rate: String(rate),
    trace_count: String(count),
    ...(mode === "triton" ? { log_frequency: String(logFrequency), trace_file: file } : {}),
    trace_mode: mode,
    ...ofMode,
  };
}

/** Reads an integer as C++ `stoi` does: it takes the leading digits and ignores the rest. */
function readInteger(name: string, text: string, least: number, most: number): number {
  const match = /^[ \t\n\v\f\r]*([+-]?\d+)/.exec(text);
  if (match === null) throw errorFor("INVALID_SETTING", `Unable to parse '${name}', got: ${text}`);
  const value = Number(match[1]);
  if (value <= INT_MAX && value >= -INT_MAX - 1) return value;
  throw errorFor(
    "INVALID_SETTING",
    `Unable to parse '${name}', value is out of range [ ${least}, ${most} ], got: ${text}`,
  );
}
