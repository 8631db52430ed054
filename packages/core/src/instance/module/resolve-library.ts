import { existsSync } from "node:fs";
import nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveNow } from "./library-hooks.js";

/** Synchronous hooks, which newer versions of Node have besides `register`. */
interface SynchronousHooks {
  registerHooks?(hooks: { readonly resolve: typeof resolveNow }): void;
}

/**
 * Lets a module without `@tritonjs/core` in a `node_modules` above it import the running copy, and that copy's
 * `@tritonjs/protocol`. For the library's own threads and processes, because it affects all their modules.
 *
 * @param module URL of the module
 */
export function resolveLibrary(module: string): void {
  if (finds(module)) return;
  const { registerHooks } = nodeModule as SynchronousHooks;
  if (registerHooks !== undefined) registerHooks({ resolve: resolveNow });
  else nodeModule.register?.(new URL("./library-hooks.js", import.meta.url));
}

/** Searches like Node does for packages of ES modules; `require` would also search NODE_PATH. */
function finds(module: string): boolean {
  if (!module.startsWith("file:")) return true;
  for (let path = fileURLToPath(module); path !== dirname(path); path = dirname(path)) {
    if (existsSync(join(dirname(path), "node_modules", "@tritonjs", "core", "package.json"))) return true;
  }
  return false;
}
