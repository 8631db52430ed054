/** How connections are looked after, by the names of tritonserver's `--grpc-*` options. */
export interface ConnectionOptions {
  /** How long a connection is idle before the server asks, by a ping, whether the client is still there. */
  readonly keepaliveTimeMs?: number;
  /** How long the server waits for the answer to its ping before it closes the connection. */
  readonly keepaliveTimeoutMs?: number;
  /** Whether connections without a call are kept alive, by the server's pings and by those of clients. */
  readonly keepalivePermitWithoutCalls?: boolean;
  /** Pings that the server sends without having data to send in between; 0 for any number. */
  readonly http2MaxPingsWithoutData?: number;
  /** Time that clients have to leave between pings while the server sends them nothing. */
  readonly http2MinRecvPingIntervalWithoutDataMs?: number;
  /** Pings that may come too early before the connection is closed; 0 for any number. */
  readonly http2MaxPingStrikes?: number;
  /** Age at which a connection takes no more calls, give or take a tenth; without it they grow as old as they like. */
  readonly maxConnectionAgeMs?: number;
  /** Time that calls have to finish on a connection that is too old; without it they take as long as they need. */
  readonly maxConnectionAgeGraceMs?: number;
  /** Calls that a connection may have at the same time. Clients hold back further ones; ones that come anyway are refused. */
  readonly maxConcurrentStreams?: number;
  /**
   * Bytes that one connection may hold in its HTTP/2 session, above all responses that its client has not read. Above
   * that, new calls of the connection are refused; those at hand go on. Message sizes have a limit of their own.
   */
  readonly maxSessionMemory?: number;
  /** Bytes that the headers of a call may have. A call with more ends with RESOURCE_EXHAUSTED. */
  readonly maxMetadataSize?: number;
}

/** Connection options with nothing left open that has a default. */
export type ResolvedConnectionOptions = ConnectionOptions & typeof CONNECTION_DEFAULTS;

/** The default of each option: tritonserver's, where it has one. */
export const CONNECTION_DEFAULTS = {
  keepaliveTimeMs: 7_200_000,
  keepaliveTimeoutMs: 20_000,
  keepalivePermitWithoutCalls: false,
  http2MaxPingsWithoutData: 2,
  http2MinRecvPingIntervalWithoutDataMs: 300_000,
  http2MaxPingStrikes: 2,
  /** A call costs about 1.5 KB before its first message; busy clients have a few hundred calls on a connection. */
  maxConcurrentStreams: 1024,
  /** Far above what a client that reads its responses leaves waiting. */
  maxSessionMemory: 1024 * 1024 * 1024,
  /** The most that Node's HTTP/2 takes; grpcio has 8 KiB to 16 KiB, grpc-js what Node has. */
  maxMetadataSize: 65_535,
};
