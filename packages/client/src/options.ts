import {
  activeTraceHeaders,
  INFER_OPTION_TYPES,
  type InferOptions,
  optionTypes,
  TritonError,
} from "@tritonjs/protocol";

/** Options of the clients of both protocols, for all calls that do not override them. */
export interface CommonClientOptions {
  /** Headers of every call, or a function that returns them, which is called for each attempt. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);
  /**
   * Whether calls carry the active trace of the program's OpenTelemetry, usually as the header `traceparent`. Nothing is
   * sent without a propagator that is registered with `@opentelemetry/api`. The header of the same name in `headers`
   * overrides it. @default true
   */
  readonly traceContext?: boolean;
  /** The access token of the server, sent as the header that the server expects. */
  readonly accessToken?: string;
  /**
   * Longest time for a call with all its attempts, in milliseconds; `Infinity` for no limit. Streams have no limit. The
   * server is told a limit that is given: a model with deadlines then answers in time, or refuses at once.
   * @default 60000
   */
  readonly timeoutMs?: number;
  /**
   * Number of retries. A call that never left this machine is always retried. A call that was lost on its way is
   * retried only if it changes nothing at the server, so never an inference. @default 2
   */
  readonly retries?: number;
  /** Milliseconds before the first retry; the pause doubles with each further retry. @default 100 */
  readonly retryDelayMs?: number;
  /**
   * Also retries calls that the server rejects with UNAVAILABLE (over HTTP with 503), no sooner than its `Retry-After`
   * or `grpc-retry-pushback-ms` says. If the named time is past the limit of the call, the call rejects at once, and
   * the error has the time as `retryAfterMs`. @default false
   */
  readonly retryUnavailable?: boolean;
  /**
   * Also retries an inference that was lost on its way: the connection ended before the answer, or a proxy answers 502
   * because its server did. Such an inference may run twice, so set it for models where that does no harm. Steps of
   * sequences and streams are never repeated. @default false
   */
  readonly retryLostInferences?: boolean;
  /**
   * Header, over gRPC a metadata key, that carries the id of the sequence with each call that has `sequence`. Proxies
   * choose the server by it, so that all steps of a sequence reach the same one: `"x-sequence-id"` in `deploy/haproxy`
   * and `deploy/nginx`. Characters that a header cannot carry are percent-encoded. @default no header
   */
  readonly sequenceHeader?: string;
  /** Finds the addresses of a host, for addresses such as `dns://name:8000`. @default that of Node.js */
  readonly lookup?: Lookup;
  /** Milliseconds after which a call looks the addresses of a host up again. @default 5000 */
  readonly lookupIntervalMs?: number;
}

/** The types of the options of the clients of both protocols. */
export const CLIENT_OPTION_TYPES = {
  headers: ["object", "function"],
  traceContext: "boolean",
  accessToken: "string",
  timeoutMs: "number",
  retries: "number",
  retryDelayMs: "number",
  retryUnavailable: "boolean",
  retryLostInferences: "boolean",
  sequenceHeader: "string",
  lookup: "function",
  lookupIntervalMs: "number",
} as const;

/**
 * Finds all addresses of a host.
 *
 * @returns IP addresses; an address that is missing from the next answer gets no further calls
 */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/** Options of every call of both clients. */
