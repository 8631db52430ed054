import { keyList } from "../../config/schema/key-list.js";

/** What of a request is recorded: when what happened to it, and the tensors that went in and came out. */
export type TraceLevel = "TIMESTAMPS" | "TENSORS";

export const TRACE_LEVELS = keyList<Record<TraceLevel, unknown>>({ TIMESTAMPS: true, TENSORS: true });

/** The settings of traces, of a server or of one of its models. */
export interface TraceSettings {
  /** Nothing is recorded while there are none. */
  readonly levels: readonly TraceLevel[];
  /** One request of how many is traced. */
  readonly rate: number;
  /** Traces that are still to be recorded; -1 for any number. */
  readonly count: number;
  /** Traces to a file, which are then numbered; 0 for one file, written when the server ends. */
  readonly logFrequency: number;
  /** Where traces are written, or what the names of numbered files begin with. */
  readonly file: string;
  /** Whether traces go to files, or as spans to a collector of OpenTelemetry. */
  readonly mode: TraceMode;
  /** What else clients are told of the mode, by Triton's names. */
  readonly ofMode: Readonly<Record<string, string>>;
}

/** Who takes the traces. */
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

/** New settings: null takes a change back, so that the setting is again what it was without it. */
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

/** Why nothing is recorded with such settings, in Triton's words; empty when something is. */
export function whyInvalid({ levels, rate, file, mode }: TraceSettings): string {
  if (levels.length === 0) return "tracing is disabled";
  if (rate === 0) return "sample rate must be non-zero";
  return file === "" && mode === "triton" ? "trace file name is not given" : "";
}
