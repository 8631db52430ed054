import { isMainThread } from "node:worker_threads";
import { requireKoffi } from "@tritonjs/core/internal/worker";

/** Environment variable that ONNX Runtime reads when a process opens its first session. */
const VARIABLE = "ORT_DISABLE_TELEMETRY";

/** The variable for the environment of a process that may run ONNX Runtime, unless this process decides about it. */
export function telemetryVariable(): Readonly<Record<string, string>> {
  // An empty value decides nothing.
  return { [VARIABLE]: process.env[VARIABLE] || "1" };
}

let warned = false;

/**
 * Turns ONNX Runtime's telemetry off, for all threads and for processes that this one starts, unless the environment
 * decides about it: `ORT_DISABLE_TELEMETRY=0` leaves it on. On Linux and macOS it would open a database in the user's
 * cache folder and a log in the temporary folder with the first session, and send events to Microsoft. Call it before
 * ONNX Runtime opens a session.
 */
export function disableTelemetry(): void {
  if (process.env[VARIABLE]) return;
  Object.assign(process.env, telemetryVariable());
  // The environment of another thread is a copy, which ONNX Runtime does not see. Threads of this library start after
  // the main thread has set the variable, so they have it in their copies.
  if (isMainThread || process.platform === "win32") return;
  try {
    requireKoffi().load(null).func("int setenv(const char *name, const char *value, int overwrite)")(
      VARIABLE,
      "1",
      0,
    );
  } catch {
    if (warned) return;
    warned = true;
    process.emitWarning(
      `ONNX Runtime sends telemetry to Microsoft: this thread cannot turn it off without the package 'koffi'. Set ` +
        `${VARIABLE}=1 in the environment of the program`,
      "TritonWarning",
    );
  }
}
