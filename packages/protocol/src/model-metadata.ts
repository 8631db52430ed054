/** A tensor in the v2 metadata. If the model has a batch axis, the shape begins with it as -1. */
export interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: number[];
}

/** The answer of `GET v2/models/M`. */
export interface ModelMetadata {
  readonly name: string;
  readonly versions: string[];
  readonly platform: string;
  readonly inputs: TensorMetadata[];
  readonly outputs: TensorMetadata[];
}

/** The answer of `GET v2`. */
export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

/** One row of the repository index. */
export interface ModelIndexEntry {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** A number of events and their total time in nanoseconds. */
export interface Duration {
  count: number;
  ns: number;
}

/** Outcomes and times of all responses with the same index within their request. */
export interface ResponseStatistics {
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
  readonly success: Duration;
  readonly fail: Duration;
  /** Requests that ended without a response. */
  readonly emptyResponse: Duration;
  /** Requests that were cancelled before this response. */
  readonly cancel: Duration;
}

/** Statistics of one model version: the protocol's `ModelStatistics` message. */
export interface ModelStatisticsReport {
  readonly name: string;
  readonly version: string;
  /** Wall time of the last inference, in milliseconds since 1970. */
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
  /**
   * Statistics of responses of decoupled models, by the index of a response within its request; only for the first
   * 1024.
   */
  readonly responseStats: Readonly<Record<string, Readonly<ResponseStatistics>>>;
  readonly batchStats: readonly {
    readonly batchSize: number;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
  }[];
  readonly memoryUsage: readonly { readonly type: string; readonly id: number; readonly byteSize: number }[];
}
