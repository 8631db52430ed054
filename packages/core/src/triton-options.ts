import type { ResponseCache } from "./cache/response-cache.js";
import type { Clock } from "./clock/clock.js";
import type { LogOptions } from "./observe/log/create-log.js";
import type { ServeOptions } from "./service/frontend.js";

/** Options of a {@link Triton}, named after those of PyTriton's `TritonConfig` where both have them. */
export interface TritonOptions extends Partial<ServeOptions>, LogOptions {
  /** Name of the server in its metadata. @default "triton" */
  readonly id?: string;
  /** How long `close()` lets requests at hand go on, in seconds. @default 30 */
  readonly exitTimeoutSecs?: number;
  /** Time for everything that waits or measures; tests give a virtual one. @default the real clock */
  readonly clock?: Clock;
  /**
   * The cache of responses that models with `responseCache: true` share: one in memory of that many bytes, or one
   * of your own. @default none
   */
  readonly responseCache?: { readonly byteSize: number } | ResponseCache;
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
  allowMetrics: true,
  metricsAddress: "localhost",
  metricsPort: 8002,
};
