import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import type { DefaultFrontends, Frontend, ServeOptions } from "../frontend/frontend.js";
import { importUnbundled, unbundledRequire } from "../unbundled.js";

/** Packages that `serve()` looks for, and the option that switches each off. */
const PACKAGES = [
  { name: "@tritonjs/http", wanted: (options: ServeOptions) => options.allowHttp || options.allowMetrics },
  { name: "@tritonjs/grpc", wanted: (options: ServeOptions) => options.allowGrpc },
] as const;

/**
 * Loads the frontends of `serve()` without arguments: the frontends of the installed packages.
 *
 * @throws TritonError UNSUPPORTED that names the packages to install, if none is installed.
 */
export async function loadDefaultFrontends(options: ServeOptions): Promise<Frontend[]> {
  const frontends: Frontend[] = [];
  const missing: string[] = [];
  for (const { name, wanted } of PACKAGES) {
    if (!wanted(options)) continue;
    const module = await importInstalled(name);
    if (module === undefined) missing.push(name);
    else frontends.push(...module.defaultFrontends(options));
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

/** Imports a package as this package would resolve it, or else as the program would. */
async function importInstalled(name: string): Promise<{ defaultFrontends: DefaultFrontends } | undefined> {
  const program = process.argv[1] === undefined ? [] : [pathToFileURL(process.argv[1]).href];
  for (const from of [import.meta.url, ...program, pathToFileURL(join(process.cwd(), "package.json")).href]) {
    const found = resolveFrom(from, name);
    if (found !== undefined) return importUnbundled(pathToFileURL(found).href);
  }
  return undefined;
}

function resolveFrom(from: string, name: string): string | undefined {
  try {
    return unbundledRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
