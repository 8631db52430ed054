import type { CommonCallOptions, VersionOption } from "./client-options.js";

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
