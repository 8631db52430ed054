import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { posix } from "node:path";
import { errorFor } from "@tritonjs/protocol";
import type { Log } from "../observe/log.js";
import { importInstalled } from "../optional-packages.js";
import type { InferenceService } from "../service/inference-service.js";
import { canSharePorts, type ListenAt } from "./listen.js";

/** Where a frontend listens. */
export interface FrontendAddress {
  readonly host: string;
  readonly port: number;
  /** Address for clients: `http://localhost:8000`, `localhost:8001`. */
  readonly url: string;
}

/** How another thread can make the same frontend. */
export interface ThreadedFrontend {
  /** URL of a module, and the name of its function that makes the frontend from the options. */
  readonly module: string;
  readonly name: string;
  /** Options of the frontend, which can be cloned, with `port`, `address` and `reusePort`. */
  readonly options: ThreadedFrontendOptions;
  /** How to listen at its port, besides the options. */
  readonly listening: Pick<ListenAt, "portHint" | "joinsFamilies">;
  /** Makes the error of this thread for a failure to open; the failure itself unless given. */
  readonly startError?: (failure: unknown) => unknown;
}

/** Options of every frontend that can run in another thread. */
export interface ThreadedFrontendOptions {
  readonly port: number;
  readonly address: string;
  readonly reusePort: boolean;
}

/** A transport in front of the service. It owns its sockets and nothing else. */
export interface Frontend {
  /** Name in messages: `http`, `grpc` or `metrics`. */
  readonly name: string;
  /** How to make this frontend in another thread; undefined if it can run only in this one. */
  readonly threaded?: ThreadedFrontend | undefined;
  /** Starts to listen. If the port is taken, rejects with a `TritonError` that names the port and its option. */
  start(service: InferenceService): Promise<FrontendAddress>;
  /** Tells clients to leave, before {@link stop}: connections end after their next answer, new ones are accepted. */
  leave?(): void;
  /**
   * Accepts no more connections. Resolves when requests that are on their way over connections that were just opened have
   * arrived. Called between {@link leave} and {@link stop}, while the service still accepts requests.
   */
  settle?(): Promise<void>;
  /**
   * Drains the frontend. It accepts no more connections, and ends connections without a request in flight. Resolves
   * when the requests in flight are answered. If `drainTimeoutMs` is given, it ends them after that time. Calling it
   * twice is harmless.
   */
  stop(drainTimeoutMs?: number): Promise<void>;
}

/** Which default frontends to open, and where. Port 0 takes any free one. */
export interface ServeOptions {
  readonly allowHttp: boolean;
  readonly httpAddress: string;
  readonly httpPort: number;
  /** Largest size of a request body in bytes, before and after decompression. */
  readonly httpMaxInputSize: number;
  readonly allowGrpc: boolean;
  readonly grpcAddress: string;
  readonly grpcPort: number;
  /** Largest size of a gRPC message in bytes, before and after decompression. */
  readonly grpcMaxReceiveMessageSize: number;
  readonly allowMetrics: boolean;
  readonly metricsAddress: string;
  readonly metricsPort: number;
  /**
   * Whether the dashboard of `@tritonjs/http/dashboard` is served: at `/dashboard` on the metrics port, or on the HTTP port
   * if there are no metrics. The path `/` of the HTTP port then points to it. @default false
   */
  readonly dashboard?: boolean;
}

/** Pages for people, which a frontend serves besides its own answers. */
export interface WebPages {
  /** Prefix of the paths of all pages: `/dashboard`. */
  readonly path: string;
  /** Where a frontend serves them. Set by that frontend when it starts, for others that point there. */
  servedAt?: FrontendAddress;
  /** Makes the handler of all paths below `path`. */
  open(service: InferenceService): (request: Request) => Promise<Response>;
}

/** Export `defaultFrontends` of a frontend package, for `serve()` without arguments. */
export type DefaultFrontends = (options: ServeOptions, pages?: WebPages) => Frontend[];

/** Result of `serve`. */
export interface ServeResult {
  /** Address of each frontend by its name: `http`, `grpc`, `metrics`. */
  readonly addresses: Readonly<Record<string, FrontendAddress>>;
}

