import { type InstanceHosting, type Isolation, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { hostingProblems } from "../config/options/instance-hosting.js";

import type { ModelSource } from "../instance/backend.js";

/**
 * Reads where a model of a repository runs and its limits. They are the parameters `isolation` (`worker` or `process`),
 * `heap_limit_mb` and `execution_timeout_ms` of its configuration, or settings of its backend by the same names with
 * hyphens. A backend adds them to `hosting` of the context of `createExecutor`, which takes precedence.
 *
 * @param possible where the backend can run the model, the default first
 * @param isNative true for native code, which cannot be interrupted in a thread
 * @throws TritonError INVALID_ARG for invalid values
 * @example
 * ```ts
 * const greeting: BackendFactory = (source) => {
 *   const hosting = hostingOf(source, ["worker", "process"], false);
 *   return {
 *     ...backend,
 *     createExecutor: (context) =>
 *       workerExecutor(program, { ...context, hosting: { ...hosting, ...context.hosting } }),
 *   };
 * };
 * ```
 */
export function hostingOf(
  { config, settings }: Pick<ModelSource, "config" | "settings">,
  possible: readonly Isolation[],
  isNative: boolean,
): InstanceHosting {
  const text = (key: string) => textOf(config, settings, key);
  const isolation = text("isolation");
  const heapLimitMb = text("heap_limit_mb");
  const executionTimeoutMs = text("execution_timeout_ms");
  const hosting: InstanceHosting = {
    ...(isolation === undefined ? {} : { isolation: isolation as Isolation }),
    ...(heapLimitMb === undefined ? {} : { heapLimitMb: Number(heapLimitMb) }),
    ...(executionTimeoutMs === undefined ? {} : { executionTimeoutMs: Number(executionTimeoutMs) }),
  };
  const problems = hostingProblems(`model '${config.name}'`, hosting, possible, isNative);
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("; "), { reason: "INVALID_CONFIG" });
  return hosting;
}

/**
 * Milliseconds that an instance may take to load: the parameter `load_timeout_seconds`, or the setting
 * `load-timeout-seconds` of the backend.
 *
 * @throws TritonError INVALID_ARG unless the value is a number above 0
 */
export function loadTimeoutMs(
  { config, settings }: Pick<ModelSource, "config" | "settings">,
  defaultSeconds: number,
): number {
  const text = textOf(config, settings, "load_timeout_seconds");
  const seconds = text === undefined ? defaultSeconds : Number(text);
  if (seconds > 0 && seconds < 2 ** 31 / 1000) return seconds * 1000;
  throw new TritonError(
    "INVALID_ARG",
    `parameter 'load_timeout_seconds' of model '${config.name}': expected a number above 0, got '${text}'`,
    { reason: "INVALID_CONFIG" },
  );
}

function textOf(
  { parameters }: ModelConfig,
  settings: Readonly<Record<string, string>>,
  key: string,
): string | undefined {
  return parameters[key]?.stringValue ?? settings[key.replaceAll("_", "-")];
}
