import type { Tensor } from "@tritonjs/protocol";
import type { CacheUsage } from "../observe/cache-metrics.js";

/** Outputs by name, in the model's order. */
export type CachedOutputs = ReadonlyMap<string, Tensor>;

/**
 * Keeps the outputs of requests by key. One cache serves all models of a Triton that ask for it, synchronously or not.
 * A failing cache fails no request: a failed lookup makes the request run, and outputs that cannot be stored are
 * dropped.
 */
export interface ResponseCache {
  get(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined>;
  /** @param byteSize bytes of the outputs */
  set(key: string, outputs: CachedOutputs, byteSize: number): void | Promise<void>;
  /** Size of the whole cache for the metrics page. @default nothing */
  usage?(): CacheUsage;
  /** Longest lookup in milliseconds. After it the lookup counts as failed, and the request runs. @default any time */
  readonly lookupTimeoutMs?: number;
  /** Releases all resources of the cache. Called by `close()` of its Triton. */
  close?(): void | Promise<void>;
}
