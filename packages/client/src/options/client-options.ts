import { type InferOptions, TritonError } from "@tritonjs/protocol";

/** Options of a client whatever carries its calls: they hold for all its calls, unless a call says otherwise. */
export interface CommonClientOptions {
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token of the server, sent as the header that it is expected in. */
  readonly accessToken?: string;
  /** Longest time for a call, all its attempts together; `Infinity` for no limit. Streams have none. @default 60000 */
  readonly timeoutMs?: number;
  /**
   * Attempts after the first. A call that never left this machine is always made again; one that was lost on its way
   * only when it changes nothing at the server, so never an inference. @default 2
   */
  readonly retries?: number;
  /** Pause before the first retry; each further one is twice as long. @default 100 */
  readonly retryDelayMs?: number;
  /**
   * Also retry calls that the server refuses with UNAVAILABLE (over HTTP with 503), no sooner than it says with
   * `Retry-After` or `grpc-retry-pushback-ms`. One that names a time past the limit of the call is refused at once,
   * with `retryAfterMs` of the error. @default false
   */
  readonly retryUnavailable?: boolean;
}

/** Options of every call, whatever carries it. */
export interface CommonCallOptions extends Pick<InferOptions, "signal" | "timeoutMs"> {
  /** Sent with this call, instead of those of the client with the same name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Which version a call about one model means. */
export interface VersionOption {
  /** @default the version that the server picks */
  readonly modelVersion?: string | number;
}

/** tritonclient's limit for a call. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** The headers that a client sends with every call. */
export function clientHeaders(
  { headers, accessToken }: CommonClientOptions,
  tokenHeader: string,
): Readonly<Record<string, string>> {
  return accessToken === undefined ? { ...headers } : { ...headers, [tokenHeader]: accessToken };
}

/** The error of a header that cannot be sent. */
export function invalidHeader(cause: unknown): TritonError {
  return new TritonError("INVALID_ARG", `invalid header: ${(cause as Error).message}`, {
    reason: "INVALID_OPTION",
    cause,
  });
}

/** How the content of a request is compressed. */
export type Compression = "gzip" | "deflate";
