import { TritonError } from "@tritonjs/protocol";
import type { Log } from "../../observe/log/log.js";
import { RateLimiter } from "./rate-limiter.js";
import type { RateLimitResource } from "./resource-pools.js";

/**
 * Creates the rate limiter that the options ask for; undefined if it is off.
 *
 * @param log receives the amounts of all resources whenever they change, at verbose level 1
 * @throws TritonError INVALID_ARG for invalid options
 */
export function createRateLimiter(
  mode: "execution_count" | "off" = "off",
  resources: readonly RateLimitResource[] = [],
  log?: Log,
): RateLimiter | undefined {
  if (mode !== "execution_count" && mode !== "off") {
    throw new TritonError(
      "INVALID_ARG",
      `rateLimit: expected 'execution_count' or 'off', got '${String(mode)}'`,
      { reason: "INVALID_OPTION" },
    );
  }
  const wrong = resources.find(({ count }) => !Number.isSafeInteger(count) || count < 0);
  if (wrong !== undefined) {
    throw new TritonError(
      "INVALID_ARG",
      `rateLimitResources: expected a non-negative integer as the count of '${wrong.name}', got ${wrong.count}`,
      { reason: "INVALID_OPTION" },
    );
  }
  return mode === "off" ? undefined : new RateLimiter(resources, (text) => log?.verbose(1, text));
}
