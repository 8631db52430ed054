import { keyList } from "../../config/schema/key-list.js";

/** The recorded parts of a request: the times of its events, or its input and output tensors. */
export type TraceLevel = "TIMESTAMPS" | "TENSORS";

export const TRACE_LEVELS = keyList<Record<TraceLevel, unknown>>({ TIMESTAMPS: true, TENSORS: true });

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

/** Destination of the traces. */
export type TraceMode = "triton" | "opentelemetry";

export const TRACE_MODES = keyList<Record<TraceMode, unknown>>({ triton: true, opentelemetry: true });

/** The settings that can change while the server runs. */
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