/** Opens frontends one after the other. If one cannot be opened, the others are closed again. */
export async function openFrontends(
  frontends: readonly Frontend[],
  service: InferenceService,
): Promise<ServeResult> {
  const addresses: Record<string, FrontendAddress> = {};
  const started: Frontend[] = [];
  try {
    for (const frontend of frontends) {
      started.push(frontend);
      addresses[frontend.name] = await frontend.start(service);
    }
  } catch (error) {
    await Promise.allSettled(started.map((frontend) => frontend.stop(0)));
    throw error;
  }
  return { addresses };
}

/** Packages that `serve()` looks for, and the option that switches each off. */
const PACKAGES = [
  { name: "@tritonjs/http", wanted: (options: ServeOptions) => options.allowHttp || options.allowMetrics },
  { name: "@tritonjs/grpc", wanted: (options: ServeOptions) => options.allowGrpc },
] as const;

const DASHBOARD = "@tritonjs/http/dashboard";

/**
 * Loads the frontends of `serve()` without arguments: the frontends of the installed packages.
 *
 * @throws TritonError UNSUPPORTED that names the packages to install, if none is installed, or if the dashboard is wanted
 * and not installed.
 */
export async function loadDefaultFrontends(options: ServeOptions): Promise<Frontend[]> {
  const pages = options.dashboard ? await loadDashboard() : undefined;
  const frontends: Frontend[] = [];
  const missing: string[] = [];
  for (const { name, wanted } of PACKAGES) {
    if (!wanted(options)) continue;
    const module = await importInstalled<{ defaultFrontends: DefaultFrontends }>(name);
    if (module === undefined) missing.push(name);
    else frontends.push(...module.defaultFrontends(options, pages));
  }
  if (frontends.length === 0) {
    const what =
      missing.length === 0
        ? "all frontends are switched off; switch one on"
        : `install one of ${missing.join(", ")}`;
    throw errorFor("NO_FRONTEND", `serve() has no frontend: ${what}, or pass serve({ frontends })`);
  }
  return frontends;
}

async function loadDashboard(): Promise<WebPages> {
  const module = await importInstalled<{ dashboard(): WebPages }>(DASHBOARD);
  if (module !== undefined) return module.dashboard();
  throw errorFor("NO_FRONTEND", `the option dashboard needs a package: install ${DASHBOARD}`);
}

/** Number of threads for frontends; "auto" for a number by the number of cores. */
export type FrontendThreads = number | "auto";

const PACKAGE = "@tritonjs/core/frontend-threads";

/** With fewer cores, the engine and the models need all of them. */
const LEAST_CORES = 4;

/** Three threads decode as many small requests as one engine can schedule. */
const MOST_BY_DEFAULT = 3;

/** Each thread takes 20 to 40 MB, and no machine has use for more. */
const MOST = 128;

/** The export of the package of threads. */
interface ThreadsModule {
  inThreads(frontends: readonly Frontend[], count: number): Frontend[];
}

export function checkFrontendThreads(threads: FrontendThreads): void {
  if (threads === "auto" || (Number.isInteger(threads) && threads >= 0 && threads <= MOST)) return;
  throw errorFor(
    "INVALID_OPTION",
    `serve({ frontendThreads }): expected "auto" or an integer from 0 to ${MOST}, got ${String(threads)}`,
  );
}

/** Number of threads by the number of cores that this process may use. */
function defaultFrontendThreads(cores: number): number {
  return cores < LEAST_CORES ? 0 : Math.min(MOST_BY_DEFAULT, Math.floor(cores / 2));
}

/**
 * Moves frontends to threads. Frontends that cannot be moved stay, and the log names them. With "auto", all stay if
 * threads cannot share a port here, or the package is not installed.
 *
 * @returns the frontends in the order in which they are to be opened
 * @throws TritonError UNAVAILABLE without the package, or without a way to share a port; UNSUPPORTED on macOS, on Windows, and on
 * Bun.
 */
export async function placeFrontends(
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
  const module = await importInstalled<ThreadsModule>(PACKAGE);
  if (module === undefined) {
    if (!isAsked) return frontends;
    throw errorFor("PACKAGE_NOT_INSTALLED", `frontend threads need a package: npm install ${PACKAGE}`);
  }
  for (const { name, threaded } of frontends) {
    if (threaded === undefined && (name === "http" || name === "grpc")) {
      log.warning(
        `the ${name} frontend stays on the main thread: its options contain functions or pages, which cannot be sent to threads`,
      );
    }
  }
  return module.inThreads(frontends, count);
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
