import type { RequestShare } from "@tritonjs/core/frontend";

/** Headers that a client sent with its call. Names are in lower case. */
export interface CallHeaders {
  /** The first value of a header. */
  get(name: string): string | undefined;
  /** All headers with text values, one entry for each value. */
  entries(): Iterable<readonly [name: string, value: string]>;
}

/** What a handler may know of the call behind its message. */
export interface Call {
  readonly headers: CallHeaders;
  /**
   * Calls `listener` once when the call is over: answered, cancelled by the client or gone with it, or past its
   * deadline. Nobody waits for an answer any more.
   */
  onClose(listener: () => void): void;
}

/** A call with a stream of responses. */
export interface ResponseStream<R> extends Call {
  /** Sends a message. Returns false when the client is behind: `onDrain` tells when it has caught up. */
  write(message: R): boolean;
  onDrain(listener: () => void): void;
  /** Ends the call; without an error its status is OK. What was written before is still delivered. */
  end(error?: Error): void;
}

/** A call with a stream of requests and a stream of responses. */
export interface DuplexStream<Q, R> extends ResponseStream<R> {
  /** Hands over each message with its share of the memory, which the listener has to release. */
  onMessage(listener: (message: Q, share: RequestShare) => void): void;
  /** The client sends no more messages. */
  onHalfClose(listener: () => void): void;
  /** Stops and resumes the delivery of messages. */
  pause(): void;
  resume(): void;
}
