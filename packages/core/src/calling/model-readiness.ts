import { errorWithoutStack, type InferOptions, TritonError, timeoutError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";

import type { ModelVersion } from "../model/model-version.js";

/** Makes the error of a request that its caller has cancelled: an `AbortError` with the abort reason as its cause. */
export function cancelledError(signal: AbortSignal): TritonError {
  return errorWithoutStack("CANCELLED", "the request was cancelled", {
    name: "AbortError",
    cause: signal.reason,
  });
}

/**
 * Waits until a loading model is ready, or the caller cancels.
 *
 * @throws TritonError UNAVAILABLE for a model that is not served or takes too long, CANCELLED when `signal` aborts.
 */
export async function awaitReady(
  model: ModelVersion,
  clock: Clock,
  { signal, timeoutMs }: InferOptions,
): Promise<void> {
  if (model.state === "LOADING") await untilGivenUp(model.ready, clock, signal, timeoutMs);
  if (model.state === "UNAVAILABLE") {
    throw new TritonError(
      "UNAVAILABLE",
      `model '${model.name}' version ${model.version} is not ready: ${model.reason || model.state.toLowerCase()}`,
      { reason: "MODEL_NOT_READY" },
    );
  }
}

/**
 * True for a finite time limit.
 *
 * @throws TritonError INVALID_ARG for a value that is not a number, from callers without TypeScript
 */
export function isLimited(timeoutMs: number | undefined): timeoutMs is number {
  if (timeoutMs === undefined) return false;
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs < Number.POSITIVE_INFINITY;
  const got = typeof timeoutMs === "number" ? "NaN" : timeoutMs === null ? "null" : typeof timeoutMs;
  throw new TritonError("INVALID_ARG", `timeoutMs: expected a number of milliseconds, got ${got}`, {
    reason: "INVALID_OPTION",
  });
}

function untilGivenUp(
  ready: Promise<void>,
  clock: Clock,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(timeoutError());
    const timer = isLimited(timeoutMs) ? clock.setTimer(timeoutMs, expire) : undefined;
    const abort = () => reject(cancelledError(signal!));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    void ready.then(resolve, reject).finally(() => {
      timer?.cancel();
      signal?.removeEventListener("abort", abort);
    });
  });
}