export interface CommonCallOptions extends Pick<InferOptions, "signal" | "timeoutMs"> {
  /** Headers of this call, which override the client's headers of the same name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The types of the options of an inference, in both protocols. */
export const INFER_CALL_OPTION_TYPES = {
  ...INFER_OPTION_TYPES,
  timeoutMs: "number",
  headers: "object",
  requestCompression: "string",
} as const;

/** The types of the options that calls other than inferences have. Each call ignores those that it does not have. */
export const CALL_OPTION_TYPES = {
  signal: "object",
  timeoutMs: "number",
  headers: "object",
  modelVersion: ["string", "number"],
  modelName: "string",
  ready: "boolean",
  unloadDependents: "boolean",
} as const;

/** The types of the options for loading a model beside those of all calls. */
export const LOAD_OPTION_TYPES = { config: "any", files: "object" } as const;

/** The version option of calls about one model. */
export interface VersionOption {
  /** Version of the model. @default the version that the server picks */
  readonly modelVersion?: string | number;
}

/** tritonclient's limit for a call. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Makes the headers of calls. `carriesTrace` is true while the transport itself adds the active trace. */
export function clientHeaders(
  { headers, accessToken, traceContext = true }: CommonClientOptions,
  tokenHeader: string,
  carriesTrace: () => boolean = () => false,
): () => Readonly<Record<string, string>> {
  const token = accessToken === undefined ? {} : { [tokenHeader]: accessToken };
  const given = typeof headers === "function" ? headers : () => headers;
  return () => ({
    ...(traceContext && !carriesTrace() && activeTraceHeaders()),
    ...given(),
    ...token,
  });
}

/** Makes the error of a header that cannot be sent. */
export function invalidHeader(cause: unknown): TritonError {
  return new TritonError("INVALID_ARG", `invalid header: ${(cause as Error).message}`, {
    reason: "INVALID_OPTION",
    cause,
  });
}

/** Compression of a request. */
export type Compression = "gzip" | "deflate";

/** Options of a client of one model: its version, time limits and queue. */
export interface CommonModelOptions extends VersionOption {
  /** `false` requests the model's configuration at once, not with the first call. @default true */
  readonly lazyInit?: boolean;
  /**
   * Longest time for the server and the model to become ready, and for loading a model, in milliseconds. @default
   * 300000
   */
  readonly initTimeoutMs?: number;
  /**
   * Longest time for an inference, without the waits for the model and in the client's queue, in milliseconds. @default
   * 60000
   */
  readonly inferenceTimeoutMs?: number;
  /** Inferences of a `ModelClient` in flight at the same time; further ones wait. @default no limit */
  readonly maxConcurrency?: number;
  /** Inferences that may wait; further ones reject with UNAVAILABLE. @default 128 */
  readonly maxQueueSize?: number;
}

/** The types of the options that clients of one model have beside those of all clients. */
export const MODEL_CLIENT_OPTION_TYPES = optionTypes<CommonModelOptions>({
  modelVersion: ["string", "number"],
  lazyInit: "boolean",
  initTimeoutMs: "number",
  inferenceTimeoutMs: "number",
  maxConcurrency: "number",
  maxQueueSize: "number",
});

/** Options that end a wait. */
export interface WaitCallOptions extends Pick<CommonCallOptions, "signal"> {
  /** @default `initTimeoutMs` of the client */
  readonly timeoutMs?: number;
}

/** PyTriton's default: loading a large model takes minutes. */
export const DEFAULT_INIT_TIMEOUT_MS = 300_000;

/** PyTriton's default. */
export const DEFAULT_INFERENCE_TIMEOUT_MS = 60_000;

/** PyTriton's default: deep enough for bursts, short enough to fail before memory does. */
export const DEFAULT_MAX_QUEUE_SIZE = 128;

/** A region of system shared memory to register. */
export interface SystemRegion {
  /** Key of the memory object: `/my_region`. */
  readonly key: string;
  readonly byteSize: number;
  /** Offset of the region in the object, in bytes. @default 0 */
  readonly offset?: number;
}

/** A region of CUDA shared memory to register. */
export interface CudaRegion {
  /** The bytes of its `cudaIpcMemHandle_t`, or their base64. */
  readonly rawHandle: Uint8Array | string;
  readonly deviceId: number;
  readonly byteSize: number;
}

/** The types of the parts of a region to register. */
export const REGION_TYPES = optionTypes<SystemRegion & CudaRegion>({
  key: "string",
  offset: "number",
  byteSize: "number",
  rawHandle: ["string", "object"],
  deviceId: "number",
});
