import { readFileSync } from "node:fs";
import type { ObservedInstance, ObservedModel } from "@tritonjs/core/frontend";

/** Everything about one model version, for viewers that have chosen it. */
export function detailOf({ name, namespace, version, activity }: ObservedModel): object {
  const all = activity?.();
  if (all === undefined) return { name, namespace, version };
  const { statistics, instances, ...others } = all;
  // Response statistics have up to 1024 rows and no place on the page.
  const { responseStats: _, ...counted } = statistics;
  return { name, namespace, version, ...others, statistics: counted, instances: instances.map(withMemory) };
}

/** Adds the memory of an instance with a process of its own, where the system tells it. */
function withMemory(instance: ObservedInstance): ObservedInstance {
  const { pid } = instance.details;
  if (instance.memoryBytes !== undefined || pid === undefined) return instance;
  return { ...instance, memoryBytes: residentBytes(pid) };
}

/** Bytes of a page of memory on the platforms of Node. */
const PAGE_BYTES = 4096;

function residentBytes(pid: string): number | undefined {
  if (process.platform !== "linux" || !/^\d+$/.test(pid)) return undefined;
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    // The process has just ended.
    return undefined;
  }
}
