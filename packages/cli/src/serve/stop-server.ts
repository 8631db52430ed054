import type { Triton } from "@tritonjs/core";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";

/** Time after the drain to close connections, and for a model that is still loading. */
const LAST_WORDS_MS = 1000;

/**
 * Stops a server. Requests in flight may finish within the time limit.
 *
 * @returns the exit code: 0, or 1 when requests were left at the time limit
 */
export async function stopServer(
  triton: Triton,
  exitTimeoutSecs: number,
  exitDelaySecs: number,
): Promise<number> {
  const { log } = triton.service;
  const delaySecs = Math.max(0, exitDelaySecs);
  if (delaySecs > 0) log.info(`Accepting requests for ${delaySecs} more seconds.`);
  else log.info("Waiting for in-flight requests to complete.");
  const timeoutMs = Math.min((delaySecs + Math.max(0, exitTimeoutSecs)) * 1000, LONGEST_TIMEOUT_MS);
  const closed = triton.close();
  if (await settlesWithin(closed, timeoutMs)) return 0;
  log.error("Exit timeout expired. Exiting immediately.");
  await settlesWithin(closed, LAST_WORDS_MS);
  return 1;
}

/** Stops a server that has not begun to serve. @returns the exit code */
export async function abandonServer(triton: Triton): Promise<number> {
  await settlesWithin(triton.close(), LAST_WORDS_MS);
  return 0;
}

async function settlesWithin(promise: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([promise.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}
