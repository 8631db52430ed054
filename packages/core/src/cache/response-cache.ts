import type { Tensor } from "@tritonjs/protocol";
import type { CacheUsage } from "../observe/cache-metrics.js";

/** Outputs by name, in the model's order. */
export type CachedOutputs = ReadonlyMap<string, Tensor>;

/**
 * Keeps the outputs of requests by key. One cache serves all models of a Triton that ask for it. It may answer at once or
 * later. Whatever goes wrong in it, no request fails: one that cannot be looked up runs, outputs that cannot be kept are
 * not.
 */
export interface ResponseCache {
  get(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined>;
  /** @param byteSize bytes that the outputs hold */
  set(key: string, outputs: CachedOutputs, byteSize: number): void | Promise<void>;
  /** What the metrics page says of the whole cache. @default nothing */
  usage?(): CacheUsage;
  /** A lookup that takes longer counts as failed; the request runs. @default any time */
  readonly lookupTimeoutMs?: number;
  /** Lets go of what the cache holds. Called by `close()` of its Triton. */
  close?(): void | Promise<void>;
}
