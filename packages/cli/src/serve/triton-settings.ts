import { readFileSync } from "node:fs";
import type { Logger, MetricsConfig, TraceOptions, TritonOptions } from "@tritonjs/core";
import type { TraceLevelOption } from "@tritonjs/core/types";
import { redisCache } from "@tritonjs/operations/redis";
import { creating, type NamedSetting, OptionError, readInteger } from "../options/option.js";
import type { OptionName, OptionValues } from "../options/options.js";
import { readTraceLevel, readTraceMode } from "../options/server-options.js";
import { closedBy, closedGroups } from "./open-frontends.js";
import type { SpanSettings } from "./span-tracer.js";

/** The options of the server that the command line requests, without those of its extensions. */
export function tritonSettings(values: OptionValues, logger: Logger): TritonOptions {
  const cache = responseCache(values);
  const resources = values["rate-limit-resource"];
  const hosts = values["allowed-host"];
  return {
    id: values.id,
    exitDelaySecs: Math.max(0, values["exit-delay-secs"]),
    exitTimeoutSecs: Math.max(0, values["exit-timeout-secs"]),
    ...(values["log-file"] === "" ? { logger } : { logFile: values["log-file"] }),
    logVerbose: values["log-verbose"],
    logInfo: values["log-info"],
    logWarning: values["log-warning"],
    logError: values["log-error"],
    logFormat: values["log-format"],
    strictReadiness: values["strict-readiness"],
    ...(values["crash-readiness"] === "server" && { crashReadiness: "server" }),
    readyWithOlderVersion: values["ready-with-older-version"],
    rateLimit: values["rate-limit"],
    rateLimitResources: resources.length > 0 ? resources : undefined,
    hostPolicies: hostPolicies(values),
    allowClientSharedMemory: values["allow-client-shm"],
    security: { ...openAiSecurity(values), allowedHosts: hosts.includes("*") || hosts },
    responseCache: cache,
    requestMemory: requestMemory(values),
    metricsConfig: metricsSettings(values["metrics-config"]),
    allowCpuMetrics: values["allow-cpu-metrics"],
  };
}

function hostPolicies(values: OptionValues): NonNullable<TritonOptions["hostPolicies"]> {
  const policies: Record<string, { numaNode?: string; cpuCores?: string }> = {};
  for (const { name, key, value } of values["host-policy"]) {
    const setting = key === "numa-node" ? { numaNode: value } : { cpuCores: value };
    policies[name] = { ...policies[name], ...setting };
  }
  return policies;
}

/** The token of OpenAI's endpoints. The other frontends get their restrictions themselves. */
function openAiSecurity(values: OptionValues): NonNullable<TritonOptions["security"]> {
  const restrictedEndpoints = closedGroups(values, "openai");
  return restrictedEndpoints.length === 0
    ? { restrictedEndpoints }
    : { restrictedEndpoints, accessToken: closedBy(values).value };
}

function requestMemory(values: OptionValues): NonNullable<TritonOptions["requestMemory"]> {
  const byteSize = values["request-memory-byte-size"];
  return {
    ...(byteSize > 0 ? { byteSize } : {}),
    maxDecompressions: values["max-decompressions"],
    maxWaitingDecompressions: values["max-waiting-decompressions"],
    maxCompressionRatio: values["max-compression-ratio"],
  };
}

/** The response cache that the options name; undefined without one. */
function responseCache(values: OptionValues): TritonOptions["responseCache"] {
  const settings = values["cache-config"];
  const old = values["response-cache-byte-size"] ?? 0;
  if (settings.length === 0) return old > 0 ? { byteSize: old } : undefined;
  const names = new Set(settings.map(({ name }) => name));
  if (names.size > 1) {
    throw creating(
      "Invalid argument - found multiple cache configurations, but only a single cache is currently supported",
    );
  }
  const [name] = names;
  const given = Object.fromEntries(settings.map(({ key, value }) => [key, value]));
  if (name === "local") return { byteSize: wholeNumber(given, "size", "a number of bytes") };
  if (name === "redis") return redis(given);
  throw creating(
    `Not found - unable to find cache '${name}': the command has 'local' and 'redis'; your own program can pass ` +
      "new Triton({ responseCache }) any other",
  );
}

/** Settings of the cache `redis`: those of Triton's, and the key prefix, lifetime and time-out of `redisCache`. */
const REDIS_SETTINGS: ReadonlySet<string> = new Set([
  ...[
    "host",
    "port",
    "user",
    "password",
    "db",
    "connect_timeout",
    "socket_timeout",
    "pool_size",
    "wait_timeout",
  ],
  ...["tls_enabled", "cert", "key", "cacert", "cacert_dir", "sni"],
  ...["key_prefix", "ttl_seconds", "lookup_timeout_ms"],
]);

function redis(given: Readonly<Record<string, string>>): TritonOptions["responseCache"] {
  const unknown = Object.keys(given).find((key) => !REDIS_SETTINGS.has(key));
  if (unknown !== undefined) {
    throw creating(
      `Invalid argument - unknown setting of the cache 'redis', '${unknown}': expected one of ${[...REDIS_SETTINGS].join(", ")}`,
    );
  }
  const { host, user, password, db, cacert, cert, key, sni, key_prefix: keyPrefix } = given;
  if (host === undefined || host === "") {
    throw creating("Invalid argument - the cache 'redis' needs its host: --cache-config=redis,host=<name>");
  }
  const isSecure = given.tls_enabled === "true";
  const url = new URL(`${isSecure ? "rediss" : "redis"}://${host.includes(":") ? `[${host}]` : host}`);
  url.port = given.port ?? "6379";
  url.username = encodeURIComponent(user ?? process.env.TRITONCACHE_REDIS_USERNAME ?? "");
  url.password = encodeURIComponent(password ?? process.env.TRITONCACHE_REDIS_PASSWORD ?? "");
  url.pathname = db ?? "";
  return redisCache({
    url: url.href,
    ...(isSecure && {
      tls: {
        ...(cacert && { ca: readPem("cacert", cacert) }),
        ...(cert && { cert: readPem("cert", cert) }),
        ...(key && { key: readPem("key", key) }),
        ...(sni && { servername: sni }),
      },
    }),
    ...(keyPrefix !== undefined && { keyPrefix }),
    ...(given.ttl_seconds !== undefined && { ttlSeconds: wholeNumber(given, "ttl_seconds", "seconds") }),
    lookupTimeoutMs: wholeNumber(given, "lookup_timeout_ms", "milliseconds", given.socket_timeout ?? "1000"),
  });
}

