import type { TraceOptions, TritonOptions } from "@tritonjs/core";
import type { TraceLevelOption } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { OptionError, readInteger } from "../options/option.js";
import type { OptionName, OptionValues } from "../options/options.js";
import { readTraceLevel, readTraceMode } from "../options/server-options.js";

/** Settings of `--trace-config` that also have an older option of their own. */
const OLD_OPTIONS = {
  rate: "trace-rate",
  level: "trace-level",
  count: "trace-count",
  file: "trace-file",
  "log-frequency": "trace-log-frequency",
} as const satisfies Record<string, OptionName>;

/** Texts for the conflict between such an option and its setting. */
const PROVIDED = {
  rate: "provided rate value",
  level: "provided level",
  count: "provided count",
  file: "provided file",
  "log-frequency": "provided log-frequency",
} as const satisfies Record<keyof typeof OLD_OPTIONS, string>;

/** Settings of the mode opentelemetry: where and in which amounts spans are sent. */
interface SpanSettings {
  readonly url?: string;
  readonly resource: Readonly<Record<string, string>>;
  readonly maxQueueSize?: number;
  readonly scheduleDelayMs?: number;
  readonly maxExportBatchSize?: number;
}

/** tritonserver's rate, where a tracer in a program would get every request. */
const DEFAULT_RATE = 1000;

/** Values of the settings that are not given. */
const DEFAULT_SPAN_NUMBERS = {
  bsp_max_queue_size: 2048,
  bsp_schedule_delay: 5000,
  bsp_max_export_batch_size: 512,
};

/** Numeric settings of the mode opentelemetry. */
const SPAN_NUMBERS = {
  bsp_max_queue_size: "maxQueueSize",
  bsp_schedule_delay: "scheduleDelayMs",
  bsp_max_export_batch_size: "maxExportBatchSize",
} as const satisfies Record<string, keyof SpanSettings>;

/** The trace settings of a command line. */
interface ChosenTraceSettings {
  /** Traces are off unless the command line turns them on. Clients can always read and change their settings. */
  readonly options: TraceOptions;
  /** Set in mode opentelemetry. */
  readonly spans: SpanSettings | undefined;
  /** Warnings for the user. */
  readonly warnings: readonly string[];
}

/**
 * The options of traces. Unknown settings are ignored, as by tritonserver.
 *
 * @throws OptionError for a value that cannot be read.
 */
export function traceSettings(values: OptionValues, environment: NodeJS.ProcessEnv): ChosenTraceSettings {
  const settings = values["trace-config"];
  const old = Object.values(OLD_OPTIONS).filter((name) => isGiven(values[name]));
  if (settings.length === 0 && old.length === 0)
    return { options: { level: "OFF" }, spans: undefined, warnings: [] };
  const warnings: string[] = [];
  const levels: TraceLevelOption[] = [...values["trace-level"]];
  const numbers = {
    rate: values["trace-rate"],
    count: values["trace-count"],
    "log-frequency": values["trace-log-frequency"],
  };
  let file = values["trace-file"];
  let mode: TraceOptions["mode"] = "triton";
  const spans = { resource: {} as Record<string, string>, ...spanNumbersOf(environment) };
  for (const { name, key, value } of settings) {
    const known =
      name === "" ? ["rate", "level", "count"] : name === "triton" ? ["file", "log-frequency"] : [];
    if (isOld(key) && known.includes(key) && isGiven(values[OLD_OPTIONS[key]])) {
      const warning = `Warning: Overriding deprecated '--${OLD_OPTIONS[key]}' in favor of ${PROVIDED[key]} in --trace-config!`;
      warnings.push(warning);
    }
    try {
      if (name === "" && key === "mode") mode = readTraceMode(value);
      else if (name === "" && key === "level") levels.push(readTraceLevel(value));
      else if (name === "" && (key === "rate" || key === "count")) numbers[key] = readInteger(value);
      else if (name === "triton" && key === "log-frequency") numbers[key] = readInteger(value);
      else if (name === "triton" && key === "file") file = value;
      else if (name === "opentelemetry") Object.assign(spans, readSpanSetting(key, value, spans.resource));
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      const prefix = name === "" ? "" : `${name},`;
      throw new OptionError(`Bad option: "--trace-config ${prefix}${key}".\n${error.message}\n`);
    }
  }
  if (mode === "opentelemetry") {
    for (const name of ["trace-file", "trace-log-frequency"] as const) {
      if (!isGiven(values[name])) continue;
      warnings.push(
        `Warning: '--${name}' is deprecated and will be ignored with opentelemetry tracing mode.`,
      );
    }
  }
  const { rate, count, "log-frequency": logFrequency } = numbers;
  return {
    options: {
      level: levels.includes("OFF") ? "OFF" : levels,
      ...(rate === undefined ? {} : { rate }),
      ...(count === undefined ? {} : { count }),
      ...(logFrequency === undefined ? {} : { logFrequency }),
      ...(file === "" ? {} : { file }),
      ...(mode === "triton" ? {} : { mode, rate: rate ?? DEFAULT_RATE, modeSettings: modeSettings(spans) }),
    },
    spans: mode === "triton" ? undefined : spans,
    warnings,
  };
}

