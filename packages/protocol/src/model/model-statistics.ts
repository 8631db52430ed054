/** A number of events and the nanoseconds they took together. */
export interface Duration {
  count: number;
  ns: number;
}

/** What became of the responses that had the same place among those to their requests, and how long they took. */
export interface ResponseStatistics {
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
  readonly success: Duration;
  readonly fail: Duration;
  /** Requests that ended without a response. */
  readonly emptyResponse: Duration;
  /** Requests that were given up instead of getting this response. */
  readonly cancel: Duration;
}

/** Statistics of one model version: the protocol's `ModelStatistics` message. */
export interface ModelStatisticsReport {
  readonly name: string;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly lastInference: number;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly inferenceStats: {
    readonly success: Duration;
    readonly fail: Duration;
    readonly queue: Duration;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
    readonly cacheHit: Duration;
    readonly cacheMiss: Duration;
  };
  /** Of decoupled models, by the index of a response among those to one request; of the first 1024. */
  readonly responseStats: Readonly<Record<string, Readonly<ResponseStatistics>>>;
  readonly batchStats: readonly {
    readonly batchSize: number;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
  }[];
  readonly memoryUsage: readonly { readonly type: string; readonly id: number; readonly byteSize: number }[];
}
