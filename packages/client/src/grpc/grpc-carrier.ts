import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  compressionAlgorithms,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { onAbort, TritonError } from "@tritonjs/protocol";
import type { Attempt, Carrier, OutgoingCall } from "../caller.js";
import type { CallDeadline } from "../deadline.js";
import { type Compression, clientHeaders, invalidHeader } from "../options.js";
import { areSeveral } from "../server-addresses.js";
import { openServers, type SeveralServers } from "../several-servers.js";
import { callError, callStatus, failureOf } from "./call-error.js";
import {
  ACCESS_TOKEN_HEADER,
  type CallOptions,
  type ClientOptions,
  DEFAULT_GRPC_PORT,
  nameOptions,
} from "./client-options.js";

export interface GrpcRequest extends OutgoingCall {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly bytes: Buffer;
  readonly headers: CallOptions["headers"];
  readonly compression: Compression | undefined;
}

interface StreamMethod<Q, R> {
  readonly path: string;
  readonly encode: (message: Q) => Buffer;
  readonly decode: (bytes: Buffer) => R;
  readonly compression: Compression | undefined;
}

/** Messages of any size, and windows that are large enough for tensors. */
const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
};

const asIs = (bytes: Buffer): Buffer => bytes;

class GrpcCarrier implements Carrier<GrpcRequest, Buffer> {
  readonly #address: ServerAddress;
  readonly #options: ClientOptions;
  readonly #headers: () => Readonly<Record<string, string>>;
  /** grpc-js compresses by channel, not by call. */
  readonly #clients = new Map<Compression | undefined, Client>();

  constructor(url: string, options: ClientOptions) {
    this.#address = serverAddress(url, options.tls);
    this.#options = options;
    this.#headers = clientHeaders(options, ACCESS_TOKEN_HEADER);
  }

  attempt(request: GrpcRequest, deadline: CallDeadline): Promise<Attempt<Buffer>> {
    const metadata = this.#metadata(request.headers);
    return new Promise((resolve, reject) => {
      let forget = (): void => {};
      const call = this.#client(request.compression).makeUnaryRequest(
        request.path,
        asIs,
        asIs,
        request.bytes,
        metadata,
        limitOf(deadline),
        (error: ServiceError | null, answer?: Buffer) => {
          forget();
          resolve(error === null ? { answer: answer! } : failed(error, deadline));
        },
      );
      forget = onAbort(deadline.signal, () => {
        reject(deadline.fault);
        call.cancel();
      });
    });
  }

  /** Opens a stream of requests and responses. The caller must read it to its end, or cancel it. */
  duplex<Q, R>(
    method: StreamMethod<Q, R>,
    headers: CallOptions["headers"],
    deadline: CallDeadline,
  ): ClientDuplexStream<Q, R> {
    return this.#client(method.compression).makeBidiStreamRequest(
      method.path,
      method.encode,
      method.decode,
      this.#metadata(headers),
      limitOf(deadline),
    );
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #metadata(headers: CallOptions["headers"]): Metadata {
    const metadata = new Metadata();
    try {
      for (const [name, value] of Object.entries({ ...this.#headers(), ...headers }))
        metadata.set(name, value);
    } catch (cause) {
      throw invalidHeader(cause);
    }
    return metadata;
  }

  #client(compression: Compression | undefined): Client {
    let client = this.#clients.get(compression);
    if (client === undefined) {
      client = new Client(this.#address.target, this.#address.security, {
        ...CHANNEL_OPTIONS,
        "grpc.default_compression_algorithm": compressionAlgorithms[compression ?? "identity"],
        ...this.#options.channelOptions,
      });
      this.#clients.set(compression, client);
    }
    return client;
  }
}

/** The limit that the server is told. Without one, a model with deadlines takes its own default. */
function limitOf({ givenMs }: CallDeadline): { readonly deadline?: number } {
  return givenMs === undefined ? {} : { deadline: Date.now() + givenMs };
}

