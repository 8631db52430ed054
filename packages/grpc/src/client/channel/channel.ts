import { setMaxListeners } from "node:events";
import {
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  compressionAlgorithms,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { decodeMessage, encodeMessage, type MessageDecoder, type MessageEncoder } from "../../proto/codec.js";
import {
  ACCESS_TOKEN_HEADER,
  type CallOptions,
  type ClientOptions,
  type Compression,
} from "../client-options.js";
import {
  cancelled,
  DEFAULT_TIMEOUT_MS,
  type RetryPolicy,
  retryDelay,
  retryPolicy,
  TritonError,
} from "../core.js";
import { onAbort, pause, throwIfAborted } from "./abort.js";
import { callError, timedOut } from "./call-error.js";
import { callStatus } from "./call-status.js";
import { failureOf } from "./failure.js";
import { type ServerAddress, serverAddress } from "./server-address.js";

/** A method of the server. */
export interface RemoteMethod<Q, R> {
  readonly path: string;
  readonly request: MessageEncoder<Q>;
  readonly response: MessageDecoder<R>;
  /** Whether calling it twice does no harm. */
  readonly idempotent: boolean;
  readonly compression?: Compression | undefined;
}

/** A stream that is open, and what ended it when a signal did. */
export interface OpenStream<Q, R> {
  readonly call: ClientDuplexStream<Q, R>;
  readonly signals: readonly (AbortSignal | undefined)[];
}

/** Messages of any size, and windows that large ones fit in. */
const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
};

/** Makes calls: metadata, deadlines, retries, and what grpc-js rejects with. */
export class Channel {
  readonly #address: ServerAddress;
  readonly #options: ClientOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #retry: RetryPolicy;
  readonly #closed = new AbortController();
  /** grpc-js compresses by channel, not by call. */
  readonly #clients = new Map<Compression | undefined, Client>();

  constructor(url: string, options: ClientOptions) {
    // Any number of calls at a time end with the client.
    setMaxListeners(0, this.#closed.signal);
    const { accessToken, headers } = options;
    this.#address = serverAddress(url, options.tls);
    this.#options = options;
    this.#headers = { ...headers, ...(accessToken !== undefined && { [ACCESS_TOKEN_HEADER]: accessToken }) };
    this.#retry = retryPolicy(options);
  }

  /** Calls a method with one request and one response. */
  async unary<Q, R>(method: RemoteMethod<Q, R>, message: Q, call: CallOptions): Promise<R> {
    this.#refuseIfClosed();
    const signals = [call.signal, this.#closed.signal];
    const timeoutMs = call.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const deadline = Date.now() + timeoutMs;
    const bytes = encodeMessage(method.request, message);
    for (let attempt = 0; ; attempt++) {
      throwIfAborted(signals);
      const outcome = await this.#attempt(method, bytes, call, deadline, signals);
      if ("response" in outcome) return outcome.response;
      const { error } = outcome;
      if (error.code === status.DEADLINE_EXCEEDED) throw timedOut(timeoutMs);
      const ended = callStatus(error);
      const hint = { retryAfterMs: ended.retryAfterMs, leftMs: deadline - Date.now() };
      const delay = retryDelay(failureOf(ended), attempt, method.idempotent, this.#retry, hint);
      if (delay === undefined) throw callError(ended);
      if (Date.now() + delay >= deadline) throw timedOut(timeoutMs);
      await pause(delay, signals);
    }
  }

  /** Opens a stream of requests and responses. It has to be read to its end, or cancelled. */
  duplex<Q, R>(method: RemoteMethod<Q, R>, call: CallOptions): OpenStream<Q, R> {
    this.#refuseIfClosed();
    const signals = [call.signal, this.#closed.signal];
    throwIfAborted(signals);
    const { timeoutMs = Number.POSITIVE_INFINITY } = call;
    const stream = this.#client(method.compression).makeBidiStreamRequest(
      method.path,
      (message: Q) => encodeMessage(method.request, message),
      (bytes) => decodeMessage(method.response, bytes),
      this.#metadata(call),
      { deadline: Date.now() + timeoutMs },
    );
    return { call: stream, signals };
  }

  /** Ends the calls in flight with CANCELLED. Later ones fail with UNAVAILABLE. */
  close(): void {
    this.#closed.abort(
      new TritonError("CANCELLED", "the client was closed", { reason: "CLIENT_CLOSED_MEANWHILE" }),
    );
    for (const client of this.#clients.values()) client.close();
  }

  #attempt<Q, R>(
    method: RemoteMethod<Q, R>,
    bytes: Buffer,
    call: CallOptions,
    deadline: number,
    signals: readonly (AbortSignal | undefined)[],
  ): Promise<{ response: R } | { error: ServiceError }> {
    return new Promise((resolve, reject) => {
      let forget = (): void => {};
      const request = this.#client(method.compression).makeUnaryRequest(
        method.path,
        (encoded: Buffer) => encoded,
        (encoded) => decodeMessage(method.response, encoded),
        bytes,
        this.#metadata(call),
        { deadline },
        (error: ServiceError | null, response?: R) => {
          forget();
          resolve(error === null ? { response: response! } : { error });
        },
      );
      forget = onAbort(signals, (reason) => {
        reject(cancelled(reason));
        request.cancel();
      });
    });
  }

  #metadata({ headers }: CallOptions): Metadata {
    const metadata = new Metadata();
    try {
      for (const [name, value] of Object.entries({ ...this.#headers, ...headers })) metadata.set(name, value);
    } catch (cause) {
      throw new TritonError("INVALID_ARG", `invalid header: ${(cause as Error).message}`, {
        reason: "INVALID_OPTION",
        cause,
      });
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

  #refuseIfClosed(): void {
    if (this.#closed.signal.aborted)
      throw new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" });
  }
}
