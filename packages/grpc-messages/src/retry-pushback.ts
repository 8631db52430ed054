/** Trailer with the number of milliseconds after which a server permits a retry. Clients that retry obey it. */
export const RETRY_PUSHBACK = "grpc-retry-pushback-ms";