function failed(error: ServiceError, deadline: CallDeadline): Attempt<never> {
  if (error.code === status.DEADLINE_EXCEEDED) return { error: deadline.expired() };
  const ended = callStatus(error);
  return { error: callError(ended), failure: failureOf(ended), retryAfterMs: ended.retryAfterMs };
}

/** The client leaves servers out by itself: grpc-js must not pause much longer, which is two minutes by default. */
const RECONNECT = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000 };

/** The carrier of one server, or of several. */
export type GrpcServers = GrpcCarrier | SeveralServers<GrpcRequest, Buffer, GrpcCarrier>;

export function openGrpcCarrier(urls: string | readonly string[], options: ClientOptions): GrpcServers {
  const forSeveral = { ...RECONNECT, ...nameOptions(urls, options), ...options.channelOptions };
  const channelOptions = areSeveral(urls) ? forSeveral : options.channelOptions;
  const open = (url: string) =>
    new GrpcCarrier(url, { ...options, ...(channelOptions && { channelOptions }) });
  return openServers<GrpcRequest, Buffer, GrpcCarrier>(urls, options, DEFAULT_GRPC_PORT, open);
}

/** Opens a stream to the server, or to one of several, which learn how it ended. */
export async function openStream<Q, R>(
  servers: GrpcServers,
  method: StreamMethod<Q, R>,
  headers: CallOptions["headers"],
  deadline: CallDeadline,
): Promise<ClientDuplexStream<Q, R>> {
  if (servers instanceof GrpcCarrier) return servers.duplex(method, headers, deadline);
  const { carrier, ended } = await servers.beginStream();
  let stream: ClientDuplexStream<Q, R>;
  try {
    stream = carrier.duplex(method, headers, deadline);
  } catch (error) {
    ended(true);
    throw error;
  }
  stream.once("status", ({ code, details }: StatusObject) => {
    ended(code === status.OK || failureOf({ code, details }) === undefined);
  });
  return stream;
}

/** Address of a server, and credentials for connections to it. */
interface ServerAddress {
  /** `localhost:8001`, or another target of grpc-js. */
  readonly target: string;
  readonly security: ChannelCredentials;
}

/**
 * Reads the address of a server: `localhost`, `localhost:8001`, `grpc://host:port`, `grpcs://host:port` for TLS, or a
 * target of grpc-js such as `unix:/path` or `ipv4:10.0.0.1:8001`.
 *
 * @throws TritonError INVALID_ARG for an invalid address or certificate.
 */
function serverAddress(url: string, tls: ClientOptions["tls"]): ServerAddress {
  const [, scheme, rest] = /^(grpcs?):\/\/(.*)$/.exec(url) ?? [undefined, undefined, url];
  if (scheme === "grpc" && tls)
    throw invalid(`tls is given for '${url}', which is not encrypted: use grpcs://, or leave tls out`);
  if (rest === undefined || rest === "" || rest.includes("@") || /^https?:|\s/.test(rest)) {
    throw invalid(`invalid url '${url}': expected host:port`);
  }
  const target = rest.replace(/\/$/, "");
  const bare = /^(?:[^:/[\]]+|\[[0-9a-fA-F:.]+\])$/.test(target);
  return {
    target: bare ? `${target}:${DEFAULT_GRPC_PORT}` : target,
    security: channelCredentials(tls ?? scheme === "grpcs"),
  };
}

function channelCredentials(tls: NonNullable<ClientOptions["tls"]>): ChannelCredentials {
  if (tls === false) return credentials.createInsecure();
  const { ca, key, cert } = tls === true ? {} : tls;
  try {
    return credentials.createSsl(buffer(ca), buffer(key), buffer(cert));
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${(cause as Error).message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
}

function buffer(pem: string | Buffer | undefined): Buffer | null {
  return typeof pem === "string" ? Buffer.from(pem) : (pem ?? null);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_OPTION" });
}
