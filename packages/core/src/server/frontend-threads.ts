import { TritonError } from "@tritonjs/protocol";
import { canSharePorts } from "../frontend/bound-socket.js";
import type { Frontend } from "../frontend/frontend.js";
import type { Log } from "../observe/log/log.js";
import { importInstalled } from "../unbundled.js";
import { availableCores } from "./available-cores.js";

/** Number of threads for frontends; "auto" for a number by the number of cores. */
export type FrontendThreads = number | "auto";

const PACKAGE = "@tritonjs/frontend-threads";

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

/** @throws TritonError INVALID_ARG for a value that the option cannot have. */
export function checkFrontendThreads(threads: FrontendThreads): void {
  if (threads === "auto" || (Number.isInteger(threads) && threads >= 0 && threads <= MOST)) return;
  throw new TritonError(
    "INVALID_ARG",
    `serve({ frontendThreads }): expected "auto" or an integer from 0 to ${MOST}, got ${String(threads)}`,
    { reason: "INVALID_OPTION" },
  );
}

/** Number of threads by the number of cores that this process may use. */
export function defaultFrontendThreads(cores: number): number {
  return cores < LEAST_CORES ? 0 : Math.min(MOST_BY_DEFAULT, Math.floor(cores / 2));
}

/**
 * Moves frontends to threads. Frontends that cannot be moved stay, and the log names them. With "auto", all stay if
 * threads cannot share a port here, or the package is not installed.
 *
 * @returns the frontends in the order in which they are to be opened
 * @throws TritonError UNAVAILABLE without the package, or without a way to share a port; UNSUPPORTED on macOS and Windows.
 */
export async function placeFrontends(
  frontends: readonly Frontend[],
  threads: FrontendThreads,
  log: Pick<Log, "warning">,
): Promise<readonly Frontend[]> {
  const count = threads === "auto" ? defaultFrontendThreads(availableCores()) : threads;
  if (count === 0) return frontends;
  const isAsked = threads !== "auto";
  if (!canSharePorts()) {
    if (!isAsked) return frontends;
    if (process.platform === "darwin" || process.platform === "win32") {
      const text = `frontend threads cannot share a port on ${process.platform}: they need Linux`;
      throw new TritonError("UNSUPPORTED", text, { reason: "PLATFORM_NOT_SUPPORTED" });
    }
    throw new TritonError(
      "UNAVAILABLE",
      "frontend threads cannot share a port here: they need Node.js 22.12 or newer, or the package 'koffi'",
      { reason: "PACKAGE_NOT_INSTALLED" },
    );
  }
  const module = await importInstalled<ThreadsModule>(PACKAGE);
  if (module === undefined) {
    if (!isAsked) return frontends;
    throw new TritonError("UNAVAILABLE", `frontend threads need a package: npm install ${PACKAGE}`, {
      reason: "PACKAGE_NOT_INSTALLED",
    });
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
