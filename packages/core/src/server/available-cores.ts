import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { posix } from "node:path";

const ROOT = "/sys/fs/cgroup";

/** Reads a small file; undefined for one that does not exist. */
type ReadText = (path: string) => string | undefined;

/**
 * Number of processor cores that this process may keep busy: those that it may run on, and no more than the quota of
 * its container. Node before 24 does not see the quota, so on a large machine a container of one core would look large.
 */
export function availableCores(read: ReadText = readText, cores = availableParallelism()): number {
  return Math.max(1, Math.min(cores, Math.floor(quotaOfGroups(read))));
}

/** Least quota of the control groups of this process and of the groups around them, in cores. */
function quotaOfGroups(read: ReadText): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const isSecond = controllers === "";
    if (!isSecond && !controllers.split(",").includes("cpu")) continue;
    const mount = isSecond ? ROOT : `${ROOT}/${controllers}`;
    for (let at = path; ; at = posix.dirname(at)) {
      least = Math.min(least, quotaOf(posix.join(mount, at), isSecond, read));
      if (posix.dirname(at) === at) break;
    }
  }
  return least;
}

/** Quota of one group, as the second or the first version of control groups has it. */
function quotaOf(folder: string, isSecond: boolean, read: ReadText): number {
  const texts = isSecond
    ? (read(posix.join(folder, "cpu.max")) ?? "").split(" ")
    : ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map((name) => read(posix.join(folder, name)));
  const [quota, period] = texts.map(Number);
  return quota! > 0 && period! > 0 ? quota! / period! : Number.POSITIVE_INFINITY;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
