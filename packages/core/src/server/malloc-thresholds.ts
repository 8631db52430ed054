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
  { parameter: -3, variable: "MALLOC_MMAP_THRESHOLD_", bytes: 4 * 1024 * 1024 },
  /** Bytes of free memory that an arena keeps at its end. */
  { parameter: -1, variable: "MALLOC_TRIM_THRESHOLD_", bytes: 8 * 1024 * 1024 },
] as const;

/**
 * Fixes the thresholds from which glibc's malloc returns freed memory to the system, for all threads of this process.
 *
 * @returns false if nothing was done: the environment sets a threshold, koffi is not installed, or the C library is not
 * glibc
 */
export function fixMallocThresholds(environment: NodeJS.ProcessEnv): boolean {
  if (process.platform !== "linux") return false;
  if (THRESHOLDS.some(({ variable }) => environment[variable] !== undefined)) return false;
  if (environment.GLIBC_TUNABLES?.includes("glibc.malloc.")) return false;
  try {
    const mallopt = requireKoffi().load(null).func("int mallopt(int parameter, int value)");
    return THRESHOLDS.every(({ parameter, bytes }) => mallopt(parameter, bytes) === 1);
  } catch {
    return false;
  }
}
