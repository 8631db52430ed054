import type { OnnxRuntimeOptions } from "@tritonjs/core/onnxruntime";

/** Limits of a decoder. */
export interface DecoderLimits {
  /**
   * Largest number of requests that generate text together in an instance. Others wait in the model's queue.
   *
   * @default 32
   */
  readonly maxRunningRequests?: number | undefined;
  /**
   * Bytes for keys and values in an instance. A step has them twice, before and after it, and both count.
   * @default enough for `maxRunningRequests` whole contexts, but at most a quarter of the machine's memory
   */
  readonly kvCacheBytes?: number | undefined;
  /** Largest number of prompt tokens in a step, so that running texts go on meanwhile. @default 256 */
  readonly prefillTokens?: number | undefined;
  /** Keeps keys and values of prompts for later prompts that begin alike, while there is room. @default true */
  readonly prefixCache?: boolean | undefined;
  /** Tokens of a prompt and its text together. @default `max_position_embeddings` of `config.json` */
  readonly contextLength?: number | undefined;
}

/** Options of {@link textGeneration}: the model, its limits, and those of its ONNX session. */
export interface TextGenerationOptions extends DecoderLimits, Omit<OnnxRuntimeOptions, "model"> {
  /** Directory of the model, as Hugging Face Optimum exports it. */
  readonly directory: string | URL;
}

/** Defaults of {@link DecoderLimits}. */
export const DECODER_DEFAULTS = {
  /** A step costs little more for many texts than for one. Above this, the time of a step grows with each text. */
  maxRunningRequests: 32,
  /** Some tens of milliseconds for a small model on a CPU. */
  prefillTokens: 256,
  prefixCache: true,
};
