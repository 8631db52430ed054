import { TritonError } from "@tritonjs/protocol";

/** A model may download its weights in `initialize`. The limit still detects a model that hangs. */
export const LOAD_TIMEOUT_SECONDS = 3600;

/** Triton's default. */
export const STUB_TIMEOUT_SECONDS = 30;

/** @throws TritonError UNSUPPORTED on Windows, where processes do not inherit descriptors as the stub needs */
export function assertPythonCanRun(): void {
  if (process.platform === "win32") {
    throw new TritonError("UNSUPPORTED", "Python models cannot run on Windows", {
      reason: "PLATFORM_NOT_SUPPORTED",
    });
  }
}

/** Converts parameters to the form of a configuration. */
export function configParameters(parameters: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(parameters).map(([name, stringValue]) => [name, { stringValue }]));
}
