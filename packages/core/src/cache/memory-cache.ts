import { LRUCache } from "lru-cache";
import type { Clock } from "../clock/clock.js";
import type { CacheUsage } from "../observe/cache-metrics.js";
import type { CachedOutputs, ResponseCache } from "./response-cache.js";

/** Bytes of an entry besides its tensors: key, map, shapes. */
const ENTRY_OVERHEAD_BYTES = 256;

/** A cache in memory, with eviction of the least recently used entries at its byte size. */
export class MemoryCache implements ResponseCache {
  readonly #byteSize: number;
  readonly #clock: Clock;
  readonly #entries: LRUCache<string, { outputs: CachedOutputs; byteSize: number }>;
  #lookups = 0;
  #hits = 0;
  #evictions = 0;
  #lookupMs = 0;
  #insertionMs = 0;

  constructor(byteSize: number, clock: Clock) {
    this.#byteSize = byteSize;
    this.#clock = clock;
    this.#entries = new LRUCache({
      maxSize: byteSize,
      sizeCalculation: (entry) => entry.byteSize + ENTRY_OVERHEAD_BYTES,
      dispose: (_, __, reason) => {
        if (reason === "evict") this.#evictions++;
      },
    });
  }

  get(key: string): CachedOutputs | undefined {
    const start = this.#clock.now();
    const entry = this.#entries.get(key);
    this.#lookups++;
    if (entry !== undefined) this.#hits++;
    this.#lookupMs += this.#clock.now() - start;
    return entry?.outputs;
  }

  set(key: string, outputs: CachedOutputs, byteSize: number): void {
    const start = this.#clock.now();
    this.#entries.set(key, { outputs, byteSize });
    this.#insertionMs += this.#clock.now() - start;
  }

  usage(): CacheUsage {
    return {
      utilization: this.#entries.calculatedSize / this.#byteSize,
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
