import type { CollectedFamily } from "./collected-family.js";

/** Usage of a whole cache, since it was made. */
export interface CacheUsage {
  /** Share of its capacity that is in use, from 0 to 1. */
  readonly utilization: number;
  readonly entries: number;
  readonly lookups: number;
  readonly hits: number;
  readonly misses: number;
  /** Entries that were removed for lack of room. */
  readonly evictions: number;
  readonly lookupMicroseconds: number;
  readonly insertionMicroseconds: number;
}

type GaugeRow = readonly [name: string, help: string, value: keyof CacheUsage];

/** Triton's gauges by name, with its help texts. */
const GAUGES: readonly GaugeRow[] = [
  ["nv_cache_util", "Cache utilization [0.0 - 1.0]", "utilization"],
  ["nv_cache_num_entries", "Number of responses stored in response cache", "entries"],
  ["nv_cache_num_hits", "Number of cache hits in response cache", "hits"],
  ["nv_cache_num_misses", "Number of cache misses in response cache", "misses"],
  ["nv_cache_num_lookups", "Number of cache lookups in response cache", "lookups"],
  ["nv_cache_num_evictions", "Number of cache evictions in response cache", "evictions"],
  [
    "nv_cache_lookup_duration",
    "Total cache lookup duration (hit and miss), in microseconds",
    "lookupMicroseconds",
  ],
  ["nv_cache_insertion_duration", "Total cache insertion duration, in microseconds", "insertionMicroseconds"],
];

/** The metric families of the whole cache. */
export function cacheFamilies(usage: () => CacheUsage | undefined): CollectedFamily[] {
  return GAUGES.map(([name, help, value]) => ({
    name,
    help,
    type: "gauge",
    collect: () => {
      const cache = usage();
      return cache === undefined ? [] : [{ labels: {}, value: cache[value] }];
    },
  }));
}
