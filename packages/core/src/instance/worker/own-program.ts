import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";

/**
 * Returns the path of a program of this package that a worker runs.
 *
 * @param program its URL
 * @throws TritonError UNAVAILABLE if a bundler moved the code that looks for the program, so that it is not there
 */
export function ownProgram(program: URL): string {
  const path = fileURLToPath(program);
  if (!existsSync(path)) {
    throw new TritonError(
      "UNAVAILABLE",
      `cannot start a worker: expected its program at ${path}, got no such file. A bundler joined @tritonjs/core to ` +
        "another file: make @tritonjs/* external in the bundler's options (esbuild: --external:@tritonjs/*, " +
        "Next.js: serverExternalPackages)",
      { reason: "PACKAGE_BUNDLED" },
    );
  }
  return path;
}
