import { LRUCache } from "lru-cache";
import type { CachedOutputs, ResponseCache } from "./response-cache.js";

/** Bytes that an entry takes besides its tensors: key, map, shapes. */
const ENTRY_OVERHEAD_BYTES = 256;

/** A cache in memory: the least recently used entries go when the byte size is reached. */
export function memoryCache(byteSize: number): ResponseCache {
  const entries = new LRUCache<string, { outputs: CachedOutputs; byteSize: number }>({
    maxSize: byteSize,
    sizeCalculation: (entry) => entry.byteSize + ENTRY_OVERHEAD_BYTES,
  });
  return {
    get: (key) => entries.get(key)?.outputs,
    set: (key, outputs, size) => {
      entries.set(key, { outputs, byteSize: size });
    },
  };
}
