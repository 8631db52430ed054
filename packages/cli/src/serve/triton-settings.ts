import type { Logger, MetricsConfig, TritonOptions } from "@tritonjs/core";
import type { AllowedHosts } from "@tritonjs/core/frontend";
import { type NamedSetting, OptionError } from "../options/option.js";
import type { OptionValues } from "../options/options.js";
import { closedBy, closedGroups } from "./management-access.js";

/**
 * The options of the server that the command line requests.
 *
 * @param logger takes the log, unless it goes to a file
 * @throws OptionError for invalid settings.
 */
export function tritonSettings(values: OptionValues, logger: Logger): TritonOptions {
  const repositories = repositoryPaths(values);
  // The models of a multi-model endpoint are registered when the platform loads them.
  if (repositories.length === 0 && !values["sagemaker-multi-model"]) {
    throw creating("Invalid argument - --model-repository must be specified");
  }
  const cacheBytes = cacheSize(values);
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
    modelRepository: repositories,
    modelControlMode: values["model-control-mode"],
    // A shorter interval would poll without a pause.
    repositoryPollSecs: Math.max(1, values["repository-poll-secs"]),
    loadModel: [...new Set(values["load-model"])],
    ...(values["model-config-name"] === "" ? {} : { modelConfigName: values["model-config-name"] }),
    disableAutoCompleteConfig:
      values["disable-auto-complete-config"] || values["strict-model-config"] === true,
    modelLoadThreadCount: Math.max(1, values["model-load-thread-count"]),
    modelLoadRetryCount: Math.max(0, values["model-load-retry-count"]),
    modelNamespacing: values["model-namespacing"],
    exitOnError: values["exit-on-error"],
    strictReadiness: values["strict-readiness"],
    backendConfig: backendSettings(values),
    ...(values["backend-directory"] === "" ? {} : { backendDirectory: values["backend-directory"] }),
    rateLimit: values["rate-limit"],
    ...(values["rate-limit-resource"].length === 0
      ? {}
      : { rateLimitResources: values["rate-limit-resource"] }),
    hostPolicies: hostPolicies(values),
    allowClientSharedMemory: values["allow-client-shm"],
    allowModelFileOverride: values["allow-model-file-override"] || values.compat === "triton",
    security: { ...openAiSecurity(values), allowedHosts: allowedHosts(values) },
    ...(cacheBytes === undefined ? {} : { responseCache: { byteSize: cacheBytes } }),
    requestMemory: requestMemory(values),
    metricsConfig: metricsSettings(values["metrics-config"]),
    allowCpuMetrics: values["allow-cpu-metrics"],
    allowGpuMetrics: values["allow-gpu-metrics"],
    metricsIntervalMs: values["metrics-interval-ms"],
  };
}

/** The repositories, each once. */
export function repositoryPaths(values: OptionValues): string[] {
  return [...new Set([...values["model-store"], ...values["model-repository"]])];
}

function backendSettings(values: OptionValues): Record<string, Record<string, string>> {
  const settings: Record<string, Record<string, string>> = {};
  for (const { name, key, value } of values["backend-config"]) {
    settings[name] = { ...settings[name], [key]: value };
  }
  return settings;
}

function hostPolicies(values: OptionValues): NonNullable<TritonOptions["hostPolicies"]> {
  const policies: Record<string, { numaNode?: number; cpuCores?: string }> = {};
  for (const { name, key, value } of values["host-policy"]) {
    const setting = key === "numa-node" ? { numaNode: Number(value) } : { cpuCores: value };
    policies[name] = { ...policies[name], ...setting };
  }
  return policies;
}

function allowedHosts(values: OptionValues): AllowedHosts {
  const names = values["allowed-host"];
  return names.includes("*") || names;
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

/** Bytes of the response cache; undefined without a cache. */
function cacheSize(values: OptionValues): number | undefined {
  const settings = values["cache-config"];
  const old = values["response-cache-byte-size"] ?? 0;
  if (settings.length === 0) return old > 0 ? old : undefined;
  const names = new Set(settings.map(({ name }) => name));
  if (names.size > 1) {
    throw creating(
      "Invalid argument - found multiple cache configurations, but only a single cache is currently supported",
    );
  }
  const [name] = names;
  if (name !== "local") {
    throw creating(
      `Not found - unable to find cache '${name}': the command has 'local'; your own program can pass ` +
        "new Triton({ responseCache }) any other, redisCache of @tritonjs/core/redis among them",
    );
  }
  const size = settings.findLast(({ key }) => key === "size")?.value ?? "";
  if (!/^\d+$/.test(size) || Number(size) === 0)
    throw creating(`Invalid argument - size of the cache: expected a number of bytes, got '${size}'`);
  return Number(size);
}

/** The error of a server that could not be created. */
function creating(reason: string): OptionError {
  return new OptionError(`error: creating server: ${reason}`, "alone");
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

/** Warnings for the log, in tritonserver's words, about accepted settings with faults. */
export function metricsComplaints(settings: readonly NamedSetting[]): string[] {
  return settings
    .filter(({ key }) => key === "summary_quantiles")
    .flatMap(({ value }) => value.split(","))
    .filter((pair) => !pair.includes(":"))
    .map(
      (pair) => `Invalid option: [${pair}]. No ':' delimiter found. Expected format is <quantile>:<error>`,
    );
}
