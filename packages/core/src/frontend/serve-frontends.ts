import { errorFor } from "@tritonjs/protocol";
import { importInstalled } from "../optional-packages.js";
import type { Frontend, FrontendAddress, FrontendServer, FrontendThreads } from "./frontend.js";

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

/** Export `defaultFrontends` of a frontend package, for `serve()` without arguments. */
export type DefaultFrontends = (options: ServeOptions) => Frontend[] | Promise<Frontend[]>;

/** Result of `serve`. */
export interface ServeResult {
  /** Address of each frontend by its name: `http`, `grpc`, `metrics`. */
  readonly addresses: Readonly<Record<string, FrontendAddress>>;
}

/** Opens frontends one after the other. If one cannot be opened, the others are closed again. */
export async function openFrontends(
  frontends: readonly Frontend[],
  server: FrontendServer,
): Promise<ServeResult> {
  const addresses: Record<string, FrontendAddress> = {};
  const started: Frontend[] = [];
  try {
    for (const frontend of frontends) {
      started.push(frontend);
      addresses[frontend.name] = await frontend.start(server);
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

/**
 * Loads the frontends of `serve()` without arguments: the frontends of the installed packages.
 *
 * @throws TritonError UNSUPPORTED that names the packages to install, if none is installed, or if the dashboard is wanted
 * and not installed.
 */
export async function loadDefaultFrontends(options: ServeOptions): Promise<Frontend[]> {
  const frontends: Frontend[] = [];
  const missing: string[] = [];
  for (const { name, wanted } of PACKAGES) {
    if (!wanted(options)) continue;
    const module = await importInstalled<{ defaultFrontends: DefaultFrontends }>(name);
    if (module === undefined) missing.push(name);
    else frontends.push(...(await module.defaultFrontends(options)));
  }
  if (options.dashboard && missing.includes("@tritonjs/http")) {
    throw errorFor("NO_FRONTEND", "the option dashboard needs a package: install @tritonjs/http");
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

/** Each thread takes 20 to 40 MB, and no machine has use for more. */
const MOST = 128;

export function checkFrontendThreads(threads: FrontendThreads): void {
  if (threads === "auto" || (Number.isInteger(threads) && threads >= 0 && threads <= MOST)) return;
  throw errorFor(
    "INVALID_OPTION",
    `serve({ frontendThreads }): expected "auto" or an integer from 0 to ${MOST}, got ${String(threads)}`,
  );
}
