import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { posix } from "node:path";
import type { Frontend, FrontendThreads, Log } from "@tritonjs/core/internal/server";
import { errorFor } from "@tritonjs/protocol";
import { canSharePorts } from "../frontend/listen.js";
import type { ServiceFrontend } from "../frontend/service-frontend.js";

/** With fewer cores, the engine and the models need all of them. */
const LEAST_CORES = 4;

/** Three threads decode as many small requests as one engine can schedule. */
const MOST_BY_DEFAULT = 3;

/** Number of threads by the number of cores that this process may use. */
function defaultFrontendThreads(cores: number): number {
  return cores < LEAST_CORES ? 0 : Math.min(MOST_BY_DEFAULT, Math.floor(cores / 2));
}

/**
 * Moves frontends to threads: the member `place` of those that can move. Frontends that cannot be moved stay, and the log names them. With "auto", all stay if
 * threads cannot share a port here.
 *
 * @returns the frontends in the order in which they are to be opened
 * @throws TritonError UNAVAILABLE without a way to share a port; UNSUPPORTED on macOS, on Windows, and on Bun.
 */
export async function placeInThreads(
  frontends: readonly Frontend[],
  threads: FrontendThreads,
  log: Pick<Log, "warning">,
): Promise<readonly Frontend[]> {
  const count = threads === "auto" ? defaultFrontendThreads(availableCores()) : threads;
  if (count === 0) return frontends;
  const isAsked = threads !== "auto";
  // Its threads do not end while they have connections, and a dead one is not noticed.
  if (process.versions.bun !== undefined) {
    if (!isAsked) return frontends;
    throw errorFor("PLATFORM_NOT_SUPPORTED", "frontend threads: expected Node.js or Deno, got Bun");
  }
  if (!canSharePorts()) {
    if (!isAsked) return frontends;
    if (process.platform === "darwin" || process.platform === "win32") {
      const text = `frontend threads cannot share a port on ${process.platform}: they need Linux`;
      throw errorFor("PLATFORM_NOT_SUPPORTED", text);
    }
    throw errorFor(
      "PACKAGE_NOT_INSTALLED",
      "frontend threads cannot share a port here: they need Node.js 22.12 or newer, or the package 'koffi'",
    );
  }
  for (const { name, threaded } of frontends as readonly ServiceFrontend[]) {
    if (threaded === undefined && (name === "http" || name === "grpc")) {
      log.warning(
        `the ${name} frontend stays on the main thread: its options contain functions or pages, which cannot be sent to threads`,
      );
    }
  }
  // Loaded for servers with threads alone.
  const { inThreads } = await import("./index.js");
  return inThreads(frontends, count);
}

const ROOT = "/sys/fs/cgroup";

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
