/** Keepalive, pings, age and limits of connections, with the names of tritonserver's `--grpc-*` options. */
export interface ConnectionOptions {
  /** Idle milliseconds after which the server pings the client. */
  readonly keepaliveTimeMs?: number;
  /** Milliseconds that the server waits for the answer to its ping before it closes the connection. */
  readonly keepaliveTimeoutMs?: number;
  /** Permits keepalive pings, the server's and the client's, on connections without a call. */
  readonly keepalivePermitWithoutCalls?: boolean;
  /** Pings that the server sends without data between them; 0 for no limit. */
  readonly http2MaxPingsWithoutData?: number;
  /** Milliseconds that clients have to leave between pings while the server sends them nothing. */
  readonly http2MinRecvPingIntervalWithoutDataMs?: number;
  /** Early pings after which the connection is closed; 0 for no limit. */
  readonly http2MaxPingStrikes?: number;
  /** Age after which a connection accepts no more calls, give or take a tenth; no limit unless given. */
  readonly maxConnectionAgeMs?: number;
  /** Milliseconds that calls have to finish on a connection past its age; no limit unless given. */
  readonly maxConnectionAgeGraceMs?: number;
  /** Concurrent calls on a connection. Clients hold further calls back; calls that come anyway are rejected. */
  readonly maxConcurrentStreams?: number;
  /**
   * Bytes that one connection may hold in its HTTP/2 session, mainly responses that its client has not read. Above the
   * limit, new calls of the connection are rejected, and calls in flight continue. Message sizes have a limit of their
   * own.
   */
  readonly maxSessionMemory?: number;
  /** Most bytes in the headers of a call. A call with more ends with RESOURCE_EXHAUSTED. */
  readonly maxMetadataSize?: number;
}

/** Connection options with all defaults filled in. */
export type ResolvedConnectionOptions = ConnectionOptions & typeof CONNECTION_DEFAULTS;

/** The default of each option: tritonserver's, if it has one. */
export const CONNECTION_DEFAULTS = {
  keepaliveTimeMs: 7_200_000,
  keepaliveTimeoutMs: 20_000,
  keepalivePermitWithoutCalls: false,
  http2MaxPingsWithoutData: 2,
  http2MinRecvPingIntervalWithoutDataMs: 300_000,
  http2MaxPingStrikes: 2,
  /** A call costs about 1.5 KB before its first message; busy clients have a few hundred calls on a connection. */
  maxConcurrentStreams: 1024,
  /** Far above the unread responses of a client that keeps reading. */
  maxSessionMemory: 1024 * 1024 * 1024,
  /** The most that Node's HTTP/2 accepts. grpcio accepts 8 KiB to 16 KiB, grpc-js as much as Node. */
  maxMetadataSize: 65_535,
};
