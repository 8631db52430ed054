import type { CommonCallOptions, VersionOption } from "./client-options.js";

/** What is said of one model, and of waiting for it and for one's turn with it. */
export interface CommonModelOptions extends VersionOption {
  /** `false` asks for the model's configuration at once, not with the first call. @default true */
  readonly lazyInit?: boolean;
  /** Longest time for the server and the model to become ready, and for loading a model. @default 300000 */
  readonly initTimeoutMs?: number;
  /** Longest time for an inference, apart from waiting for the model and for its turn. @default 60000 */
  readonly inferenceTimeoutMs?: number;
  /** Inferences of a `ModelClient` that may be under way at once; further ones wait. @default no limit */
  readonly maxConcurrency?: number;
  /** Inferences that may wait; further ones reject with UNAVAILABLE. @default 128 */
  readonly maxQueueSize?: number;
}

/** What may end a wait. */
export interface WaitCallOptions extends Pick<CommonCallOptions, "signal"> {
  /** @default `initTimeoutMs` of the client */
  readonly timeoutMs?: number;
}

/** PyTriton's: loading a large model takes minutes. */
export const DEFAULT_INIT_TIMEOUT_MS = 300_000;

/** PyTriton's. */
export const DEFAULT_INFERENCE_TIMEOUT_MS = 60_000;

/** PyTriton's: deep enough for bursts, short enough to fail before memory does. */
export const DEFAULT_MAX_QUEUE_SIZE = 128;
