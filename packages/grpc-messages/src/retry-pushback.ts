/** Trailer by which a server says after how many milliseconds a call may be retried. Clients that retry obey it. */
export const RETRY_PUSHBACK = "grpc-retry-pushback-ms";
