/**
 * Finished requests in columns: index `i` of each column belongs to one request. Times are milliseconds since the
 * epoch with fractions (`performance.timeOrigin + performance.now()`), so that threads and processes agree.
 */
export interface RequestRecords {
  readonly count: number;
  /** When the schedule wanted the request to be sent. Equal to `sent` in concurrency mode. */
  readonly scheduled: Float64Array;
  /** When the request was handed to the connection. */
  readonly sent: Float64Array;
  /** When the last byte of the request was accepted by the connection. */
  readonly sendEnd: Float64Array;
  /** When the first response with outputs began to arrive. NaN where there was none. */
  readonly firstResponse: Float64Array;
  /** When the last response with outputs was complete, or the error arrived. */
  readonly end: Float64Array;
  /** Responses with outputs. */
  readonly responses: Uint32Array;
  /** 0 for a success, else 1 + the index of the text in `errors`. */
  readonly failure: Uint16Array;
  /** Texts of the failures in these records. */
  readonly errors: readonly string[];
  /** Correlation id of the sequence; 0 without one. */
  readonly sequence: Float64Array;
  /** Index of the payload that the request carried, in the data set. */
  readonly payload: Uint32Array;
  /** Only where `keepResponses` was asked for. */
  readonly kept?: KeptResponses;
}

/** Times and texts of single responses. Responses of request `i` are those from `offsets[i]` to `offsets[i + 1]`. */
export interface KeptResponses {
  readonly offsets: Uint32Array;
  readonly times: Float64Array;
  /** Output tokens in each response; counted from the text, or told by the server. OpenAI targets only. */
  readonly tokens?: Uint32Array;
  /** Input tokens of each request. OpenAI targets only. */
  readonly inputTokens?: Uint32Array;
  /** Outputs of each response as JSON text, for the profile export. Only where `keepOutputs` was asked for. */
  readonly outputs?: readonly string[];
}

/** What the generator itself used in a window: it must not be the bottleneck. */
export interface GeneratorUsage {
  /** CPU time of all generator threads in milliseconds, without the wait for the slots of a schedule. */
  readonly cpuMs: number;
  /** CPU time of the busiest thread as a share of the window, without that wait, 0 to 1. */
  readonly cpuUtilization: number;
  /** Event-loop utilisation of the busiest thread, without that wait, 0 to 1. */
  readonly eventLoopUtilization: number;
  /** Requests that ended, and were sent more than 1 ms after their slot; without those that found no connection. */
  readonly delayed: number;
  /** Mean share of time in which no request of a thread waited for the thread, 0 to 1. */
  readonly idle: number;
  /** Bytes of requests and responses, protocol overhead included. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** The requests that ended between two calls of `take()`. */
export interface LoadWindow {
  /** Milliseconds since the epoch. A window begins where the last one ended. */
  readonly start: number;
  readonly end: number;
  readonly records: RequestRecords;
  readonly usage: GeneratorUsage;
}
