import type { Tensor } from "@tritonjs/protocol";
import { LRUCache } from "lru-cache";
import { createHash } from "#host";
import type { CacheUsage } from "../observe/model-families.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { Clock, Timer } from "../system/clock.js";

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
  /**
   * Longest lookup in milliseconds. After it the lookup counts as failed, the request runs, and the cache is left alone
   * until it answers again. @default any time
   */
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
  request: InferenceRequest,
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

/** Bytes of an entry besides its tensors: key, map, shapes. */
const ENTRY_OVERHEAD_BYTES = 256;

/** A cache in memory, with eviction of the least recently used entries at its byte size. */
export class MemoryCache implements ResponseCache {
  readonly #entries: LRUCache<string, { outputs: CachedOutputs; byteSize: number }>;
  #lookups = 0;
  #hits = 0;
  #evictions = 0;
  #lookupMs = 0;
  #insertionMs = 0;

  constructor(
    private readonly byteSize: number,
    private readonly clock: Clock,
  ) {
    this.#entries = new LRUCache({
      maxSize: byteSize,
      sizeCalculation: (entry) => entry.byteSize + ENTRY_OVERHEAD_BYTES,
      dispose: (_, __, reason) => {
        if (reason === "evict") this.#evictions++;
      },
    });
  }

  get(key: string): CachedOutputs | undefined {
    const start = this.clock.now();
    const entry = this.#entries.get(key);
    this.#lookups++;
    if (entry !== undefined) this.#hits++;
    this.#lookupMs += this.clock.now() - start;
    return entry?.outputs;
  }

  set(key: string, outputs: CachedOutputs, byteSize: number): void {
    const start = this.clock.now();
    this.#entries.set(key, { outputs, byteSize });
    this.#insertionMs += this.clock.now() - start;
  }

  usage(): CacheUsage {
    return {
      utilization: this.#entries.calculatedSize / this.byteSize,
      entries: this.#entries.size,
      lookups: this.#lookups,
      hits: this.#hits,
      misses: this.#lookups - this.#hits,
      evictions: this.#evictions,
      lookupMicroseconds: Math.floor(1000 * this.#lookupMs),
      insertionMicroseconds: Math.floor(1000 * this.#insertionMs),
    };
  }
}

/** Pauses between the probes of a cache that does not answer: the first, and the longest. */
const FIRST_PROBE_MS = 1000;
const LONGEST_PROBE_MS = 30_000;

/**
 * A cache that may hang, such as one in another process. After a lookup that took too long, requests run without the
 * cache, and do not wait for it. Probes in the background find out when it answers again.
 */
export class GuardedCache {
  /** Number of lookups that were not made, because the cache did not answer. */
  skipped = 0;
  #isSuspended = false;
  #probe: Timer | undefined;

  constructor(
    private readonly cache: ResponseCache,
    private readonly clock: Clock,
  ) {}

  get lookupTimeoutMs(): number | undefined {
    return this.cache.lookupTimeoutMs;
  }

  /** Whether requests run without the cache at present. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  get(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined> {
    if (!this.#isSuspended) return this.cache.get(key);
    this.skipped++;
    return undefined;
  }

  set(key: string, outputs: CachedOutputs, byteSize: number): void | Promise<void> {
    if (!this.#isSuspended) return this.cache.set(key, outputs, byteSize);
  }

  usage(): CacheUsage | undefined {
    return this.cache.usage?.();
  }

  /** A lookup has taken longer than {@link lookupTimeoutMs}. */
  timedOut(): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#sendProbe(FIRST_PROBE_MS);
  }

  close(): void | Promise<void> {
    this.#probe?.cancel();
    return this.cache.close?.();
  }

  /** Asks the cache for an entry, and again after a pause unless it answers. A late answer counts too. */
  #sendProbe(pauseMs: number): void {
    const resume = () => {
      this.#isSuspended = false;
      this.#probe?.cancel();
    };
    this.#probe = this.clock.setTimer(pauseMs, () =>
      this.#sendProbe(Math.min(LONGEST_PROBE_MS, 2 * pauseMs)),
    );
    // A cache that fails at once, for example without a connection, keeps no request waiting.
    new Promise((resolve) => resolve(this.cache.get("probe"))).then(resume, resume);
  }
}
