import {
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  compressionAlgorithms,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { onAbort } from "@tritonjs/protocol";
import type { Attempt, Carrier, OutgoingCall } from "../../call/carrier.js";
import type { CallDeadline } from "../../call/deadline.js";
import { type Compression, clientHeaders, invalidHeader } from "../../options/client-options.js";
import { ACCESS_TOKEN_HEADER, type CallOptions, type ClientOptions } from "../client-options.js";

import { callError } from "./call-error.js";
import { callStatus } from "./call-status.js";
import { failureOf } from "./failure.js";
import { type ServerAddress, serverAddress } from "./server-address.js";

/** A request over gRPC. Request and answer are encoded messages. */
export interface GrpcRequest extends OutgoingCall {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly bytes: Buffer;
  readonly headers: CallOptions["headers"];
  readonly compression: Compression | undefined;
}

/** A method of a stream, with its codec. */
export interface StreamMethod<Q, R> {
  readonly path: string;
  readonly encode: (message: Q) => Buffer;
  readonly decode: (bytes: Buffer) => R;
  readonly compression: Compression | undefined;
}

/** A carrier that also opens streams: to one server, or to one of several. */
export interface StreamCarrier extends Carrier<GrpcRequest, Buffer> {
  /** Opens a stream of requests and responses. The caller must read it to its end, or cancel it. */
  duplex<Q, R>(
    method: StreamMethod<Q, R>,
    headers: CallOptions["headers"],
    deadline: CallDeadline,
  ): ClientDuplexStream<Q, R> | Promise<ClientDuplexStream<Q, R>>;
}

/** Messages of any size, and windows that are large enough for tensors. */
const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
};

const asIs = (bytes: Buffer): Buffer => bytes;

/** Sends requests with grpc-js. */
export class GrpcCarrier implements StreamCarrier {
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
        { deadline: Date.now() + deadline.leftMs },
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
      { deadline: Date.now() + deadline.leftMs },
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

function failed(error: ServiceError, deadline: CallDeadline): Attempt<never> {
  if (error.code === status.DEADLINE_EXCEEDED) return { error: deadline.expired() };
  const ended = callStatus(error);
  return { error: callError(ended), failure: failureOf(ended), retryAfterMs: ended.retryAfterMs };
}
