import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

/**
 * CPU time of this thread in milliseconds. Node tells it from version 24 on, and Linux tells it to every version. Elsewhere
 * it is the time for which the event loop was busy.
 */
export function threadCpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage !== undefined) {
    const { user, system } = threadCpuUsage.call(process);
    return (user + system) / 1000;
  }
  return linuxCpuMs() ?? performance.eventLoopUtilization().active;
}

/** The first number of the file is nanoseconds on a CPU. */
function linuxCpuMs(): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const [nanoseconds = ""] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ");
    const ms = Number(nanoseconds) / 1e6;
    return ms > 0 ? ms : undefined;
  } catch {
    return undefined;
  }
}
