import { availableParallelism } from "node:os";
import { requireKoffi } from "../koffi.js";

/*
 * Each thread takes memory from an arena of glibc's malloc, of which a process has up to eight for each processor. By
 * default glibc raises two thresholds to the largest buffer that was ever freed and to twice its size, at most 32 and
 * 64 MiB. From then on every arena keeps buffers below the first threshold, and free memory at its end up to the second.
 * After bursts of large requests a server whose workers restart would fill one arena after another with free memory.
 */

/** Parameters of `mallopt` in glibc, with the environment variables that set them. */
const THRESHOLDS = [
  /** Bytes from which a buffer is a mapping of its own. Mapping a smaller one takes too much of a request's time. */
  { parameter: -3, variable: "MALLOC_MMAP_THRESHOLD_", value: 4 * 1024 * 1024 },
  /** Bytes of free memory that an arena keeps at its end. */
  { parameter: -1, variable: "MALLOC_TRIM_THRESHOLD_", value: 8 * 1024 * 1024 },
];

/** Further threads share the arenas. No more threads than processors allocate at the same time. */
const ARENAS = { parameter: -8, variable: "MALLOC_ARENA_MAX", value: Math.max(2, availableParallelism()) };

/**
 * Limits the free memory that glibc's malloc keeps, for all threads of this process: fixes the thresholds from which it
 * is returned to the system, and limits the number of arenas. Limits in the environment stay as they are.
 *
 * @returns false if nothing was done: the environment sets both, koffi is not installed, or the C library is not glibc
 */
export function limitMalloc(environment: NodeJS.ProcessEnv): boolean {
  if (process.platform !== "linux" || environment.GLIBC_TUNABLES?.includes("glibc.malloc.")) return false;
  const isSet = ({ variable }: { variable: string }) => environment[variable] !== undefined;
  // One threshold in the environment ends glibc's own changes of both.
  const limits = [...(THRESHOLDS.some(isSet) ? [] : THRESHOLDS), ...(isSet(ARENAS) ? [] : [ARENAS])];
  if (limits.length === 0) return false;
  try {
    const mallopt = requireKoffi().load(null).func("int mallopt(int parameter, int value)");
    return limits.every(({ parameter, value }) => mallopt(parameter, value) === 1);
  } catch {
    return false;
  }
}
