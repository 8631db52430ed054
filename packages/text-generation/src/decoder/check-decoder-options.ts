import { TritonError } from "@tritonjs/protocol";
import type { TextGenerationOptions } from "./decoder-options.js";

const COUNTS = ["maxRunningRequests", "kvCacheBytes", "prefillTokens", "contextLength"] as const;

/** @throws TritonError INVALID_ARG that lists every invalid option */
export function checkDecoderOptions(options: TextGenerationOptions): void {
  const problems: string[] = [];
  for (const name of COUNTS) {
    const value: unknown = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) continue;
    problems.push(`${name}: expected an integer of at least 1, got ${String(value)}`);
  }
  const { prefixCache } = options;
  if (prefixCache !== undefined && typeof prefixCache !== "boolean") {
    problems.push(`prefixCache: expected true or false, got ${String(prefixCache)}`);
  }
  if (problems.length === 0) return;
  throw new TritonError("INVALID_ARG", `textGeneration: ${problems.join("; ")}`, {
    reason: "INVALID_OPTION",
  });
}
