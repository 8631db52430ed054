import { definedMembers, LONGEST_TIMEOUT_MS, TritonError } from "@tritonjs/protocol";
import type { ClientOptions as GrpcClientOptions } from "../grpc/client-options.js";
import type { Fetch } from "../http/client-options.js";
import type { Lookup } from "../options/client-options.js";
import { DEFAULT_LOOKUP_INTERVAL_MS, hostNameOf, listOf } from "../servers/server-addresses.js";

/** The protocol of the replicas. */
export type RemoteProtocol = "grpc" | "http";

/** Options of a model that runs on other servers. */
export interface RemoteOptions {
  /**
   * Addresses of the replicas: `grpc://gpu1:8001`, `grpcs://`, `http://gpu1:8000`, `https://`; `dns://name:8001` for
   * all addresses of a name.
   */
  readonly urls: string | readonly string[];
  /** Name of the model on these servers. */
  readonly model: string;
  /** Version of the model there. @default the version that the server picks */
  readonly version?: string | number;
  /** Protocol of addresses without a scheme, and of `dns://`. @default "grpc" */
  readonly protocol?: RemoteProtocol;
  /** Batches that a replica gets at the same time: one runs while the next one travels. @default 2 */
  readonly concurrency?: number;
  /**
   * True if a request may run twice. A batch whose connection is lost then runs on another replica, instead of failing.
   * @default false
   */
  readonly idempotent?: boolean;
  /** Number of further attempts of a batch on other replicas. @default 2 */
  readonly retries?: number;
  /**
   * Sends a batch that a replica rejects with UNAVAILABLE to another one. Use `false` behind proxies that may also
   * answer UNAVAILABLE after a request has run. @default true
   */
  readonly retryUnavailable?: boolean;
  /**
   * Milliseconds after which a batch without an answer also goes to an idle replica. The first answer counts. The batch
   * may run twice. Not for decoupled models and sequences. @default no second request
   */
  readonly hedgeAfterMs?: number;
  /** Longest time for one attempt, in milliseconds; a stream has no limit. @default 60000 */
  readonly timeoutMs?: number;
  /** Longest wait for the first ready replica, in milliseconds. @default 60000 */
  readonly initTimeoutMs?: number;
  /** Headers or metadata of every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token of the servers. */
  readonly accessToken?: string;
  /** Encrypts gRPC connections. @default false, unless the address begins with `grpcs://` */
  readonly tls?: GrpcClientOptions["tls"];
  /** Options of grpc-js' channels. */
  readonly channelOptions?: GrpcClientOptions["channelOptions"];
  /** Function that sends requests over HTTP. @default the global `fetch` */
  readonly fetch?: Fetch;
  /** Finds the addresses of a host. @default that of Node.js */
  readonly lookup?: Lookup;
  /** Milliseconds between lookups. @default 5000 */
  readonly lookupIntervalMs?: number;
}

type Defaulted =
  | "concurrency"
  | "idempotent"
  | "retries"
  | "retryUnavailable"
  | "timeoutMs"
  | "initTimeoutMs"
  | "lookupIntervalMs";

/** Options with all defaults. */
export type RemoteSettings = Omit<RemoteOptions, Defaulted | "urls"> &
  Required<Pick<RemoteOptions, Defaulted>> & { readonly urls: readonly string[] };

/** Defaults and their reasons. */
export const REMOTE_DEFAULTS = {
  // With one batch, a replica is idle while its answer and the next batch travel.
  concurrency: 2,
  // A model may count, log or charge.
  idempotent: false,
  // As for the clients.
  retries: 2,
  // A server answers UNAVAILABLE before it runs a request: its queue is full, or it stops.
  retryUnavailable: true,
  // As for the clients.
  timeoutMs: 60_000,
  // Long enough for a server that loads a large model.
  initTimeoutMs: 60_000,
  lookupIntervalMs: DEFAULT_LOOKUP_INTERVAL_MS,
} as const satisfies Required<Pick<RemoteOptions, Defaulted>>;

/** Smallest values of the numeric options, and whether they are integers. */
const NUMBERS: Readonly<Partial<Record<keyof RemoteOptions, { least: number; integer?: boolean }>>> = {
  concurrency: { least: 1, integer: true },
  retries: { least: 0, integer: true },
  hedgeAfterMs: { least: 0 },
  timeoutMs: { least: 1 },
  initTimeoutMs: { least: 0 },
  lookupIntervalMs: { least: 1 },
};

/**
 * Checks the options and adds the defaults.
 *
 * @throws TritonError INVALID_ARG that names the option, the expected and the given value.
 */
export function remoteSettings(options: RemoteOptions): RemoteSettings {
  const urls = listOf(options.urls);
  const { model } = options;
  if (typeof model !== "string" || model === "") throw invalid("model", "the name of a model", model);
  for (const [name, { least, integer }] of Object.entries(NUMBERS)) {
    const value = options[name as keyof RemoteOptions];
    if (value === undefined || (value === Number.POSITIVE_INFINITY && name.endsWith("timeoutMs"))) continue;
    const isNumber = typeof value === "number" && value >= least && value <= LONGEST_TIMEOUT_MS;
    if (isNumber && (integer !== true || Number.isInteger(value))) continue;
    throw invalid(name, `${integer ? "an integer" : "a number"} of at least ${least}`, value);
  }
  for (const url of urls) protocolOf(url, options.protocol);
  return { ...REMOTE_DEFAULTS, ...(definedMembers(options) as RemoteOptions), urls };
}

/**
 * The protocol of an address.
 *
 * @throws TritonError INVALID_ARG for another scheme.
 */
export function protocolOf(url: string, protocol: RemoteProtocol = "grpc"): RemoteProtocol {
  if (protocol !== "grpc" && protocol !== "http") throw invalid("protocol", "'grpc' or 'http'", protocol);
  if (/^grpcs?:\/\//.test(url)) return "grpc";
  if (/^https?:\/\//.test(url)) return "http";
  if (!url.includes("://") || hostNameOf(url, 0) !== undefined) return protocol;
  throw invalid("urls", "an address that begins with grpc://, grpcs://, http://, https:// or dns://", url);
}

function invalid(option: string, expected: string, got: unknown): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `remote model, option ${option}: expected ${expected}, got '${got}'`,
    {
      reason: "INVALID_OPTION",
    },
  );
}
