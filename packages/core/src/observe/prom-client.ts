import { TritonError } from "@tritonjs/protocol";
import { unbundledRequire } from "../unbundled.js";

let loaded: typeof import("prom-client") | undefined;

/**
 * Loads `prom-client` with the first metric or page, because importing it takes as long as importing the rest of the
 * library.
 *
 * @throws TritonError UNAVAILABLE if a bundler joined this package to a file that has no `prom-client` near it
 */
export function promClient(): typeof import("prom-client") {
  loaded ??= load();
  return loaded;
}

function load(): typeof import("prom-client") {
  try {
    return unbundledRequire(import.meta.url)("prom-client") as typeof import("prom-client");
  } catch (cause) {
    const why = TritonError.from(cause).message.split("\n")[0];
    const text = `cannot load prom-client, which metrics need (${why}): install it, or make @tritonjs/* external in the bundler's options`;
    throw new TritonError("UNAVAILABLE", text, { reason: "PACKAGE_NOT_INSTALLED", cause });
  }
}
