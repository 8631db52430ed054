import type { TraceMode } from "@tritonjs/core/frontend";
import { list, type Option, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { type NamedSetting, splitSetting } from "./read-setting.js";
import { readChoice, readInteger } from "./read-value.js";

/** Values of `--trace-level` and of the setting `level`. */
export type TraceLevelName = "OFF" | "TIMESTAMPS" | "TENSORS";

/** Options of traces. */
export const traceOptions = {
  Tracing: {
    "trace-config": list(
      "<mode>,<setting>=<value>",
      "Setting of traces: level (OFF, TIMESTAMPS, TENSORS), rate (1000), count (-1). Mode triton also has triton,file " +
        "and triton,log-frequency (0). mode=opentelemetry exports spans to opentelemetry,url.",
      readTraceSetting,
    ),
    "trace-file": renamed(
      value("string", "Use --trace-config triton,file.", "", same, { completes: "file" }),
      "triton,file=<filepath>",
    ),
    "trace-level": renamed(
      list("string", "Use --trace-config level.", readTraceLevel),
      "level=<OFF|TIMESTAMPS|TENSORS>",
    ),
    "trace-rate": renamed(whole("Use --trace-config rate."), "rate=<rate value>"),
    "trace-count": renamed(whole("Use --trace-config count."), "count=<count value>"),
    "trace-log-frequency": renamed(
      whole("Use --trace-config triton,log-frequency."),
      "triton,log-frequency=<log frequency value>",
    ),
  },
};

/** Reads `OFF`, `TIMESTAMPS` or `TENSORS`, or one of their older names, in any case. */
export function readTraceLevel(text: string): TraceLevelName {
  const level = text.toLowerCase();
  if (level === "false" || level === "off") return "OFF";
  if (["true", "on", "min", "max", "timestamps"].includes(level)) return "TIMESTAMPS";
  if (level === "tensors") return "TENSORS";
  throw new OptionError(`invalid value for trace level option: ${level}`);
}

/** Reads `triton` or `opentelemetry`, in any case. */
export function readTraceMode(text: string): TraceMode {
  const mode = text.toLowerCase();
  return readChoice<TraceMode>(
    { triton: true, opentelemetry: true },
    `invalid value for trace mode option: ${mode}. Available options are "triton" and "opentelemetry"`,
  )(mode);
}

/** Reads `<mode>,<setting>=<value>`, or `<setting>=<value>` for both modes, whose name is then empty. */
function readTraceSetting(text: string): NamedSetting {
  if (text.startsWith(",")) {
    throw new OptionError(
      "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or " +
        `<setting>=<value>. Got ${text}\n`,
    );
  }
  const comma = text.indexOf(",");
  if (comma > 0) readTraceMode(text.slice(0, comma));
  const format = `--trace-config option format is '<trace mode>,<setting>=<value>'. Got ${text}\n`;
  const setting = splitSetting(text, format);
  return { ...setting, name: setting.name.toLowerCase() };
}

function whole(description: string): Option<number | undefined> {
  return value<number | undefined>("integer", description, undefined, readInteger);
}

function renamed<T>(option: Option<T>, setting: string): Option<T> {
  const name = /^(?:triton,)?([a-z-]+)=/.exec(setting)![1]!;
  return {
    ...option,
    deprecated: () =>
      `Warning: '--trace-${name}' has been deprecated and will be removed in future releases. Please use ` +
      `'--trace-config ${setting} instead.`,
  };
}

function same(text: string): string {
  return text;
}
