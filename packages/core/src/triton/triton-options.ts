import { optionTypes } from "@tritonjs/protocol";
import type { ResponseCache } from "../cache/response-cache.js";
import type { Extension } from "../extension/extension.js";
import type { ServeOptions } from "../frontend/serve-frontends.js";
import type { ServiceOptions } from "../frontend/service-options.js";
import type { RateLimitResource } from "../instance/rate-limiter.js";
import type { LogOptions } from "../observe/create-log.js";
import type { MetricsConfig } from "../observe/metric-families.js";
import type { MetricsReportOptions } from "../observe/metrics-page.js";
import type { TraceOptions } from "../observe/trace-settings.js";
import type { Clock } from "../system/clock.js";
import type { HostPolicies } from "../system/host-policy.js";

/** Options of a {@link Triton}, named after the options of PyTriton's `TritonConfig` where both exist. */
export interface TritonOptions extends Partial<ServeOptions>, LogOptions, ServiceOptions {
  /** Time limit for requests in flight after `close()`, in seconds. @default 30 */
  readonly exitTimeoutSecs?: number;
  /**
   * Seconds between `close()` and the drain. In this time the server reports that it is not ready, and tells clients to
   * leave their connections, but still accepts requests. So load balancers take it out before it refuses any.
   * @default 0
   */
  readonly exitDelaySecs?: number;
  /** Clock for every wait and measurement. Tests pass a virtual one. @default the real clock */
  readonly clock?: Clock;
  /**
   * Response cache that models with `responseCache: true` share: one in memory of `byteSize` bytes, one in Redis
   * (`redisCache` of `@tritonjs/operations/redis`), or a custom one. It is closed with the Triton. @default none
   */
  readonly responseCache?: { readonly byteSize: number } | ResponseCache;
  /**
   * How the next instance to run is chosen. With "execution_count" an instance runs when the resources of its group's
   * `rateLimiter` are free. Of several waiting instances, the one with the fewest runs relative to its priority goes
   * first. With "off" any idle instance runs.
   * @default "off"
   */
  readonly rateLimit?: "execution_count" | "off";
  /**
   * Available units of each resource. If any are given, no other resources exist.
   * @default as many as the most demanding instance needs
   */
  readonly rateLimitResources?: readonly RateLimitResource[];
  /** The registry of the metrics, and labels for all of them. */
  readonly metrics?: MetricsReportOptions;
  /** Latency metrics to collect. @default sums only, as Triton */
  readonly metricsConfig?: MetricsConfig;
  /**
   * Records traces of requests. With this option, even an empty one, clients can read and change the trace settings,
   * and ask for traces of models. Without it the server reports that it does not support tracing. @default none
   */
  readonly trace?: TraceOptions;
  /** Whether metrics show processors and memory of the machine, and this process' event loop. @default true */
  readonly allowCpuMetrics?: boolean;
  /** What the server does beyond running models, from this library or from the program. @default none */
  readonly extensions?: readonly Extension[];
  /** Settings for instances whose group names the policy, or by device: `cpu`, `gpu_0`, `model`. */
  readonly hostPolicies?: HostPolicies;
}

export const TRITON_OPTION_TYPES = optionTypes<TritonOptions>({
  id: "string",
  exitTimeoutSecs: "number",
  exitDelaySecs: "number",
  allowHttp: "boolean",
  httpAddress: "string",
  httpPort: "number",
  httpMaxInputSize: "number",
  allowGrpc: "boolean",
  grpcAddress: "string",
  grpcPort: "number",
  grpcMaxReceiveMessageSize: "number",
  allowMetrics: "boolean",
  metricsAddress: "string",
  metricsPort: "number",
  security: "object",
  logger: "object",
  logFile: "string",
  logInfo: "boolean",
  logWarning: "boolean",
  logError: "boolean",
  logVerbose: "number",
  logFormat: "string",
  strictReadiness: "boolean",
  crashReadiness: "string",
  readyWithOlderVersion: "boolean",
  responseCache: "object",
  requestMemory: "object",
  rateLimit: "string",
  rateLimitResources: "array",
  metrics: "object",
  dashboard: "boolean",
  metricsConfig: "object",
  trace: "object",
  allowCpuMetrics: "boolean",
  allowClientSharedMemory: "boolean",
  extensions: "array",
  hostPolicies: "object",
  clock: "object",
});

/** Addresses of the default frontends: on this machine only, on Triton's ports. */
export const DEFAULT_SERVE_OPTIONS: ServeOptions = {
  allowHttp: true,
  httpAddress: "localhost",
  httpPort: 8000,
  httpMaxInputSize: 64 * 1024 * 1024,
  allowGrpc: true,
  grpcAddress: "localhost",
  grpcPort: 8001,
  grpcMaxReceiveMessageSize: 64 * 1024 * 1024 + 64 * 1024,
  allowMetrics: true,
  metricsAddress: "localhost",
  metricsPort: 8002,
  dashboard: false,
};
