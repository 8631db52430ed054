import { TritonError } from "@tritonjs/protocol";
import { TRACE_LEVELS, type TraceLevel, type TraceSettings } from "./trace-settings.js";

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
    throw new TritonError("INVALID_ARG", "Expect only one trace level 'OFF' is specified", {
      reason: "INVALID_SETTING",
    });
  }
  const levels = TRACE_LEVELS.filter((level) => names.includes(level));
  return levels.length > 0 ? levels : undefined;
}

/** Reads a rate or a frequency as clients write it. Negative ones wrap around, as in Triton. */
export function readTraceNumber(name: "trace_rate" | "log_frequency", text: string): number {
  return readInteger(name, text, 0, UINT_MAX) >>> 0;
}

/**
 * Reads the number of traces as clients write it.
 *
 * @param got text before the rejected value; Triton's two protocols differ
 */
export function readTraceCount(text: string, got = "got: "): number {
  const count = readInteger("trace_count", text, -1, INT_MAX);
  if (count >= -1) return count;
  throw new TritonError(
    "INVALID_ARG",
    `Unable to parse 'trace_count'. Expecting value >= -1, ${got}${text}`,
    { reason: "INVALID_SETTING" },
  );
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
  if (match === null)
    throw new TritonError("INVALID_ARG", `Unable to parse '${name}', got: ${text}`, {
      reason: "INVALID_SETTING",
    });
  const value = Number(match[1]);
  if (value <= INT_MAX && value >= -INT_MAX - 1) return value;
  throw new TritonError(
    "INVALID_ARG",
    `Unable to parse '${name}', value is out of range [ ${least}, ${most} ], got: ${text}`,
    { reason: "INVALID_SETTING" },
  );
}
