import type { TritonOptions } from "@tritonjs/core";

/** The rate limiter of the recorded server's flags `--rate-limit` and `--rate-limit-resource`. */
export function rateLimitOf(
  flags: readonly string[],
): Pick<TritonOptions, "rateLimit" | "rateLimitResources"> {
  const rateLimit = flags.includes("--rate-limit=execution_count") ? "execution_count" : "off";
  const rateLimitResources = flags
    .filter((flag) => flag.startsWith("--rate-limit-resource="))
    .map((flag) => {
      const [name = "", count, device] = flag.slice("--rate-limit-resource=".length).split(":");
      if (device === undefined) return { name, count: Number(count) };
      return {
        name,
        count: Number(count),
        device: device === "global" ? ("global" as const) : Number(device),
      };
    });
  return { rateLimit, rateLimitResources };
}
