import type { ResponseCache } from "../cache/response-cache.js";
import type { Clock } from "../clock/clock.js";
import type { HostPolicies } from "../config/placement/host-policy.js";
import type { ServeOptions } from "../frontend/frontend.js";
import type { SecurityOptions } from "../frontend/security.js";
import type { RateLimitResource } from "../instance/rate-limiter/resource-pools.js";
import type { MetricsConfig } from "../observe/latency/metrics-config.js";
import type { LogOptions } from "../observe/log/create-log.js";
import type { RequestTracer } from "../observe/trace/request-tracer.js";
import type { TraceOptions } from "../observe/trace/trace-options.js";
import type { RepositoryOptions } from "../repository/repository-options.js";
import type { RequestMemoryOptions } from "../request-memory/request-memory-options.js";

/** Options of a {@link Triton}, named after the options of PyTriton's `TritonConfig` where both exist. */
export interface TritonOptions extends Partial<ServeOptions>, LogOptions, RepositoryOptions {
  /** Name of the server in its metadata. @default "triton" */
  readonly id?: string;
  /** Time limit for requests in flight after `close()`, in seconds. @default 30 */
  readonly exitTimeoutSecs?: number;
  /** Clock for every wait and measurement. Tests pass a virtual one. @default the real clock */
  readonly clock?: Clock;
  /**
   * Response cache that models with `responseCache: true` share: one in memory of `byteSize` bytes, one in Redis
   * (`redisCache` of `@tritonjs/core/redis`), or a custom one. It is closed with the Triton. @default none
   */
  readonly responseCache?: { readonly byteSize: number } | ResponseCache;
  /**
   * Whether clients on this machine may register shared memory for inputs and outputs. Needs the package `koffi`.
   * Enable it only for clients that may read and write the data of this process. @default false
   */
  readonly allowClientSharedMemory?: boolean;
  /** Limits on the memory of requests that frontends receive, in total over all frontends. */
  readonly requestMemory?: RequestMemoryOptions;
  /**
   * Access token and the operations that need it. A frontend that is made with restrictions of its own uses those
   * instead.
   * @default a random token for shared-memory, model-repository, statistics, trace and logging
   */
  readonly security?: SecurityOptions;
  /**
   * How the next instance to run is chosen. With "execution_count" an instance runs when the resources of its group's
   * `rateLimiter` are free. Of several waiting instances, the one with the fewest runs relative to its priority goes
   * first. With "off" any idle instance runs.
   * @default "off"
   */
  readonly rateLimit?: "execution_count" | "off";
  /**
   * Available units of each resource. If any are given, no other resources exist. @default as many as the most
   * demanding instance needs
   */
  readonly rateLimitResources?: readonly RateLimitResource[];
  /** Latency metrics to collect. @default sums only, as Triton */
  readonly metricsConfig?: MetricsConfig;
  /**
   * Records traces of requests. With this option, even an empty one, clients can read and change the trace settings,
   * and ask for traces of models. Without it the server reports that it does not support tracing. @default none
   */
  readonly trace?: TraceOptions;
  /**
   * Makes spans of requests: `openTelemetry()` of `@tritonjs/opentelemetry`, for the OpenTelemetry of the program. All
   * requests are handed to it, unless the option `trace` says otherwise. It is closed with the Triton. @default none
   */
  readonly tracer?: RequestTracer;
  /** Whether the metrics page shows the processor and memory usage of the machine. @default true */
  readonly allowCpuMetrics?: boolean;
  /**
   * Settings for instances whose group names the policy, and for the instances of a device: `cpu`, `gpu_0`, `model`.
   */
  readonly hostPolicies?: HostPolicies;
  /**
   * Numbers of the GPUs that instance groups may name. An empty list makes the server use no GPU.
   * @default the GPUs of this machine, as `nvidia-smi` reports them when a configuration first needs them
   */
  readonly gpus?: readonly number[];
  /**
   * Number of requests that each dynamic or sequence batcher waits for before its first batch. It serves tests.
   * @default the environment variable TRITONSERVER_DELAY_SCHEDULER, else 0
   */
  readonly delayScheduler?: number;
  /**
   * Number of requests in its backlog that each sequence batcher waits for, besides those of `delayScheduler`.
   * @default the environment variable TRITONSERVER_BACKLOG_DELAY_SCHEDULER, else 0
   */
  readonly backlogDelayScheduler?: number;
}

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
};
