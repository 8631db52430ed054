import { TritonError } from "@tritonjs/protocol";
import type { DefaultFrontends, Frontend, ServeOptions, WebPages } from "../frontend/frontend.js";
import { importInstalled } from "../unbundled.js";

/** Packages that `serve()` looks for, and the option that switches each off. */
const PACKAGES = [
  { name: "@tritonjs/http", wanted: (options: ServeOptions) => options.allowHttp || options.allowMetrics },
  { name: "@tritonjs/grpc", wanted: (options: ServeOptions) => options.allowGrpc },
] as const;

const DASHBOARD = "@tritonjs/dashboard";

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
    throw new TritonError("UNSUPPORTED", `serve() has no frontend: ${what}, or pass serve({ frontends })`, {
      reason: "NO_FRONTEND",
    });
  }
  return frontends;
}

async function loadDashboard(): Promise<WebPages> {
  const module = await importInstalled<{ dashboard(): WebPages }>(DASHBOARD);
  if (module !== undefined) return module.dashboard();
  throw new TritonError("UNSUPPORTED", `the option dashboard needs a package: install ${DASHBOARD}`, {
    reason: "NO_FRONTEND",
  });
}
