import { TritonError } from "@tritonjs/protocol";
import { importUnbundled } from "../../unbundled.js";
import { disableTelemetry } from "./disable-telemetry.js";

/** The module `onnxruntime-node`. */
export type Ort = typeof import("onnxruntime-node");

/**
 * Loads `onnxruntime-node`.
 *
 * @throws TritonError UNAVAILABLE when it is not installed, or does not load on this machine
 */
export async function importOnnxRuntime(): Promise<Ort> {
  disableTelemetry();
  try {
    return await importUnbundled<Ort>("onnxruntime-node");
  } catch (error) {
    throw new TritonError(
      "UNAVAILABLE",
      `cannot load onnxruntime-node (${TritonError.from(error).message}): install it next to @tritonjs/core`,
      { reason: "PACKAGE_NOT_INSTALLED", cause: error },
    );
  }
}
