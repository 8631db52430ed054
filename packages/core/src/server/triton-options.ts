import type { ResponseCache } from "../cache/response-cache.js";
import type { Clock } from "../clock/clock.js";
import type { HostPolicies } from "../config/placement/host-policy.js";
import type { ServeOptions } from "../frontend/frontend.js";
import type { SecurityOptions } from "../frontend/security.js";
import type { RateLimitResource } from "../instance/rate-limiter/resource-pools.js";
import type { MetricsConfig } from "../observe/latency/metrics-config.js";
import type { LogOptions } from "../observe/log/create-log.js";
import type { TraceOptions } from "../observe/trace/trace-options.js";
import type { RepositoryOptions } from "../repository/repository-options.js";
import type { RequestMemoryOptions } from "../request-memory/request-memory-options.js";

/** Options of a {@link Triton}, named after those of PyTriton's `TritonConfig` where both have them. */
export interface TritonOptions extends Partial<ServeOptions>, LogOptions, RepositoryOptions {
  /** Name of the server in its metadata. @default "triton" */
  readonly id?: string;
  /** How long `close()` lets requests at hand go on, in seconds. @default 30 */
  readonly exitTimeoutSecs?: number;
  /** Time for everything that waits or measures; tests give a virtual one. @default the real clock */
  readonly clock?: Clock;
  /**
   * The cache of responses that models with `responseCache: true` share: one in memory of that many bytes, one in Redis
   * (`redisCache` of `@tritonjs/core/redis`), or one of your own. Closed with the Triton. @default none
   */
  readonly responseCache?: { readonly byteSize: number } | ResponseCache;
  /**
   * Lets clients on this machine register shared memory, and have inputs and outputs there. Needs the package `koffi`;
   * only for clients that may read and write this process's data. @default false
   */
  readonly allowClientSharedMemory?: boolean;
  /** Limits on the memory of requests that frontends receive, over all of them together. */
  readonly requestMemory?: RequestMemoryOptions;
  /**
   * What clients need an access token for. A frontend that is made with restrictions of its own has those instead.
   * @default a random token for shared-memory, model-repository, statistics, trace and logging
   */
  readonly security?: SecurityOptions;
  /**
   * How instances are chosen to run. With "execution_count" one runs when the resources of its group's `rateLimiter`
   * are free, and of several that wait the one that ran least for its priority; with "off" any idle one runs.
   * @default "off"
   */
  readonly rateLimit?: "execution_count" | "off";
  /** Pieces of each resource. @default as many as the neediest instance takes; with any given, no others exist */
  readonly rateLimitResources?: readonly RateLimitResource[];
  /** Which metrics of latency there are. @default sums only, as Triton */
  readonly metricsConfig?: MetricsConfig;
  /**
   * Records what happens to requests. With it, even an empty one, clients can see and change the settings of traces, and
   * ask for traces of models; without it the server answers as one that cannot trace. @default none
   */
  readonly trace?: TraceOptions;
  /** Whether the metrics page tells about the processors and the memory of the machine. @default true */
  readonly allowCpuMetrics?: boolean;
  /** Settings for the instances that name them, and for those of a device: `cpu`, `gpu_0`, `model`. */
  readonly hostPolicies?: HostPolicies;
  /**
   * Numbers of the GPUs that instance groups may name; an empty list for a server that leaves GPUs alone.
   * @default those of this machine, as `nvidia-smi` tells of them when a configuration first asks
   */
  readonly gpus?: readonly number[];
  /**
   * Requests that each dynamic or sequence batcher waits for before its first batch: a hold for tests.
   * @default the environment variable TRITONSERVER_DELAY_SCHEDULER, else 0
   */
  readonly delayScheduler?: number;
  /**
   * Requests in the backlog that each sequence batcher waits for besides those of `delayScheduler`.
   * @default the environment variable TRITONSERVER_BACKLOG_DELAY_SCHEDULER, else 0
   */
  readonly backlogDelayScheduler?: number;
}

/** Where the default frontends listen: on this machine only, on Triton's ports. */
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
