import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { unbundledRequire } from "../../../unbundled.js";

/** Names of ONNX Runtime's library by platform: the name that the binding of onnxruntime-node links to. */
const NAMES: Readonly<Record<string, string>> = {
  linux: "libonnxruntime.so.1",
  darwin: "libonnxruntime.1.dylib",
  win32: "onnxruntime.dll",
};

/**
 * Path of the library of ONNX Runtime inside the installed onnxruntime-node. Both engines use this one file, so a
 * process has it in memory once.
 *
 * @throws TritonError UNAVAILABLE when onnxruntime-node is not installed, or has no library for this machine
 */
export function ortLibraryFile(
  platform: string = process.platform,
  arch: string = process.arch,
  packageFile: () => string = () =>
    unbundledRequire(import.meta.url).resolve("onnxruntime-node/package.json"),
): string {
  try {
    const bin = join(dirname(packageFile()), "bin");
    for (const binding of readdirSync(bin)) {
      const folder = join(bin, binding, platform, arch);
      const file = filesOf(folder).find((one) => one === NAMES[platform]);
      if (file !== undefined) return join(folder, file);
    }
  } catch (cause) {
    throw new TritonError(
      "UNAVAILABLE",
      `cannot find onnxruntime-node (${TritonError.from(cause).message}): install it next to @tritonjs/core`,
      { reason: "PACKAGE_NOT_INSTALLED", cause },
    );
  }
  throw new TritonError(
    "UNAVAILABLE",
    `cannot find ONNX Runtime's library: expected ${NAMES[platform] ?? "a file"} in the folder bin of onnxruntime-node ` +
      `for ${platform} ${arch}, got none`,
    { reason: "PACKAGE_NOT_INSTALLED" },
  );
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
