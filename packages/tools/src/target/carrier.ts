import type { LoadRequest } from "./load-request.js";

/** Called once for each request that was sent, when it has ended. */
export type EndListener = (request: LoadRequest) => void;

/** Brings requests to one target, in one thread. It opens connections when they are needed. */
export interface LoadCarrier {
  /** Sends a request. The listener may be called before `send` returns. */
  send(request: LoadRequest): void;
  /** Ends a request in flight as failed with this text, and cancels it at the server. */
  cancel(request: LoadRequest, text: string): void;
  /** Ends all requests and connections at once, without calling the listener. */
  close(): void | Promise<void>;
  /** Bytes since the start, protocol overhead included. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** What all carriers do with responses. */
export interface ResponseHandling {
  /** Records the time of each response. */
  readonly keepResponses: boolean;
  /** Records the outputs of each response as JSON text. */
  readonly keepOutputs: boolean;
}
