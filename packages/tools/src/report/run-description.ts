/** What a report tells about the measurement itself. */
export interface RunDescription {
  readonly serviceKind: "triton" | "triton_c_api" | "openai";
  readonly model: string;
  readonly version: string;
  readonly url: string;
  readonly protocol: "http" | "grpc";
  readonly batchSize: number;
  readonly mode: "time_windows" | "count_windows";
  readonly intervalMs: number;
  readonly windowRequestCount: number;
  /** Exact number of requests, where it was given. */
  readonly requestCount?: number;
  readonly percentile?: number;
  readonly stabilityPercentage: number;
  readonly latencyLimitMs?: number;
  /** What the levels count. */
  readonly load: "concurrency" | "request_rate" | "request_intervals";
  /** Highest level of the range; 0 for no limit. */
  readonly highestLevel: number;
  /** Distribution of the gaps between requests. */
  readonly distribution?: "constant" | "poisson";
  readonly binarySearch: boolean;
  readonly asynchronous: boolean;
  readonly streaming: boolean;
  readonly decoupled: boolean;
  readonly isSequenceModel: boolean;
  /** Command line, for the HTML report and the JSON files. */
  readonly command: string;
  /** Version of this library. */
  readonly toolVersion: string;
}
