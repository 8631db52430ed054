import type { RequestShare } from "@tritonjs/core/frontend";

/** Headers of a call. Names are in lower case. */
export interface CallHeaders {
  /** The first value of a header. */
  get(name: string): string | undefined;
  /** All headers with text values, one entry for each value. */
  entries(): Iterable<readonly [name: string, value: string]>;
}

/** The part of a call that handlers see, besides its messages. */
export interface Call {
  readonly headers: CallHeaders;
  /** Address of the peer, if it is known. */
  readonly remoteAddress: string | undefined;
  /** True if a large message is in memory that belongs to it alone, and nothing but the handler sees it. */
  readonly ownsMessages: boolean;
  /**
   * Calls `listener` once when the call is over: answered, cancelled or abandoned by the client, or past its deadline.
   */
  onClose(listener: () => void): void;
  /** Adds metadata to the end of a successful call. Keys of bytes end in `-bin`. */
  addTrailer(name: string, value: string | Uint8Array): void;
}

/** A call with a stream of responses. */
export interface ResponseStream<R> extends Call {
  /** Sends a message. Returns false when the client reads too slowly: then wait for `onDrain`. */
  write(message: R): boolean;
  onDrain(listener: () => void): void;
  /** Ends the call; without an error its status is OK. Messages written before are still delivered. */
  end(error?: Error): void;
}

/** A call with a stream of requests and a stream of responses. */
export interface DuplexStream<Q, R> extends ResponseStream<R> {
  /** Delivers each message with its share of the memory, which the listener has to release. */
  onMessage(listener: (message: Q, share: RequestShare) => void): void;
  /** Calls the listener when the client has sent its last message. */
  onHalfClose(listener: () => void): void;
  /** Pauses the delivery of messages. */
  pause(): void;
  resume(): void;
}
