import { createHash } from "node:crypto";
import type { Tensor } from "@tritonjs/protocol";
import type { CacheUsage } from "../observe/cache-metrics.js";
import type { PendingRequest } from "../request/pending-request.js";

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

/**
 * Computes the key of a request in the response cache: a digest of everything that the answer depends on. Triton's key
 * omits shapes, data types, requested outputs and parameters, so requests that differ in them share answers.
 *
 * @param outputs names of all outputs of the model, which answer a request that names none
 */
export function cacheKey(
  model: string,
  version: string,
  request: PendingRequest,
  outputs: readonly string[],
): string {
  const hash = createHash("sha256");
  const inputs = [...request.inputs].sort(([a], [b]) => (a < b ? -1 : 1));
  const header = {
    model,
    version,
    inputs: inputs.map(([name, { datatype, shape, byteLength }]) => [name, datatype, shape, byteLength]),
    outputs: answered(request.requestedOutputs, outputs),
    parameters: Object.entries(request.parameters)
      .map(([name, value]) => [name, typeof value, String(value)])
      .sort(([a], [b]) => (a! < b! ? -1 : 1)),
  };
  hash.update(JSON.stringify(header));
  for (const [, tensor] of inputs) hash.update(tensor.bytes);
  return hash.digest("base64");
}

/** Names of the answered outputs; empty for all of them, even if all are named. */
function answered(requested: readonly string[], all: readonly string[]): string[] {
  const named = new Set(requested);
  return named.size === all.length ? [] : [...named].sort();
}
