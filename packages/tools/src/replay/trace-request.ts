/** One request of a trace file, in milliseconds of the recording's clock. */
export interface TraceRequest {
  /** Number of the request in its file. */
  readonly id: number;
  /** The request that caused this one: that of an ensemble, or of a model that calls others. */
  readonly parentId?: number;
  /** The id that the client gave. */
  readonly requestId?: string;
  /** When the frontend began and ended to receive the request, and to send the response. */
  readonly transport?: TraceTransport;
  readonly modelName: string;
  readonly modelVersion: number;
  /** When the model accepted the request. */
  readonly queueStartMs: number;
  /** When the response was ready. */
  readonly endMs: number;
  /** Absent for a request that ran in no batch: it was refused, cancelled, or answered by the response cache. */
  readonly batch?: TraceBatch;
  /** Rows along the batch axis. Absent in files of servers that do not record it. */
  readonly rows?: number;
  readonly priority?: number;
  readonly queueTimeoutMicroseconds?: number;
  readonly sequence?: { readonly id: bigint | string; readonly start: boolean; readonly end: boolean };
}

/** Times of a request's frontend. A request that came in process has none. */
export interface TraceTransport {
  readonly protocol: "HTTP" | "gRPC";
  readonly receiveStartMs: number;
  readonly receiveEndMs: number;
  readonly sendStartMs?: number;
  readonly sendEndMs?: number;
}

/** The batch of a request, as its trace tells. */
export interface TraceBatch {
  readonly startMs: number;
  readonly endMs: number;
  /** When the inputs were merged, and when the model had its outputs. */
  readonly inputEndMs?: number;
  readonly outputStartMs?: number;
  /** Rows, requests, instance and reason for the size. tritonserver does not record these. */
  readonly rows?: number;
  readonly requests?: number;
  readonly instance?: string;
  readonly cut?: string;
}
