/** One request of a trace file, in milliseconds of the recording's clock. */
export interface TraceRequest {
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

/** The batch of a request, as its trace tells. */
export interface TraceBatch {
  readonly startMs: number;
  readonly endMs: number;
  /** Rows, requests, instance and reason for the size. tritonserver does not record these. */
  readonly rows?: number;
  readonly requests?: number;
  readonly instance?: string;
  readonly cut?: string;
}
