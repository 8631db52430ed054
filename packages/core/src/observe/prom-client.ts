import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
let loaded: typeof import("prom-client") | undefined;

/**
 * Loads `prom-client` with the first metric or page, because importing it takes as long as importing the rest of the
 * library.
 */
export function promClient(): typeof import("prom-client") {
  loaded ??= require("prom-client") as typeof import("prom-client");
  return loaded;
}
