import { TritonError } from "@tritonjs/protocol";

/** A model may fetch its weights in `initialize`; one that hangs shall be found out all the same. */
export const LOAD_TIMEOUT_SECONDS = 3600;

/** Triton's. */
export const STUB_TIMEOUT_SECONDS = 30;

/** @throws TritonError UNSUPPORTED on Windows, where descriptors are not inherited as the stub needs it */
export function assertPythonCanRun(): void {
  if (process.platform === "win32") {
    throw new TritonError("UNSUPPORTED", "Python models cannot run on Windows", {
      reason: "PLATFORM_NOT_SUPPORTED",
    });
  }
}

/** Parameters as a configuration has them. */
export function configParameters(parameters: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(parameters).map(([name, stringValue]) => [name, { stringValue }]));
}