/** The settings as clients read them. */
function modeSettings(spans: SpanSettings): Record<string, string> {
  const [attribute] = Object.entries(spans.resource);
  const numbers = Object.entries(SPAN_NUMBERS).map(([setting, name]) => [
    setting,
    String(spans[name] ?? DEFAULT_SPAN_NUMBERS[setting as keyof typeof SPAN_NUMBERS]),
  ]);
  return {
    ...(spans.url === undefined ? {} : { url: spans.url }),
    ...(attribute === undefined ? {} : { resource: attribute.join("=") }),
    ...Object.fromEntries(numbers),
  };
}

function readSpanSetting(
  key: string,
  value: string,
  resource: Record<string, string>,
): Partial<SpanSettings> {
  if (key === "url") return { url: value };
  if (key === "resource") {
    const end = value.indexOf("=");
    if (end <= 0) throw new OptionError(`Expected <key>=<value>. Got ${value}`);
    return { resource: { ...resource, [value.slice(0, end)]: value.slice(end + 1) } };
  }
  return Object.hasOwn(SPAN_NUMBERS, key)
    ? { [SPAN_NUMBERS[key as keyof typeof SPAN_NUMBERS]]: readInteger(value) }
    : {};
}

/** Numbers from the environment, by OpenTelemetry's names. */
function spanNumbersOf(environment: NodeJS.ProcessEnv): Partial<SpanSettings> {
  const given = Object.entries(SPAN_NUMBERS).flatMap(([setting, name]) => {
    const text = environment[`OTEL_${setting.toUpperCase()}`];
    return text === undefined ? [] : [[name, readSpanNumber(setting, text)]];
  });
  return Object.fromEntries(given);
}

function readSpanNumber(setting: string, text: string): number {
  try {
    return readInteger(text);
  } catch (error) {
    throw new OptionError(`Bad option: "OTEL_${setting.toUpperCase()}".\n${(error as Error).message}\n`);
  }
}

function isGiven(value: string | number | readonly string[] | undefined): boolean {
  return value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function isOld(key: string): key is keyof typeof OLD_OPTIONS {
  return Object.hasOwn(OLD_OPTIONS, key);
}

/** What the mode opentelemetry needs. The command does not bring it along, because it is 20 MB. */
const PACKAGES = [
  "@tritonjs/core/opentelemetry",
  "@opentelemetry/api",
  "@opentelemetry/core",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
] as const;

/**
 * Loads the exporter of spans.
 *
 * @param onFailure called for spans that the collector did not accept
 * @throws TritonError UNSUPPORTED that names the packages to install, INVALID_ARG for an invalid setting.
 */
export async function loadSpanTracer(
  settings: SpanSettings,
  onFailure: (message: string) => void,
): Promise<NonNullable<TritonOptions["tracer"]>> {
  let exporter: typeof import("@tritonjs/core/opentelemetry/otlp");
  try {
    exporter = await import("@tritonjs/core/opentelemetry/otlp");
  } catch (cause) {
    throw new TritonError(
      "UNSUPPORTED",
      `trace mode opentelemetry: packages are missing; install them beside @tritonjs/cli: npm install ${PACKAGES.join(" ")}`,
      { cause },
    );
  }
  return exporter.otlp({ ...settings, onFailure });
}