function readPem(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw creating(`Invalid argument - ${setting} of the cache 'redis': ${(error as Error).message}`);
  }
}

/** @throws OptionError unless the setting is a whole number above 0 */
function wholeNumber(
  given: Readonly<Record<string, string>>,
  key: string,
  what: string,
  fallback = "",
): number {
  const text = given[key] ?? fallback;
  if (/^\d+$/.test(text) && Number(text) > 0) return Number(text);
  throw creating(`Invalid argument - ${key} of the cache: expected ${what}, got '${text}'`);
}

/** The settings of `--metrics-config`. Unknown settings and invalid values are ignored, as by tritonserver. */
function metricsSettings(settings: readonly NamedSetting[]): MetricsConfig {
  const config: { -readonly [Key in keyof MetricsConfig]: MetricsConfig[Key] } = {};
  for (const { key, value } of settings) {
    if (key === "counter_latencies") config.counterLatencies = value !== "false";
    if (key === "histogram_latencies") config.histogramLatencies = value === "true";
    if (key === "summary_latencies") config.summaryLatencies = value === "true";
    if (key === "summary_quantiles") {
      // Each pair is <quantile>:<error>. The error is the tolerance of a summary; ours are exact.
      const quantiles = value.split(",").map((pair) => Number(pair.split(":")[0]));
      config.summaryQuantiles = quantiles.filter((quantile) => quantile >= 0 && quantile <= 1);
    }
  }
  return config;
}

export function metricsComplaints(settings: readonly NamedSetting[]): string[] {
  return settings
    .filter(({ key }) => key === "summary_quantiles")
    .flatMap(({ value }) => value.split(","))
    .filter((pair) => !pair.includes(":"))
    .map(
      (pair) => `Invalid option: [${pair}]. No ':' delimiter found. Expected format is <quantile>:<error>`,
    );
}

/** Settings of `--trace-config` that also have an older option of their own. */
const OLD_OPTIONS = {
  rate: "trace-rate",
  level: "trace-level",
  count: "trace-count",
  file: "trace-file",
  "log-frequency": "trace-log-frequency",
} as const satisfies Record<string, OptionName>;

/** tritonserver's rate, where a tracer in a program would get every request. */
const DEFAULT_RATE = 1000;

/** Numeric settings of the mode opentelemetry, with the values of those that are not given. */
const SPAN_NUMBERS = {
  bsp_max_queue_size: ["maxQueueSize", 2048],
  bsp_schedule_delay: ["scheduleDelayMs", 5000],
  bsp_max_export_batch_size: ["maxExportBatchSize", 512],
} as const satisfies Record<string, readonly [keyof SpanSettings, number]>;

interface ChosenTraceSettings {
  /** Traces are off unless the command line turns them on. Clients can always read and change their settings. */
  readonly options: TraceOptions;
  readonly spans: SpanSettings | undefined;
  readonly warnings: readonly string[];
}

/** The options of traces. Unknown settings are ignored, as by tritonserver. */
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
      const provided = key === "rate" ? "rate value" : key;
      warnings.push(
        `Warning: Overriding deprecated '--${OLD_OPTIONS[key]}' in favor of provided ${provided} in --trace-config!`,
      );
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
      throw new OptionError(`Bad option: "--trace-config ${prefix}${key}".\n${error.message}\n`, "alone");
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
      rate,
      count,
      logFrequency,
      file: file || undefined,
      ...(mode === "triton" ? {} : { mode, rate: rate ?? DEFAULT_RATE, modeSettings: modeSettings(spans) }),
    },
    spans: mode === "triton" ? undefined : spans,
    warnings,
  };
}

function modeSettings(spans: SpanSettings): Record<string, string> {
  const [attribute] = Object.entries(spans.resource);
  const numbers = Object.entries(SPAN_NUMBERS).map(([setting, [name, fallback]]) => [
    setting,
    String(spans[name] ?? fallback),
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
    ? { [SPAN_NUMBERS[key as keyof typeof SPAN_NUMBERS][0]]: readInteger(value) }
    : {};
}

function spanNumbersOf(environment: NodeJS.ProcessEnv): Partial<SpanSettings> {
  const given = Object.entries(SPAN_NUMBERS).flatMap(([setting, [name]]) => {
    const text = environment[`OTEL_${setting.toUpperCase()}`];
    return text === undefined ? [] : [[name, readSpanNumber(setting, text)]];
  });
  return Object.fromEntries(given);
}

function readSpanNumber(setting: string, text: string): number {
  try {
    return readInteger(text);
  } catch (error) {
    throw new OptionError(
      `Bad option: "OTEL_${setting.toUpperCase()}".\n${(error as Error).message}\n`,
      "alone",
    );
  }
}

function isGiven(value: string | number | readonly string[] | undefined): boolean {
  return value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function isOld(key: string): key is keyof typeof OLD_OPTIONS {
  return Object.hasOwn(OLD_OPTIONS, key);
}
